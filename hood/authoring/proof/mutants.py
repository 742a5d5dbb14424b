"""``python -m hood mutants``: find mistakes that the checks miss.

A mutant is the lab's own solution or an alternate with one small change
(:mod:`hood.authoring.proof.mutate`). Each mutant is judged like an answer, on several seeds. A
mutant that earns full points on any seed survives. Then the check needs another case, or an entry
that says why the change does not matter (:mod:`hood.judge.checks.answers`).
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, TypeVar

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from hood import UserError
from hood.authoring.notebooks.regions import regions_of
from hood.authoring.notebooks.text import parse
from hood.authoring.proof.cpu_limit import limited_to
from hood.authoring.proof.mutate import Mutant, mutants
from hood.authoring.proof.quiet import quiet
from hood.authoring.proof.selftest import LabCode, add_selection, drawn, selection
from hood.grader.course_sandbox import of_course
from hood.judge.checks.answers import Equivalent
from hood.judge.checks.exercise import Check
from hood.judge.connection.rpc_client import InProcess
from hood.judge.connection.settings import usual_settings
from hood.judge.verdicts.answer_key import answer_key
from hood.judge.verdicts.judge import first_failure

# A mutant gets these CPU seconds for the lab's cells, or for the cases of one seed, in addition to
# ten times the seconds of the unchanged code.
LEAST_SECONDS = 0.15
# After this many seeds with a timeout, a mutant also counts as killed on the other seeds.
LATE = 3
SOLUTION = "the lab's solution"

T = TypeVar("T")


@dataclasses.dataclass(frozen=True)
class RightCode:
    """Right code for an exercise, as a whole cell."""

    name: str  # "the lab's solution", or the name of an alternate
    cell: str  # the cell, as a learner would hand it in
    lines: frozenset[int]  # its lines to change, counted from 1
    # This number plus a line number in the cell is the line number in the lab's text. None for an
    # alternate, because the lab does not contain it.
    offset: int | None = None


@dataclasses.dataclass
class Trial:
    """A mutant, and the number of seeds on which it earned full points."""

    right: RightCode
    mutant: Mutant
    survived: int = 0

    def place(self) -> str:
        """Return a text that says where the change is."""
        if self.right.offset is None:
            return f"alternate “{self.right.name}”, line {self.mutant.line}"
        return f"lab.py:{self.mutant.line + self.right.offset}"

    def is_meant(self, line: Equivalent) -> bool:
        """Return whether an entry of the check's answers is about this change."""
        return line.of in ("", self.right.name) and self.mutant.is_edit(line.old, line.new)

    def is_free(self, check: Check) -> bool:
        """Return whether the change is in a text that learners may choose."""
        return any(line.new is None and self.is_meant(line) for line in check.equivalents)


@dataclasses.dataclass(frozen=True)
class Survey:
    """The result for the mutants of one exercise."""

    check: Check
    made: int  # the number of mutants
    # Mutants that survived and are declared in ``same`` or ``free``. A mutant in ``free`` is not
    # judged again after it survived once.
    equivalent: list[Trial]
    survivors: list[Trial]  # the other mutants that survived, on at least one seed
    stale: list[str]  # a sentence about each wrong declaration

    @property
    def killed(self) -> int:
        """The number of mutants that earned less than full points on every seed."""
        return self.made - len(self.equivalent) - len(self.survivors)


def survey(check: Check, seeds: Sequence[str], lab: Path, most: int = 0) -> Survey:
    """Judge the mutants of an exercise.

    ``most`` is the number of mutants to judge; 0 for all of them. The first seed chooses these
    mutants. Raises UserError if the unchanged code does not earn full points.
    """
    code = LabCode.read(lab)
    made = [
        Trial(right, mutant)
        for right in rights(check, lab)
        for mutant in mutants(right.cell, right.lines)
    ]
    trials = drawn(made, most, seeds[0])
    with usual_settings(), of_course().filled_memory(), quiet():
        for right, of_right in groupby(trials, key=lambda trial: trial.right):
            judge = _Judge(check, seeds, code, right)
            for trial in of_right:
                trial.survived = judge.survived(trial.mutant, once=trial.is_free(check))
    alive = [trial for trial in trials if trial.survived]
    explained = [t for t in alive if any(map(t.is_meant, check.equivalents))]
    stale = []
    for line in check.equivalents:
        said = f"`{line.old}` → `{line.new}`" if line.new is not None else f"free `{line.old}`"
        if not any(trial.is_meant(line) for trial in made):
            stale.append(f"{said} is not one of the changes that are tried")
        for t in trials:
            killed = len(seeds) - t.survived
            if killed and t.is_meant(line) and not t.is_free(check):
                stale.append(f"{said} is killed on {killed} of {len(seeds)} seeds: {t.place()}")
    unexplained = [trial for trial in alive if trial not in explained]
    return Survey(check, len(trials), explained, unexplained, stale)


