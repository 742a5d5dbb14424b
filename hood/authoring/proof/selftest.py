"""Test that each check accepts right solutions, and rejects and names its misconceptions.

``python -m hood selftest`` runs every check against its own candidates and prints the table. The
test suite also runs every check, with a new seed in each run. A candidate runs among the lab's own
cells, as it would in a learner's notebook, and is judged once for each seed.
"""

from __future__ import annotations

import argparse
import builtins
import dataclasses
import itertools
import linecache
import sys
import time
import types
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from rich import box
from rich.console import Console
from rich.table import Table

from hood import UserError
from hood.authoring.notebooks.text import parse
from hood.authoring.proof.cpu_limit import limited_to
from hood.authoring.proof.quiet import quiet
from hood.authoring.proof.visible_cells import refusal, visible_cells, with_inner_classes
from hood.judge.catalogue import load_checks
from hood.judge.checks.answers import Candidate
from hood.judge.checks.exercise import Check
from hood.judge.source.learner_source import LearnerSource
from hood.judge.verdicts.answer_key import AnswerKey, answer_key
from hood.judge.verdicts.difference import difference
from hood.judge.verdicts.judge import judge
from hood.phase_paths import PhasePaths, choose
from hood.verdict import Cause, Status, Verdict

T = TypeVar("T")

# A module that replaces a notebook's ``__main__`` has this name and a number. torch.compile imports
# the module by its name and keeps it, so no two modules may have the same name.
CELLS = "__cells{}__"
NUMBERS = itertools.count()
KEPT = 100  # so many modules can be imported: an exercise's answers are judged in turn
# An answer gets these CPU seconds, plus this many times the seconds of the reference.
LEAST_SECONDS, MOST_TIMES = 90, 100
SAID = {"solution": "the lab's solution", "stub": "an untouched stub"}


@dataclasses.dataclass(frozen=True)
class LabCode:
    """The code cells of a lab's text. A candidate runs together with them."""

    given: tuple[str, ...] = ()  # the cells that come with the lab, in order
    # For each exercise, the solution cell of the lab's text.
    solutions: Mapping[str, str] = dataclasses.field(default_factory=dict)
    # For each exercise, the visible code below the solution cell.
    visible: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> LabCode:
        """Read the code of a lab's text; the result is empty if the phase has no lab."""
        if not path.exists():
            return cls()
        cells = parse(path.name, path.read_text(encoding="utf-8")).cells
        return cls(
            tuple(cell.source for cell in cells if "given" in cell.header),
            {c.header["solution"]: c.source for c in cells if "solution" in c.header},
            visible_cells(cells),
        )

    def names_after(self, cell: str) -> dict[str, Any]:
        """Run the given cells and then another cell; return everything that is then defined."""
        number = next(NUMBERS)
        name = CELLS.format(number)
        module = sys.modules[name] = types.ModuleType(name)
        sys.modules.pop(CELLS.format(number - KEPT), None)
        names: dict[str, Any] = vars(module)
        for code in self._given_compiled:
            exec(code, names)
        # Triton's decorators read a function's source, and find the source here, as in a notebook.
        file = f"<solution {hash(cell):x}>"
        linecache.cache[file] = len(cell), None, cell.splitlines(keepends=True), file
        exec(compile(cell, file, "exec"), names)
        return names

    @cached_property
    def _given_compiled(self) -> list[Any]:
        return [compile(cell, "<given>", "exec") for cell in self.given]


@dataclasses.dataclass(frozen=True)
class Fault:
    """A contradiction between a check and one of its own answers."""

    exercise: str
    kind: str  # "misconception", "alternate", "solution", "stub" or "reference"
    name: str  # of a misconception or alternate, otherwise ""
    said: str  # the result, and the expected result
    error: Exception | None = None  # the exception that the check's own code raised, if any

    def __str__(self) -> str:
        return f"{self.exercise}: {self.said}"


@dataclasses.dataclass(frozen=True)
class Proof:
    """The result of a check with its own candidates."""

    rejected: int  # the number of misconceptions that earned the predicted points and were named
    accepted: int  # the number of alternates that earned the expected points
    faults: tuple[Fault, ...]  # one for each candidate with another result


def stops(lab: LabCode, exercise: str, cell: str) -> str:
    """Return the error that the visible cells of an exercise raise for a solution cell, or ""."""
    return refusal(lab.visible.get(exercise, ()), lab.names_after(with_inner_classes(cell)))


def unseen(check: Check, lab: LabCode) -> list[str]:
    """Return the misconceptions that pass every visible cell: only grading finds them."""
    solution = lab.solutions.get(check.name, "")
    return [
        candidate.name
        for candidate in check.misconceptions
        if not stops(lab, check.name, candidate.cell(check.name, solution))
    ]


