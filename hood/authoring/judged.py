"""Judge an exercise's own answers if the exercise changed since the last build.

For each exercise, the instructor's notebook has a digest of what was judged: the check, the
answers, and the lab's code. If the digest is different now, the build judges the lab's solution, an
untouched stub, each alternate and each misconception, and compares the points with the stated
points. The seed is the digest, so the same text gives the same cases. The digest leaves out prose.
The digest also leaves out the grader's code, because the grader has its own tests.
"""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from hood.authoring.lint import check_lines
from hood.authoring.notebooks.notebook import read, stamp
from hood.authoring.notebooks.text import Problem, Text, at
from hood.authoring.proof.quiet import quiet
from hood.authoring.proof.selftest import Fault, LabCode, prove, stops
from hood.judge.catalogue import load_checks, place_of
from hood.judge.checks.answers_form import line_of
from hood.judge.checks.exercise import Check
from hood.manifest import deciding
from hood.metadata import JUDGED
from hood.phase_paths import PhasePaths

DIGITS = 8


def digests(phase: PhasePaths) -> dict[str, str]:
    """Return for each exercise a hash of everything that decides the points of its answers."""
    lab = LabCode.read(phase.lab)
    code = {path: path.read_text(encoding="utf-8") for path in phase.checks}
    holds = {path: check_lines(source) for path, source in code.items()}
    beside = phase.folder / "checks"
    data = [p for p in sorted(beside.rglob("*")) if p.is_file() and p.suffix not in (".py", ".pyc")]
    found = {}
    for name in load_checks(phase.folder):
        # the file with the exercise's check, and all files without a check
        files = [path for path in code if name in holds[path] or not holds[path]]
        cells = [*lab.given, lab.solutions.get(name, ""), *lab.visible.get(name, ())]
        answers = phase.answers / f"{name}.toml"
        digest = hashlib.sha256(json.dumps(cells).encode())
        digest.update("\0".join(code[path] for path in files).encode())
        for path in data:
            digest.update(path.name.encode() + path.read_bytes())
        digest.update(deciding(answers) if answers.exists() else b"")
        found[name] = digest.hexdigest()[:DIGITS]
    return found


def changed(phase: PhasePaths) -> dict[str, str]:
    """Return the digests of the exercises whose present version was not judged yet."""
    try:
        notebook = read(phase.source)
    except ValueError:
        notebook = None
    known = stamp(notebook).get(JUDGED, {}) if notebook else {}
    known = known if isinstance(known, Mapping) else {}
    return {name: digest for name, digest in digests(phase).items() if known.get(name) != digest}


def unjudged_problems(phase: PhasePaths, lab: Text) -> Iterator[Problem]:
    """Yield a problem for each exercise that changed since the last build."""
    for name in changed(phase):
        message = f"exercise {name!r} changed since its answers were judged: "
        yield _at_cell(lab, name, f"{message}run `python -m hood build {phase.number}`")


def judged_problems(phase: PhasePaths, lab: Text, say: Callable[[str], None]) -> Iterator[Problem]:
    """Judge the answers of each changed exercise; yield a problem for each unexpected result."""
    checks, code = load_checks(phase.folder), LabCode.read(phase.lab)
    for name, digest in changed(phase).items():
        check = checks[name]
        count = len(check.misconceptions) + len(check.alternates)
        say(f"{lab.path}: judging {name} and its {count} answers, because it changed")
        again = f"python -m hood selftest {phase.number} --exercise {name} --seed {digest}"
        with quiet():
            faults = [*prove(check, f"{digest}-0", code).faults]
            faults += [] if faults else visible_faults(check, code)
        for fault in faults:
            yield _placed(phase, lab, check, fault, f"{fault.said} (to see it again: `{again}`)")


def visible_faults(check: Check, code: LabCode) -> Iterator[Fault]:
    """Yield a fault for each right answer that fails in a visible cell of its exercise."""
    solution = code.solutions.get(check.name, "")
    cells = {"": solution} | {one.name: one.cell(check.name, solution) for one in check.alternates}
    for name, cell in cells.items():
        if why := stops(code, check.name, cell):
            kind = "alternate" if name else "solution"
            who = f"alternate “{name}”" if name else "the lab's solution"
            said = f"{who} is right, but a visible cell refuses it: {why}"
            yield Fault(check.name, kind, name, said)


def _placed(phase: PhasePaths, lab: Text, check: Check, fault: Fault, message: str) -> Problem:
    """Return a fault as a problem in the answer, in the lab's solution, or in the check's file."""
    answers = phase.answers / f"{check.name}.toml"
    tables = {"misconception": "wrong", "alternate": "right"}
    if fault.kind in tables and answers.exists():
        line = line_of(answers.read_text(encoding="utf-8"), (tables[fault.kind], fault.name))
        return Problem(phase.relative(answers), line, message)
    if fault.kind == "solution":
        return _at_cell(lab, check.name, message)
    path, line = _line_in_check(phase.checks, check, fault)
    return Problem(phase.relative(path), line, message)


def _line_in_check(files: list[Path], check: Check, fault: Fault) -> tuple[Path, int]:
    """Return the file and line of the code that causes a fault, or else of the check."""
    if fault.error and (place := place_of(fault.error, files))[1] > 1:
        return place
    for path in files:
        code = path.read_text(encoding="utf-8")
        if line := check_lines(code).get(check.name):
            for node in ast.walk(ast.parse(code)):
                match node:
                    case ast.Call(args=[ast.Constant(str(part)), *_]) if (
                        part not in (check.name, *check.parts)
                        and f"a case has the part {part!r}" in fault.said
                    ):
                        return path, node.lineno
            return path, line
    return files[0], 1


def _at_cell(lab: Text, exercise: str, message: str) -> Problem:
    cells = [cell for cell in lab.cells if cell.header.get("solution") == exercise]
    return at(lab, cells[0], message) if cells else Problem(lab.path, 1, message)
