"""`python -m hood wrong EXERCISE FILE`: add a wrong answer to the misconceptions of an exercise."""

from __future__ import annotations

import argparse
import ast
import builtins
import contextlib
import re
import secrets
import sys
import tomllib
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from hood import UserError
from hood.atomic_files import write_whole
from hood.authoring.answer_draft import (
    answer_code,
    bound_by,
    edits_between,
    entry,
    free_names,
    imports,
)
from hood.authoring.notebooks.notebook import to_node
from hood.authoring.notebooks.text import Text, TextCell, parse
from hood.authoring.proof.cpu_limit import limited_to
from hood.authoring.proof.quiet import quiet
from hood.authoring.proof.selftest import LabCode
from hood.judge.catalogue import find_check, load_checks
from hood.judge.checks.answers import AnswersFile
from hood.judge.checks.answers_form import line_of
from hood.judge.checks.exercise import Check
from hood.judge.checks.lab_solution import bare
from hood.judge.report import VerdictReport
from hood.judge.source.learner_source import LearnerSource
from hood.judge.verdicts.judge import judge
from hood.judge.watched import WatchedConnection
from hood.manifest import parsed_cell
from hood.metadata import KEY
from hood.phase_paths import PhasePaths, phases
from hood.verdict import Cause, Status, Verdict

