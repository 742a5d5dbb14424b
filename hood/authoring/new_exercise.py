"""`python -m hood exercise NAME`: add an exercise that works at once, for its author to change."""

from __future__ import annotations

import argparse
import ast
import builtins
import json
import keyword
import re
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from hood import UserError
from hood.atomic_files import write_whole
from hood.authoring.answer_draft import bound_by
from hood.authoring.lint import NAME
from hood.authoring.notebooks.notebook import CHECK_IMPORT
from hood.authoring.notebooks.text import Text, parse, refuse_if_any
from hood.authoring.stated import corrected_counts, sections
from hood.judge.solutions import FILE as SOLUTIONS
from hood.phase_paths import PhasePaths, anchor, choose, phases

ENVIRONMENT = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates" / "exercise"),
    undefined=StrictUndefined,
    keep_trailing_newline=True,
    autoescape=False,
)
SET_UP = f'# %% given="setup"\n{CHECK_IMPORT}\n\n'
IMPORTS = "from hood.judge.checks.exercise import Check, case\n"
HEADING = re.compile(r"(#{1,6}) +(.+)")
POINTS = re.compile(r"(\bpoints: *)[\d.]+")  # in the header of a lab


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "name", help="the name of the function that learners write, such as is_leap"
    )
    parser.add_argument(
        "--lab", help="the lab, such as 01_words or 01 (default: the course's only lab)"
    )
    parser.add_argument(
        "--points", type=float, default=1, help="the points of the exercise (default: %(default)s)"
    )


def run(args: argparse.Namespace, root: Path) -> int:
    """Write the exercise into the files of its phase, and say what to fill in."""
    phase = phase_with_lab(root, args.lab)
    files = new_exercise(phase, args.name, args.points)
    for path, content in files.items():
        write_whole(path, content.encode())
    said = {
        phase.lab: "its four cells; write the question, the time that it takes, and your solution",
        phase.answers / f"{args.name}.toml": "a wrong and a right answer; replace both",
        phase.folder / SOLUTIONS: "an explanation of the solution; write your own",
    }
    print(f"{args.name}: an exercise that doubles a number. To make it your own, change, in order:")
    for path in files:
        shown = said.get(path, "its check; write the parts, a reference and the cases")
        print(f"  {phase.relative(path)}:{_line(files[path], args.name)}: {shown}")
    print("Then type:")
    print(f"  python -m hood build {phase.number}    it works before your changes, too")
    print(f"  python -m hood wrong {args.name} FILE.py    adds the wrong answer in a Python file")
    return 0


def _line(content: str, name: str) -> int:
    """Return the number of the line, counted from 1, where the new exercise begins in a file."""
    lines = content.split("\n")
    begins = re.compile(rf'# %% solution="{name}"|\w+ = Check\(|\[wrong|## {name}$')
    return max(number for number, line in enumerate(lines, 1) if begins.match(line))


def phase_with_lab(root: Path, word: str | None) -> PhasePaths:
    """Return the phase that a word names, or the course's only phase with a lab.

    Raises UserError if the word names no phase with a lab. Without a word, raises UserError if the
    course does not have exactly one lab.
    """
    every = [phase for phase in phases(root) if phase.lab.exists()]
    names = ", ".join(phase.number for phase in every) or "none yet"
    if word is None:
        if len(every) != 1:
            raise UserError(f"which lab? Add `--lab NN`, with one of: {names}")
        return every[0]
    for phase in choose(root, [word]):
        if phase in every:
            return phase
    raise UserError(
        f"{word} has no lab yet. Write the header and the title of its lab first, or choose a "
        f"phase that has a lab: {names}"
    )


def new_exercise(phase: PhasePaths, name: str, points: float = 1) -> dict[Path, str]:
    """Return the files of a phase with a new exercise, in the order in which to change them.

    Raises UserError if the name is taken or not usable, or if the points are not above 0. Raises
    Refused if the lab's text can't be read.
    """
    if not points > 0:
        raise UserError(f"expected points above 0, got {points:g}")
    lab = parse(phase.relative(phase.lab), phase.lab.read_text(encoding="utf-8"))
    refuse_if_any(lab.problems)
    lesson = None
    if phase.lesson.exists():
        lesson = parse(phase.relative(phase.lesson), phase.lesson.read_text(encoding="utf-8"))
    if why := name_problem(phase, lab, name):
        raise UserError(f"the exercise can't be named {name!r}: {why}")
    reads = first_section(lesson) if lesson else ""
    shown = f"{points:g}"
    label = f"*Easy, {shown} {'point' if points == 1 else 'points'}.*"
    if reads:
        link = f"[{reads}](../../notebooks/{phase.name}.ipynb#{anchor(reads)})"
        label = f"{label} From the lesson: {link}."
    said = {
        "name": name,
        "points": shown,
        "label": label,
        "heading": heading(lab, name),
        "reads": json.dumps(reads, ensure_ascii=False),
    }
    check, content = check_file(phase, name, said)
    answers, solutions = phase.answers / f"{name}.toml", phase.folder / SOLUTIONS
    before = f"# Lab {phase.number}, solved\n"
    if solutions.exists():
        before = solutions.read_text(encoding="utf-8").rstrip("\n") + "\n"
    return {
        phase.lab: with_cells(lab, phase.lab.read_text(encoding="utf-8"), made("cells.py", said)),
        check: content,
        answers: made("answers.toml", said),
        solutions: f"{before}\n{made('solution.md', said)}",
    }


