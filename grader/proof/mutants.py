"""``python -m grader mutants``: find mistakes that the checks miss.

A mutant is the lab's own solution or an alternate with one small change
(:mod:`grader.proof.mutate`). Each is judged like an answer, on several seeds. A mutant that earns
full points on any seed survives. Then the check needs another case, or a line that says why the
change makes no difference (:meth:`utils.checks.exercise.Check.equivalent`).
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import gc
import json
import signal
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

import torch
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from grader import UserError
from grader.authoring.regions import regions_of
from grader.authoring.text import parse
from grader.judging.answer_key import answer_key
from grader.judging.judge import first_failure, one_thread
from grader.judging.rpc_client import InProcess, OutOfTime
from grader.phase_paths import ROOT
from grader.proof.mutate import Mutant, mutants
from grader.proof.selftest import LabCode, add_selection, drawn, selection
from utils.checks.exercise import Check, Equivalent

# CPU seconds that a mutant gets for the lab's cells, or for the cases of one seed, in addition to
# ten times what the unchanged code takes.
LEAST_SECONDS = 0.15
# On how many seeds a mutant's time may run out; it counts as killed on the others, too.
LATE = 3
SOLUTION = "the lab's solution"

T = TypeVar("T")


@dataclasses.dataclass(frozen=True)
class Right:
    """Right code, as a whole cell.

    Attributes:
        name: "the lab's solution", or the name of an alternate.
        cell: the cell, as a learner would hand it in.
        lines: the lines of it to change, counted from 1.
        offset: what to add to a line number of the cell to get that in the lab's text; None for an
            alternate.
    """

    name: str
    cell: str
    lines: frozenset[int]
    offset: int | None = None


@dataclasses.dataclass(frozen=True)
class Trial:
    """A judged mutant.

    Attributes:
        survived: the number of seeds on which it earned full points; at most 1 for a change of what
            is free.
    """

    right: Right
    mutant: Mutant
    survived: int
    seeds: int

    def place(self) -> str:
        """Return where the change is, for a reader."""
        if self.right.offset is None:
            return f"alternate “{self.right.name}”, line {self.mutant.line}"
        return f"lab.py:{self.mutant.line + self.right.offset}"


@dataclasses.dataclass(frozen=True)
class Survey:
    """The result for the mutants of one exercise.

    Attributes:
        killed: the number of mutants that earned less than full points on every seed.
        equivalent: mutants that survived and are declared to make no difference.
        survivors: the other mutants that survived.
        stale: for each wrong declaration, a sentence that says what is wrong.
        seconds: CPU seconds that it took.
    """

    check: Check
    killed: int
    equivalent: tuple[Trial, ...]
    survivors: tuple[Trial, ...]
    stale: tuple[str, ...]
    seconds: float

    @property
    def made(self) -> int:
        """The number of mutants."""
        return self.killed + len(self.equivalent) + len(self.survivors)


def survey(check: Check, seeds: Sequence[str], lab: Path, most: int = 0) -> Survey:
    """Judge the mutants of an exercise.

    Args:
        most: the number of mutants to judge, drawn by the first seed; 0 for all of them.

    Raises:
        UserError: if the unchanged code does not earn full points.
    """
    began = time.process_time()
    code = LabCode.read(lab)
    made = [
        Trial(right, mutant, 0, len(seeds))
        for right in rights(check, lab)
        for mutant in mutants(right.cell, right.lines)
    ]
    chosen = drawn(made, most, seeds[0])
    trials = []
    with one_thread(), _filled_memory(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # mutants cause many warnings
        for right, of_right in groupby(chosen, key=lambda trial: trial.right):
            judge = _Judge(check, seeds, code, right)
            trials += [
                dataclasses.replace(
                    trial, survived=judge.survived(trial.mutant, once=_is_free(check, trial))
                )
                for trial in of_right
            ]
    alive = [trial for trial in trials if trial.survived]
    explained = [t for t in alive if any(_is_about(line, t) for line in check.equivalents)]
    return Survey(
        check,
        killed=len(trials) - len(alive),
        equivalent=tuple(explained),
        survivors=tuple(trial for trial in alive if trial not in explained),
        stale=tuple(_stale(check, made, trials)),
        seconds=time.process_time() - began,
    )


@contextlib.contextmanager
def _filled_memory() -> Iterator[None]:
    """Fill the result of ``torch.empty`` with NaN, so that no mutant survives by chance."""
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before)


def rights(check: Check, lab: Path) -> Iterator[Right]:
    """Yield the lab's own solution of an exercise, and the alternates that have code."""
    cell = next(
        c
        for c in parse(lab.name, lab.read_text(encoding="utf-8")).cells
        if c.header.get("solution") == check.name
    )
    spans = regions_of(cell, "solution")
    lines = frozenset(number for begin, end in spans for number in range(begin + 1, end + 1))
    yield Right(SOLUTION, cell.source, lines, cell.line)
    for alternate in (a for a in check.alternates if a.own):  # a value has no code
        whole = alternate.cell(check.name, cell.source)
        before = whole.count("\n") - alternate.source().count("\n")
        lines = frozenset(range(before + 1, whole.count("\n") + 2))
        yield Right(alternate.name, whole, lines)