SEEDS = 3
MOST_SECONDS = 60  # of processor time, if there is no sandbox
ENDLESS = (
    "stored answers must end, because the build runs them. A timeout needs no misconception: a "
    "verdict names every timeout"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("exercise", help="the name in the exercise's `check(...)`, such as is_leap")
    parser.add_argument(
        "file",
        type=Path,
        help="the wrong answer: a file of Python code, or a learner's notebook (.ipynb)",
    )
    parser.add_argument(
        "--name",
        help="the mistake in a few words, such as “no century” (default: the "
        "name of the .py file without .py; a notebook has no default)",
    )


def run(args: argparse.Namespace, root: Path) -> int:
    """Judge the answer; draft the misconception, or return 1 and say why not."""
    phase, check = _check(args.exercise, root)
    path = phase.answers / f"{check.name}.toml"
    name = _free_name(args.name, args.file, path)
    lab = parse(phase.relative(phase.lab), phase.lab.read_text(encoding="utf-8"))
    code = read_answer(args.file, lab, check)
    print(f"judging {args.file} with {SEEDS} seeds ...", file=sys.stderr, flush=True)
    verdicts, where = judged(check, lab, code, root)
    print(VerdictReport(verdicts[0], phase.number))
    print(f"(judged {where})")
    if why := refused(check, verdicts):
        print(f"nothing was added: {why}", file=sys.stderr)
        return 1
    solution = bare(LabCode.read(phase.lab).solutions.get(check.name, ""))
    edits = edits_between(solution, code)
    earns = {part.name: part.earned for part in verdicts[0].parts}
    line = add_entry(path, name, entry(name, code, edits, earns))
    form = "edits of the lab's solution" if edits else "its code"
    print(f"{phase.relative(path)}:{line}: added “{name}”, as {form}. Now:")
    print("  1. replace the TODO in `says`: write what the code does, and what the code should do")
    if check.not_run():
        lost = ", ".join(check.not_run())
        print(f"     and add the points of the parts that this machine can't judge: {lost}")
    print(f"  2. python -m hood build {phase.number}")
    return 0


def _check(name: str, root: Path) -> tuple[PhasePaths, Check]:
    try:
        return find_check(name, root)
    except LookupError as error:
        every = [one for phase in phases(root) for one in load_checks(phase.folder)]
        near = get_close_matches(name, every, n=3)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise UserError(f"{error}{hint}") from None


def _free_name(said: str | None, file: Path, answers: Path) -> str:
    """Return the name of the new misconception. Raises UserError if the name is taken."""
    if said is None and file.suffix == ".ipynb":
        raise UserError('a notebook needs a name for its mistake: add --name "IN A FEW WORDS"')
    name = said or file.stem.replace("_", " ")
    entries = AnswersFile.at(answers).entries
    for kind in ("wrong", "right"):
        if name in entries.get(kind, {}):
            raise UserError(
                f'{answers.name} has an answer [{kind}."{name}"]: add --name "ANOTHER NAME"'
            )
    return name


def read_answer(file: Path, lab: Text, check: Check) -> str:
    """Return a learner's answer as code that needs no other code of the learner.

    Raises UserError if the file can't be read, or has no answer that can be used.
    """
    try:
        content = file.read_text(encoding="utf-8")
        if file.suffix == ".ipynb":
            cells = nbformat.reads(content, as_version=4).cells
            sources = [one.source for one in cells if _is_own(one)]
            trees = [tree for one in sources if (tree := parsed_cell(one))]
            _refuse_invalid(file, sources, check)
        else:
            trees = [ast.parse(content, filename=str(file))]
    except SyntaxError as error:
        raise UserError(f"{file}:{error.lineno}: not valid Python: {error.msg}") from None
    except (OSError, ValueError, nbformat.ValidationError) as error:
        raise UserError(f"{file} can't be read: {error}") from None
    code = [cell for cell in lab.cells if cell.kind == "code"]
    imported = imports(cell.source for cell in code)
    given = [cell.source for cell in code if "given" in cell.header]
    there = {name: "" for one in given for node in ast.parse(one).body for name in bound_by(node)}
    answer = answer_code(trees, check.names, there | imported)
    own = bare("\n\n\n".join(c.source for c in code if c.header.get("solution") == check.name))
    known = {*there, *imported, *own, *dir(builtins)}
    if unknown := [name for name in free_names(answer) if name not in known]:
        raise UserError(
            f"the answer uses {', '.join(unknown)}. Define it in {file.name}, because the lab's "
            "given cells do not define it"
        )
    return answer


def _refuse_invalid(file: Path, sources: Iterable[str], check: Check) -> None:
    """Raise UserError if a cell that defines a function of the exercise is not valid Python."""
    for source in sources:
        defined = [name for name in check.names if re.search(rf"\b(def|class) {name}\b", source)]
        if defined and parsed_cell(source) is None:
            raise UserError(
                f"{file}: the cell that defines {' and '.join(defined)} is not valid Python: "
                "correct it first"
            )


def _is_own(cell: NotebookNode) -> bool:
    """Return whether a cell of a notebook may have a learner's answer."""
    marks = cell.metadata.get("nbgrader", {})
    return cell.cell_type == "code" and (marks.get("solution") or not marks.get("locked"))


def judged(check: Check, lab: Text, code: str, root: Path) -> tuple[list[Verdict], str]:
    """Return an answer's verdicts for a few seeds, and a text that says where it was judged.

    The answer is judged in a sandbox, as submissions are. If this machine can't make a sandbox, the
    answer is judged in this process, as ``selftest`` judges the stored answers.
    """
    seeds = [secrets.token_hex(8) for _ in range(SEEDS)]
    [solution] = [c for c in lab.cells if c.header.get("solution") == check.name]
    partial = not set(check.names) <= bare(code).keys()
    cell = f"{solution.source}\n\n\n{code}" if partial else code
    try:
        return [_in_sandbox(check, lab, cell, seed) for seed in seeds], "in a sandbox"
    except ModuleNotFoundError as error:
        why = f"the package {error.name} is not installed"
    except UserError as error:  # no sandbox here
        why = str(error)
    return _in_process(check, lab, cell, seeds), f"in this process, without a sandbox: {why}"


def _in_sandbox(check: Check, lab: Text, cell: str, seed: str) -> Verdict:
    from hood.grader.execution.execute import Execute  # here, because it needs nbgrader
    from hood.grader.execution.graded_cell import read_verdicts

    cells = [
        TextCell("code", cell, one.header) if one.header.get("solution") else one
        for one in lab.cells
        if "given" in one.header or check.name in (one.header.get("solution"), _tested(one))
    ]
    nodes = [to_node(one, f"cell-{number}") for number, one in enumerate(cells)]
    notebook = nbformat.v4.new_notebook(cells=nodes)
    notebook.metadata[KEY] = {**lab.course, "seed": seed, "examples": False}
    graded, _ = Execute().preprocess(notebook, {"metadata": {"path": None}})
    return read_verdicts(graded)[check.name]


def _tested(cell: TextCell) -> str | None:
    return cell.header.get("test")


def _in_process(check: Check, lab: Text, cell: str, seeds: Sequence[str]) -> list[Verdict]:
    code = LabCode(tuple(one.source for one in lab.cells if "given" in one.header))
    written = LearnerSource([*code.given, cell])
    found: list[Verdict] = []
    with quiet(), limited_to(MOST_SECONDS) as rang:
        thing = check.thing_in(code.names_after(cell))
        for seed in seeds:
            found.append(judge(check, thing, seed, source=written, connect=WatchedConnection))
    if rang:
        raise UserError(f"the answer does not end within {MOST_SECONDS} s: {ENDLESS}")
    return found


def refused(check: Check, verdicts: Sequence[Verdict]) -> str:
    """Return why an answer can't become a misconception of its exercise, or an empty text."""
    full = check.earnable()
    earned = sorted({verdict.earned for verdict in verdicts})
    if verdicts[0].status is Status.NOT_ATTEMPTED:
        return "the code raises NotImplementedError, so it is no answer yet"
    if earned[-1] >= full and len(earned) == 1:
        return (
            f"the answer earns all {full:g} points. If the answer is right, add it as "
            '[right."..."]. If the answer is wrong, add to the check a case that this answer fails'
        )
    found = {part.name: {part.earned} for part in verdicts[0].parts}
    for part in (part for verdict in verdicts for part in verdict.parts):
        found[part.name].add(part.earned)
    if chance := [name for name, earns in found.items() if len(earns) > 1]:
        return (
            f"the answer earns the points of {', '.join(chance)} in some runs but not in others, "
            "because each run draws its own cases. Add a case that shows the mistake in every run"
        )
    slow = [p.name for one in verdicts for p in one.parts if p.cause is Cause.TIMEOUT]
    if slow:
        parts = ", ".join(dict.fromkeys(slow))
        return f"the answer does not end, or takes too long ({parts}): {ENDLESS}"
    if like := same_as(verdicts):
        return (
            f"the answer does exactly what “{like}” does, and the exercise already has this "
            "misconception"
        )
    return ""


def same_as(verdicts: Sequence[Verdict]) -> str:
    """Return the misconception that explains every wrong part of every verdict, or nothing.

    A verdict names a misconception only if the misconception and the answer agree in all cases,
    also in the cases that the answer gets right.
    """
    wrong = (p for verdict in verdicts for p in verdict.parts if p.status is Status.WRONG)
    named = {part.misconception for part in wrong}
    return named.pop() if len(named) == 1 else ""


def add_entry(path: Path, name: str, new: str) -> int:
    """Add an entry to a file of answers, above its right answers; return the entry's line."""
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    lines = before.split("\n")
    first = next((k for k, line in enumerate(lines) if line.startswith("[right.")), len(lines))
    while first > 0 and lines[first - 1].startswith("#"):  # a comment about the right answer
        first -= 1
    expected = tomllib.loads(before)
    expected.setdefault("wrong", {})[name] = tomllib.loads(new)["wrong"][name]
    for place in (first, len(lines)):
        above, below = "\n".join(lines[:place]).strip("\n"), "\n".join(lines[place:]).strip("\n")
        content = "\n\n".join(filter(None, [above, new.strip("\n"), below])) + "\n"
        with contextlib.suppress(tomllib.TOMLDecodeError):  # the position was inside a string
            if tomllib.loads(content) == expected:
                break
    write_whole(path, content.encode())
    return line_of(content, ("wrong", name))