def rights(check: Check, lab: Path) -> Iterator[RightCode]:
    """Yield the lab's own solution of an exercise, and the alternates that have code."""
    cell = next(
        c
        for c in parse(lab.name, lab.read_text(encoding="utf-8")).cells
        if c.header.get("solution") == check.name
    )
    spans = regions_of(cell, "solution")
    lines = frozenset(number for begin, end in spans for number in range(begin + 1, end + 1))
    yield RightCode(SOLUTION, cell.source, lines, cell.line)
    # an alternate that is a value has no code
    for alternate in (a for a in check.alternates if a.sources):
        whole = alternate.cell(check.name, cell.source)
        before = whole.count("\n") - alternate.source().count("\n")
        lines = frozenset(range(before + 1, whole.count("\n") + 2))
        yield RightCode(alternate.name, whole, lines)


class _Judge:
    """Judge the mutants of one piece of right code."""

    def __init__(self, check: Check, seeds: Sequence[str], code: LabCode, right: RightCode):
        self._check, self._code = check, code
        self._keys = [answer_key(check, seed) for seed in seeds]
        self._to_make, thing = _timed(lambda: self._thing(right.cell))
        self._limits = []
        self._suspect = 0
        for key in self._keys:  # a first run without timing, to import and to fill caches
            first_failure(key, InProcess(thing))
        for key in self._keys:
            limit, failed = _timed(partial(first_failure, key, InProcess(thing)))
            self._limits.append(limit)
            if failed is not None:
                raise UserError(
                    f"{check.name}: {right.name} fails a case without any change "
                    f"(seed {key.seed}); see `python -m hood selftest`"
                )

    def survived(self, mutant: Mutant, once: bool = False) -> int:
        """Return on how many seeds a mutant earns full points; 0 if its cell fails.

        ``once`` says whether to stop after the first of these seeds.
        """
        thing = None
        with limited_to(self._to_make), contextlib.suppress(Exception):
            thing = self._thing(mutant.code)
        if thing is None:
            return 0
        survived = late = 0
        for key, limit in zip(self._keys, self._limits, strict=True):
            if late == LATE or (once and survived):
                break
            failed: int | None = self._suspect
            with limited_to(limit) as rang:
                failed = first_failure(key, InProcess(thing), self._suspect)
            late += bool(rang)
            if failed is None:
                survived += 1
            else:
                self._suspect = failed  # first play the case that the last mutant failed
        return survived

    def _thing(self, cell: str) -> Any:
        return self._check.thing_in(self._code.names_after(cell))


def _timed(work: Callable[[], T]) -> tuple[float, T]:
    """Do some work; return the CPU seconds that a mutant gets for it, and the work's result."""
    began = time.process_time()
    found = work()
    return LEAST_SECONDS + 10 * (time.process_time() - began), found


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_selection(parser, seeds=3, prefix="mutants")


def run(args: argparse.Namespace, root: Path, console: Console | None = None) -> int:
    """Print the results of the mutants; return 1 if any survived or a declaration is stale."""
    console = console or Console()
    chosen, seeds = selection(args, root)
    failed = False
    for phase, checks in chosen:
        surveys = [survey(check, seeds, phase.lab) for check in checks]
        rows = [(s.made, s.killed, len(s.equivalent), len(s.survivors)) for s in surveys]
        table = Table(title=phase.name, box=box.SIMPLE_HEAD, title_justify="left", show_footer=True)
        table.add_column("exercise", f"{len(surveys)} exercises")
        names = "mutants", "killed", "equivalent", "survivors"
        for name, numbers in zip(names, zip(*rows, strict=True), strict=True):
            table.add_column(name, str(sum(numbers)), justify="right")
        for s, row in zip(surveys, rows, strict=True):
            table.add_row(s.check.name, *map(str, row))
        console.print(table)
        for s in surveys:
            failed |= bool(s.survivors or s.stale)
            for t in s.survivors:
                often = f"on {t.survived} of {len(seeds)} seeds"
                said = escape(f"{s.check.name}, {t.place()}, {often}: {t.mutant}")
                console.print(f"[yellow]survived[/yellow] {said}", soft_wrap=True)
            for line in s.stale:
                said = escape(f"{s.check.name}: {line}")
                console.print(f"[red]stale[/red] {said}", soft_wrap=True)
    return int(failed)