def drawn(things: Sequence[T], most: int, seed: str) -> list[T]:
    """Return at most ``most`` random items, in their order; all items if ``most`` is 0."""
    if not most or len(things) <= most:
        return list(things)
    chosen = sorted(Random(seed).sample(range(len(things)), most))
    return [things[k] for k in chosen]


def prove(check: Check, seed: str, lab: LabCode, most: int = 0) -> Proof:
    """Run a check against its candidates, the lab's solution and a stub, then the reference again.

    ``most`` is the number of alternates to run, and also the number of misconceptions to run. The
    seed chooses these candidates. If ``most`` is 0, all candidates run.
    """
    began = time.process_time()
    if broken := _fault_of_key(check, seed):
        return Proof(0, 0, (broken,))  # without an answer key there is nothing to compare with
    most_seconds = LEAST_SECONDS + MOST_TIMES * (time.process_time() - began)
    missing = check.not_run()
    full = check.earnable(missing)
    solution = lab.solutions.get(check.name, "")

    def fault(kind: str, name: str, cell: str, expected: float) -> Fault | None:
        """Judge a solution cell; return a fault if the result is unexpected."""
        who = SAID.get(kind) or f"{kind} “{name}”"
        why = outcome(who, cell, expected, name if kind == "misconception" else "")
        return Fault(check.name, kind, name, why) if why else None

    def outcome(who: str, cell: str, expected: float, named: str) -> str:
        """Return the fault in words; ``named`` is the misconception that must be named."""
        try:
            names = lab.names_after(cell)
        except Exception as error:
            return f"{who} does not run: {type(error).__name__}: {error}"
        if lost := [name for name in check.names if name not in names]:
            return f"{who} does not define {', '.join(lost)}, which the check needs"
        written = LearnerSource([*lab.given, cell])
        read = set[str]().union(*map(written.reads, check.names))
        if unknown := sorted(n for n in read - {*names} if not hasattr(builtins, n)):
            return f"{who} uses {', '.join(unknown)}, which the lab does not define"
        with limited_to(most_seconds) as rang:
            verdict = judge(check, check.thing_in(names), seed, source=written)
        if rang:
            return (
                f"{who} was stopped after {most_seconds:.0f} s of processor time: it, or another "
                "misconception, does not end. Stored answers must end"
            )
        if named and verdict.earned == full:
            return (
                f"{who} is right: it earns all {full:g} points, expected {expected:g}. Move it to "
                f'[right."{named}"] if the question allows it, or add a case that this answer fails'
            )
        if verdict.earned != expected:
            return f"{who} earns {verdict.earned:g}, expected {expected:g}{_lost(verdict)}"
        broken = any(part.cause is Cause.RULE_BROKEN for part in verdict.parts)
        if named and named not in verdict.misconceptions and not broken:
            took = " and ".join(f"“{one}”" for one in verdict.misconceptions)
            named_instead = f"named as {took}" if took else "the verdict names no misconception"
            return f"{who} is rejected, but {named_instead}{_lost(verdict)}"
        return ""

    def fault_of(kind: str, candidate: Candidate) -> Fault | None:
        cell, expected = candidate.cell(check.name, solution), check.expects(candidate, missing)
        return fault(kind, candidate.name, cell, expected)

    alternates = drawn(check.alternates, most, f"{seed} {check.name} alternates")
    mistakes = drawn(check.misconceptions, most, f"{seed} {check.name} misconceptions")
    right = [fault_of("alternate", candidate) for candidate in alternates]
    wrong = [fault_of("misconception", candidate) for candidate in mistakes]
    others = [fault("solution", "", solution, full)] if solution else []
    stubs = (f"def {name}(*_, **__):\n    raise NotImplementedError" for name in check.names)
    others.append(fault("stub", "", "\n\n\n".join(stubs), 0))
    others.append(_fault_of_reference(check, seed))
    faults = tuple(one for one in (*others, *right, *wrong) if one)
    return Proof(wrong.count(None), right.count(None), faults)


def _lost(verdict: Verdict) -> str:
    """Return the parts that lost points, and why, as text."""
    lost = [
        f"{part.name}: {part.problem or part.status}"
        for part in verdict.parts
        if part.earned < part.points and part.status is not Status.NOT_RUN
    ]
    return f" ({'; '.join(lost)})" if lost else ""