class _Judge:
    """Judge the mutants of one piece of right code.

    Raises:
        UserError: if the right code fails a case.
    """

    def __init__(self, check: Check, seeds: Sequence[str], code: LabCode, right: Right):
        self._check, self._code = check, code
        self._keys = [answer_key(check, seed) for seed in seeds]
        self._to_make, thing = _timed(lambda: self._thing(right.cell))
        self._limits = []
        self._suspect = 0
        for key in self._keys:  # not timed: imports and caches, which may not hold every seed
            first_failure(key, InProcess(thing))
        for key in self._keys:
            limit, failed = _timed(partial(first_failure, key, InProcess(thing)))
            self._limits.append(limit)
            if failed is not None:
                raise UserError(
                    f"{check.name}: {right.name} fails a case without any change "
                    f"(seed {key.seed}); see `python -m grader selftest`"
                )

    def survived(self, mutant: Mutant, once: bool = False) -> int:
        """Return on how many seeds a mutant earns full points; 0 if its cell does not end well.

        Args:
            once: whether to stop after the first of these seeds.
        """
        thing = None
        with _Alarm(self._to_make), contextlib.suppress(Exception):
            thing = self._thing(mutant.code)
        if thing is None:
            return 0
        survived, suspect = 0, self._suspect  # the case that the last mutant failed, played first
        late = 0
        for key, limit in zip(self._keys, self._limits, strict=True):
            if late == LATE or (once and survived):
                break
            failed: int | None = suspect
            with _Alarm(limit) as alarm:
                failed = first_failure(key, InProcess(thing), suspect)
            late += alarm.rang
            if failed is None:
                survived += 1
            else:
                self._suspect = suspect = failed
        return survived

    def _thing(self, cell: str) -> Any:
        return self._check.thing_in(self._code.names_after(cell))


def _timed(work: Callable[[], T]) -> tuple[float, T]:
    """Run some work; return the CPU seconds that a mutant of it may take, and its result."""
    began = time.process_time()
    found = work()
    return LEAST_SECONDS + 10 * (time.process_time() - began), found


class _Alarm:
    """A context that silently ends its block after some seconds of CPU time.

    A Ctrl-C of the user inside the block still raises KeyboardInterrupt. Garbage collection is off
    in the block, because it can take longer than the block itself.

    Attributes:
        rang: whether the block was ended.
    """

    def __init__(self, seconds: float):
        self._seconds = seconds
        self.rang = False

    def __enter__(self) -> _Alarm:
        self._collects = gc.isenabled()
        gc.disable()
        self._before = signal.signal(signal.SIGPROF, self._ring)
        # repeatedly, because the code may catch the exception
        signal.setitimer(signal.ITIMER_PROF, self._seconds, self._seconds)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, self._before)
        if self._collects:
            gc.enable()
        if kind is None or not issubclass(kind, (KeyboardInterrupt, OutOfTime)):
            return False
        if not self.rang:
            raise KeyboardInterrupt
        return True

    def _ring(self, number: int, frame: FrameType | None) -> None:
        self.rang = True
        raise KeyboardInterrupt


