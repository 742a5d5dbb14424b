"""Write the draft of a phase, and the list of what a person must decide."""

from __future__ import annotations

import ast
import importlib.util
import json
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from hood import UserError
from hood.authoring.importing.assignment import Assignment, Exercise, InWords, Other
from hood.authoring.importing.check_text import answers_text, check_text, variable
from hood.authoring.importing.drafted import Drafted, exercise_of, free_name, plain_name
from hood.authoring.importing.lab_text import lab_text
from hood.authoring.importing.names import Imports
from hood.authoring.importing.solution_cell import parsed
from hood.authoring.lint import lab_problems
from hood.authoring.mentions import mention_problems
from hood.authoring.notebooks.text import parse
from hood.authoring.spelled_out import spelled_out
from hood.authoring.stated import stated_problems
from hood.authoring.steps import exercises_elsewhere
from hood.phase_paths import PhasePaths

FILE = re.compile(
    r"[\w./ -]*\w\.(csv|tsv|txt|json|jsonl|npy|npz|pkl|pickle|parquet|xlsx?|h5|hdf5|db|sqlite3?"
    r"|zip|gz|png|jpe?g|gif|svg|wav|mat|pt|pth|feather|yaml|yml|xml|html)"
)
LINKED = re.compile(r"!?\[[^\]]*\]\(([^()\s:#]+)\)|<img[^>]+src=[\"']([^\"':]+)[\"']")


@dataclass
class Draft:
    files: dict[str, str]  # by path in the phase's folder
    listed: str  # the phase's table in course.toml
    open: list[str]  # what a person must decide


def draft(found: Assignment, phase: PhasePaths, source: str) -> Draft:
    """Return the files of a phase, and the list of what a person must decide.

    `source` is the notebook's file name. Raises UserError if the notebook has nothing to grade, or
    if one of its cells can't be stored in the text of a lab (`lab.py`).
    """
    questions = [one for one in found.cells if isinstance(one, InWords)]
    if not found.exercises and not questions:
        raise UserError("expected exercises or questions with points, but the notebook has none")
    source = re.sub(r"[^\w .()-]", "_", source)
    imports = Imports.of(_code(found))
    todo = [*_to_begin(phase, found), *found.open]
    taken = dict.fromkeys(exercises_elsewhere(phase))
    drafted = {id(one): exercise_of(one, imports, taken, todo) for one in found.exercises}
    words = {id(one): free_name(plain_name(one.name), taken) for one in questions}
    files = {
        "lab.py": lab_text(found, phase, drafted, words, todo),
        "solutions.md": _solutions(found, phase, drafted, words),
    }
    for made in drafted.values():
        module = variable(made.name, imports)
        files[f"checks/{module}.py"] = check_text(made, module, imports, source)
        files[f"answers/{made.name}.toml"] = answers_text(made.name)
    title = json.dumps(found.title, ensure_ascii=False)
    listed = f'[[phases]]\nname = "{phase.name}"\ntitle = {title}\n'
    return Draft(files, listed, [*todo, *_files_and_packages(found, imports)])


def _to_begin(phase: PhasePaths, found: Assignment) -> Iterator[str]:
    yield (
        f"course.toml: look at the title of the phase {phase.name}, and write its `promise`, which "
        "says what a learner can do after the phase."
    )
    yield (
        "lesson.py: the phase has no lesson. When you write a lesson, set `reads` of each check "
        "to the heading of a section."
    )
    if found.exercises:
        yield (
            "checks/ and answers/: each check compares answers with the lab's solution. Write a "
            "second right solution as the check's reference, and write misconceptions into the "
            "check's file of answers."
        )


def _solutions(
    found: Assignment, phase: PhasePaths, drafted: dict[int, Drafted], words: dict[int, str]
) -> str:
    sections = [f"# Lab {phase.number}, solved"]
    for cell in found.cells:
        if isinstance(cell, Exercise):
            text = "TODO: why the solution is right."
            sections.append(f"## {drafted[id(cell)].name}\n\n{text}")
        elif isinstance(cell, InWords):
            answer = re.sub(r"^#+ +", "", cell.answer, flags=re.MULTILINE)
            sections.append(f"## {words[id(cell)]}\n\n{answer or 'TODO: a model answer.'}")
    return "\n\n".join(sections) + "\n"


def _files_and_packages(found: Assignment, imports: Imports) -> Iterator[str]:
    read = dict.fromkeys(found.files)
    for cell in found.cells:
        text = cell.source if isinstance(cell, Other) else ""
        text = cell.question if isinstance(cell, InWords) else text
        read |= dict.fromkeys(a or b for a, b in LINKED.findall(text) if FILE.fullmatch(a or b))
    for source in _code(found):
        read |= dict.fromkeys(_file_names(source))
    if read:
        names = ", ".join(f"`{one}`" for one in read)
        yield f"the notebook names these files, so the learners need them, too: {names}."
    for package in sorted(imports.packages() - sys.stdlib_module_names):
        if not _is_installed(package):
            yield (
                f"the notebook imports `{package}`, which is not installed here. If it is a "
                "package, install it, and name it in the course's requirements. If it is a file "
                "beside the notebook, copy it into a package of the course."
            )


def _is_installed(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except (ImportError, ValueError):
        return False


def _file_names(source: str) -> Iterator[str]:
    tree = parsed(source)
    for node in ast.walk(tree) if tree else ():
        match node:
            case ast.Constant(str(value)) if len(value) < 200 and FILE.fullmatch(value):
                yield value


def refusals(phase: PhasePaths) -> Iterator[str]:
    """Yield what the build refuses in a lab's text alone, without its checks and lesson."""
    text = parse(phase.relative(phase.lab), phase.lab.read_text(encoding="utf-8"))
    rules = lab_problems(text), stated_problems(text), spelled_out(text, text)
    for problem in sorted(
        {*(one for rule in rules for one in rule), *mention_problems(phase, text)}
    ):
        yield f"the build refuses {problem}"


def todo_page(phase: PhasePaths, source: str, todo: Iterable[str]) -> str:
    """Return the text of TODO.md."""
    items = "\n".join(f"- [ ] {one}" for one in todo)
    return (
        f"# What is left to decide in {phase.name}\n"
        "\n"
        f"The phase is a draft, made from {source}. Delete this file when you have decided "
        "everything.\n"
        "\n"
        f"{items}\n"
    )


def _code(found: Assignment) -> Iterator[str]:
    """Yield the sources of all code of an assignment."""
    for cell in found.cells:
        if isinstance(cell, Other) and cell.kind == "code":
            yield cell.source
        elif isinstance(cell, Exercise):
            yield from (cell.solution, *(test.source for test in cell.tests))