def _fault_of_key(check: Check, seed: str) -> Fault | None:
    """Draw the cases and ask the reference; return a fault if that fails."""
    try:
        key = answer_key(check, seed)
        for c in key.cases:
            if not c.not_run:
                key.right(c)
    except MemoryError:  # the machine's fault
        raise
    except Exception as error:  # the check's own code may raise any error
        known = isinstance(error, ValueError | LookupError) and repr(check.name) in str(error)
        said = str(error) if known else f"{type(error).__name__}: {error}"
        return Fault(check.name, "reference", "", f"there is no answer key: {said}", error)
    return None


def _fault_of_reference(check: Check, seed: str) -> Fault | None:
    """Compare the used answer key with a fresh answer key.

    If they agree, the reference is deterministic and keeps no state between calls, and no candidate
    has changed the outcomes for later candidates.
    """
    used, fresh = answer_key(check, seed), AnswerKey(check, seed)
    for c, again in zip(used.cases, fresh.cases, strict=True):
        if not c.not_run and (why := difference(check, used.right(c), fresh.right(again))):
            said = f"a second run of the reference differs: {why}"
            return Fault(check.name, "reference", "", said)
    return None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_selection(parser, seeds=1, prefix="proof")


def run(args: argparse.Namespace, root: Path) -> int:
    """Print the table of all checks; return 1 if a check fails on its own candidates.

    The counts come from the seed with the fewest expected results.
    """
    console = Console()
    faults: list[str] = []
    chosen, seeds = selection(args, root)
    for phase, checks in chosen:
        lab = LabCode.read(phase.lab)
        rows = []
        for check in checks:
            with quiet():
                proofs = [prove(check, seed, lab) for seed in seeds]
                hidden = len(unseen(check, lab))
            for seed, proof in zip(seeds, proofs, strict=True):
                faults += [f"{fault} (seed {seed})" for fault in proof.faults]
            rejected, accepted = min(p.rejected for p in proofs), min(p.accepted for p in proofs)
            rows.append((check, rejected, accepted, hidden))
        console.print(_table(phase.name, rows))
        for check in checks:
            for part, why in check.not_run().items():
                console.print(f"[yellow]not run[/yellow] {check.name}, {part}: {why}")
    for fault in faults:
        console.print(f"[red]fault[/red] {fault}")
    return 1 if faults else 0


def add_selection(parser: argparse.ArgumentParser, seeds: int, prefix: str) -> None:
    """Add the arguments that choose exercises and seeds; ``seeds`` is the default number."""
    parser.add_argument(
        "phase", nargs="*", help="the phases, such as 01_tensors or 01 (default: all)"
    )
    parser.add_argument(
        "--exercise",
        action="append",
        help="take only this exercise; you can use the option several times",
    )
    count = "how many seeds to use; each seed gives other cases (default: %(default)s)"
    parser.add_argument("--seeds", type=int, default=seeds, help=count)
    start = "the text with which each seed begins (default: %(default)s)"
    parser.add_argument("--seed", default=prefix, help=start)


def selection(
    args: argparse.Namespace, root: Path
) -> tuple[list[tuple[PhasePaths, list[Check]]], list[str]]:
    """Read the arguments of :func:`add_selection`.

    Return the chosen phases with their chosen checks, and the seeds. Raises UserError if no
    exercise or no seed is chosen.
    """
    if args.seeds < 1:
        raise UserError("--seeds: expected at least 1")
    every = [(phase, load_checks(phase.folder).values()) for phase in choose(root, args.phase)]
    wanted = [
        (phase, [check for check in checks if not args.exercise or check.name in args.exercise])
        for phase, checks in every
        if phase.lab.exists()
    ]
    chosen = [(phase, checks) for phase, checks in wanted if checks]
    if not chosen:
        raise UserError("no exercise has that name; `python -m hood selftest` lists all exercises")
    return chosen, [f"{args.seed}-{k}" for k in range(args.seeds)]


def _table(title: str, rows: list[tuple[Check, int, int, int]]) -> Table:
    checks, *counts = zip(*rows, strict=True)
    wrong = [len(check.misconceptions) for check in checks]
    most = wrong, [len(check.alternates) for check in checks], wrong
    table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", show_footer=True)
    table.add_column("exercise", f"{len(checks)} exercises")
    table.add_column("points", f"{sum(c.points for c in checks):g}", justify="right")
    names = "misconceptions rejected", "alternates accepted", "pass all visible cells"
    for name, some, every in zip(names, counts, most, strict=True):
        table.add_column(name, f"{sum(some)} of {sum(every)}", justify="right")
    for k, check in enumerate(checks):
        shares = (f"{some[k]} of {every[k]}" for some, every in zip(counts, most, strict=True))
        table.add_row(check.name, f"{check.points:g}", *shares)
    return table