def _is_about(line: Equivalent, trial: Trial) -> bool:
    return line.of in ("", trial.right.name) and trial.mutant.is_edit(line.old, line.new)


def _is_free(check: Check, trial: Trial) -> bool:
    return any(line.new is None and _is_about(line, trial) for line in check.equivalents)


def _stale(check: Check, made: list[Trial], trials: list[Trial]) -> Iterator[str]:
    for line in check.equivalents:
        meant = [t for t in trials if _is_about(line, t) and not _is_free(check, t)]
        said = f"`{line.old}` → `{line.new}`" if line.new is not None else f"free `{line.old}`"
        if not any(_is_about(line, trial) for trial in made):
            yield f"{said} is none of the changes that are tried"
        for trial in meant:
            if trial.survived < trial.seeds:
                killed = trial.seeds - trial.survived
                yield f"{said} is killed on {killed} of {trial.seeds} seeds: {trial.place()}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``python -m grader mutants``."""
    add_selection(parser, seeds=3, prefix="mutants")
    parser.add_argument("--json", action="store_true", help="print the results as JSON")


def run(args: argparse.Namespace, root: Path = ROOT, console: Console | None = None) -> int:
    """Judge the mutants of each exercise and print the results.

    Returns:
        1 if a mutant survived or a declaration is stale, else 0.

    Raises:
        UserError: if there is no exercise to judge, or if its unchanged code fails.
    """
    console = console or Console()
    chosen, seeds = selection(args, root)
    found: dict[str, list[Survey]] = {}
    for phase, checks in chosen:
        found[phase.name] = [survey(check, seeds, phase.lab) for check in checks]
        if not args.json:
            _print(console, phase.name, found[phase.name])
    if args.json:
        plain = {name: [_plain(s) for s in each] for name, each in found.items()}
        print(json.dumps(plain, indent=1))
    return int(any(s.survivors or s.stale for each in found.values() for s in each))


def _print(console: Console, title: str, surveys: list[Survey]) -> None:
    columns = {
        "mutants": [s.made for s in surveys],
        "killed": [s.killed for s in surveys],
        "equivalent": [len(s.equivalent) for s in surveys],
        "survivors": [len(s.survivors) for s in surveys],
    }
    table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", show_footer=True)
    table.add_column("exercise", f"{len(surveys)} exercises")
    for name, numbers in columns.items():
        table.add_column(name, str(sum(numbers)), justify="right")
    table.add_column("CPU", f"{sum(s.seconds for s in surveys):.1f} s", justify="right")
    for k, s in enumerate(surveys):
        row = [str(column[k]) for column in columns.values()]
        table.add_row(s.check.name, *row, f"{s.seconds:.1f} s")
    console.print(table)
    for s in surveys:
        for t in s.survivors:
            often = f"on {t.survived} of {t.seeds} seeds"
            said = escape(f"{s.check.name}, {t.place()}, {often}: {t.mutant}")
            console.print(f"[yellow]survived[/yellow] {said}", soft_wrap=True)
        for line in s.stale:
            console.print(f"[red]stale[/red] {escape(f'{s.check.name}: {line}')}", soft_wrap=True)


def _plain(s: Survey) -> dict[str, Any]:
    def trial(t: Trial) -> dict[str, Any]:
        place = {"of": t.right.name, "line": t.mutant.line + (t.right.offset or 0)}
        change = {"was": t.mutant.was, "now": t.mutant.now}
        return place | change | {"survived": t.survived, "seeds": t.seeds}

    return {
        "exercise": s.check.name,
        "mutants": s.made,
        "killed": s.killed,
        "equivalent": [trial(t) for t in s.equivalent],
        "survivors": [trial(t) for t in s.survivors],
        "stale": list(s.stale),
        "cpu_seconds": round(s.seconds, 2),
    }