def made(name: str, said: dict[str, str]) -> str:
    """Return a piece of the new exercise, made from a template."""
    return ENVIRONMENT.get_template(f"{name}.j2").render(said)


def name_problem(phase: PhasePaths, lab: Text, name: str) -> str:
    """Return why an exercise can't have a name; an empty text if the name is usable."""
    if not NAME.fullmatch(name) or keyword.iskeyword(name):
        return "expected a name of a Python function, with at most 50 letters, digits and _"
    if hasattr(builtins, name):
        return "Python has a function with this name"
    for other in phases(phase.root):
        text = other.lab.read_text(encoding="utf-8") if other.lab.exists() else ""
        if re.search(rf'^# %%.*="{name}(_solution)?"', text, re.MULTILINE):
            return f"{other.relative(other.lab)} has a cell of this name"
    code = (cell.source for cell in lab.cells if cell.kind == "code")
    if any(name in bound_by(node) for source in code for node in ast.parse(source).body):
        return f"a cell of {lab.path} defines or imports this name"
    for path in (phase.answers / f"{name}.toml", phase.folder / "checks" / f"{name}.py"):
        if path.exists():
            return f"{phase.relative(path)} exists"
    return ""


def first_section(lesson: Text) -> str:
    """Return the heading of a lesson's first section that a link can lead to, or else the title."""
    cells = (cell.source for cell in lesson.cells if cell.kind == "markdown")
    found = [match for source in cells if (match := HEADING.match(source))]
    below = [match for match in found if match[1] != "#"]
    return next((match[2].rstrip("# ") for match in [*below, *found]), "")


def heading(lab: Text, name: str) -> str:
    """Return the heading of a new exercise, with a number if the lab's headings have numbers."""
    words = name.replace("_", " ").strip().capitalize() or name
    asked = [part for part in sections(lab) if part.points]
    numbers = [part.number for part in asked if part.number is not None]
    if asked and not numbers:
        return f"{words}: a new exercise"  # not the name alone, which is the id of a cell
    return f"{max(numbers, default=0) + 1} · {words}"


def with_cells(lab: Text, content: str, cells: str) -> str:
    """Return a lab's text with new cells above its last section, or at its end.

    If the last section has no exercise, for example "Done", the cells go above this section. The
    points in the lab's header, and the counts in its first paragraph, are brought up to date.
    """
    if not any(CHECK_IMPORT in cell.source for cell in lab.cells):
        cells = SET_UP + cells
    lines = content.rstrip("\n").split("\n")
    parts = sections(lab)
    asked = [part for part in parts if part.points]
    last = parts[-1] if parts and parts[-1] not in asked else None
    if last and (asked or last.question.source.lower().startswith("## done")):
        start = last.question.line - 1
        lines[start:start] = cells.split("\n")
    else:
        lines += ["", *cells.rstrip("\n").split("\n")]
    content = "\n".join(lines) + "\n"
    text = parse(lab.path, content)
    if "points" in lab.course:
        prefix = POINTS.sub(rf"\g<1>{text.points:g}", text.prefix, count=1)
        content = prefix + content.removeprefix(text.prefix)
    return corrected_counts(text, content)


def check_file(phase: PhasePaths, name: str, said: dict[str, str]) -> tuple[Path, str]:
    """Return the file for a new exercise's check, and the file's whole content.

    The check goes into the phase's ``checks.py``, or else into a new file in ``checks/``.
    """
    alone = phase.folder / "checks.py"
    if phase.checks != [alone]:
        path = phase.folder / "checks" / f"{name}.py"
        words = f'"""What the exercise `{name}` asks."""\n\n{IMPORTS}\n'
        return path, words + made("check.py", said | {"variable": name})
    before = alone.read_text(encoding="utf-8").rstrip("\n")
    used = {node.id for node in ast.walk(ast.parse(before)) if isinstance(node, ast.Name)}
    words = before if {"Check", "case"} <= used else f"{before}\n\n\n{IMPORTS.rstrip()}"
    variable = f"{name}_check" if re.search(rf"\b{name}\b", before) else name
    return alone, f"{words}\n\n\n{made('check.py', said | {'variable': variable})}"
