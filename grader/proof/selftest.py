"""Test that each check rejects and names its misconceptions and accepts every right solution.

``python -m grader selftest`` runs every check against its own candidates and prints the table; the
test suite does the same with a seed that is new in each run. A candidate runs among the lab's own
cells, as it would in a learner's notebook, and is judged once for each seed.
"""

from __future__ import annotations

import argparse
import builtins
import dataclasses
import linecache
import sys
import types
import warnings
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from rich import box
from rich.console import Console
from rich.table import Table

from grader import UserError
from grader.authoring.text import parse
from grader.judging.answer_key import AnswerKey, answer_key
from grader.judging.catalogue import load_checks
from grader.judging.difference import difference
from grader.judging.judge import judge
from grader.judging.learner_source import Written, names_read_by
from grader.phase_paths import ROOT, PhasePaths, choose
from grader.proof.visible_cells import refusal, visible_cells, with_inner_classes
from grader.verdict import Cause, Verdict
from utils.checks.exercise import Candidate, Check

T = TypeVar("T")

CELLS = "__cells__"  # the module that stands for a notebook's


@dataclasses.dataclass(frozen=True)
class LabCode:
    """The code cells of a lab's text, among which a candidate runs.

    Attributes:
        given: the cells that come with the lab, in order.
        solutions: by exercise, the solution cell of the lab's text.
        visible: by exercise, the code below the solution cell that a learner can see.
    """

    given: tuple[str, ...] = ()
    solutions: Mapping[str, str] = dataclasses.field(default_factory=dict)
    visible: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> LabCode:
        """Read the code of a lab's text; there is none if the phase has no lab."""
        if not path.exists():
            return cls()
        cells = parse(path.name, path.read_text(encoding="utf-8")).cells
        return cls(
            tuple(cell.source for cell in cells if "given" in cell.header),
            {c.header["solution"]: c.source for c in cells if "solution" in c.header},
            visible_cells(cells),
        )

    def names_after(self, cell: str) -> dict[str, Any]:
        """Run the given cells and then another cell; return what is then defined, by name.

        Raises:
            Exception: anything that the cell raises.
        """
        # A module that can be found under its name, as a compiler's guards want it.
        module = sys.modules[CELLS] = types.ModuleType(CELLS)
        names: dict[str, Any] = vars(module)
        for code in self._given_compiled:
            exec(code, names)
        # Triton's decorators read a function's source, and find it here, as in a notebook.
        file = f"<solution {hash(cell):x}>"
        linecache.cache[file] = len(cell), None, cell.splitlines(keepends=True), file
        exec(compile(cell, file, "exec"), names)
        return names

    @cached_property
    def _given_compiled(self) -> list[Any]:
        return [compile(cell, "<given>", "exec") for cell in self.given]


@dataclasses.dataclass(frozen=True)
class Proof:
    """The result of a check with its own candidates.

    Attributes:
        rejected: the number of misconceptions that earned the predicted points and were named.
        accepted: the number of alternates that earned the expected points.
        faults: a sentence for each candidate with another result.
        not_run: the parts that could not be run here, and why.
    """

    check: Check
    rejected: int
    accepted: int
    faults: tuple[str, ...]
    not_run: dict[str, str]


def stops(lab: LabCode, exercise: str, cell: str) -> str:
    """Return the error that the visible cells of an exercise raise for a solution cell, or "".

    Raises:
        Exception: anything that the solution cell raises.
    """
    return refusal(lab.visible.get(exercise, ()), lab.names_after(with_inner_classes(cell)))


def unseen(check: Check, lab: LabCode) -> list[str]:
    """Return the misconceptions that pass every visible cell, so that only grading finds them."""
    solution = lab.solutions.get(check.name, "")
    return [
        candidate.name
        for candidate in check.misconceptions
        if not stops(lab, check.name, candidate.cell(check.name, solution))
    ]


def prove(check: Check, seed: str, lab: LabCode, most: int = 0) -> Proof:
    """Run a check against its candidates, the lab's solution, a stub, and its reference again.

    Args:
        most: how many alternates, and how many misconceptions, are run; the seed draws them. If
            0, all of them.
    """
    missing = check.not_run()
    trial = _Trial(check, seed, lab, missing)
    alternates = drawn(check.alternates, most, f"{seed} {check.name} alternates")
    mistakes = drawn(check.misconceptions, most, f"{seed} {check.name} misconceptions")
    right = [f for candidate in alternates if (f := trial.of_alternate(candidate))]
    wrong = [f for candidate in mistakes if (f := trial.of_misconception(candidate))]
    others = [f for f in (trial.of_solution(), trial.of_stub(), trial.of_reference()) if f]
    return Proof(
        check,
        rejected=len(mistakes) - len(wrong),
        accepted=len(alternates) - len(right),
        faults=(*others, *right, *wrong),
        not_run=missing,
    )


def prove_often(check: Check, seeds: Sequence[str], lab: LabCode) -> Proof:
    """Run a check against all of its candidates on several seeds.

    The counts are those of the seed on which the fewest came out as predicted.
    """
    proofs = [prove(check, seed, lab) for seed in seeds]
    faults = [f"{f} (seed {seed})" for seed, p in zip(seeds, proofs, strict=True) for f in p.faults]
    return dataclasses.replace(
        proofs[0],
        rejected=min(p.rejected for p in proofs),
        accepted=min(p.accepted for p in proofs),
        faults=tuple(faults),
    )


def drawn(things: Sequence[T], most: int, seed: str) -> list[T]:
    """Return at most so many of some things, in their order; all of them if ``most`` is 0."""
    if not most or len(things) <= most:
        return list(things)
    chosen = sorted(Random(seed).sample(range(len(things)), most))
    return [things[k] for k in chosen]


@dataclasses.dataclass(frozen=True)
class _Trial:
    """A check with one seed; each method returns a fault as a sentence, or an empty string."""

    check: Check
    seed: str
    lab: LabCode
    missing: dict[str, str]

    def of_reference(self) -> str:
        """Compare the answer key that was used with a fresh one.

        If they agree, the reference is deterministic and keeps no state between calls, and no
        candidate has changed the outcomes that the next one was compared with.
        """
        check = self.check
        used, fresh = answer_key(check, self.seed), AnswerKey(check, self.seed)
        for c, again in zip(used.cases, fresh.cases, strict=True):
            if not c.not_run and (why := difference(check, used.right(c), fresh.right(again))):
                return f"{check.name}: the reference, asked again, differs: {why}"
        return ""

    def of_solution(self) -> str:
        cell = self.lab.solutions.get(self.check.name)
        if cell is None:
            return ""
        return self._fault("the lab's solution", cell, self.check.earnable(self.missing))

    def of_stub(self) -> str:
        def stub(*_: Any, **__: Any) -> None:
            raise NotImplementedError

        right = self.check.right
        thing = dict.fromkeys(right, stub) if isinstance(right, dict) else stub
        return self._unexpected("an untouched stub", judge(self.check, thing, self.seed), 0)

    def of_alternate(self, candidate: Candidate) -> str:
        return self._fault(f"alternate “{candidate.name}”", *self._handed_in(candidate))

    def of_misconception(self, candidate: Candidate) -> str:
        said = f"misconception “{candidate.name}”"
        return self._fault(said, *self._handed_in(candidate), named=candidate.name)

    def _handed_in(self, candidate: Candidate) -> tuple[str, float]:
        cell = candidate.cell(self.check.name, self.lab.solutions.get(self.check.name, ""))
        return cell, self.check.expects(candidate, self.missing)

    def _fault(self, said: str, cell: str, expected: float, named: str = "") -> str:
        """Run a solution cell and judge what it defines.

        Args:
            named: the misconception that must be named, unless a rule is broken; or empty.
        """
        check = self.check
        try:
            names = self.lab.names_after(cell)
        except Exception as error:
            return f"{check.name}: {said} does not run: {type(error).__name__}: {error}"
        written = Written([*self.lab.given, cell])
        sources = {name: written.behind(name) for name in check.names}
        if unknown := _unknown(sources.values(), names):
            return f"{check.name}: {said} uses {unknown}, which the lab does not define"
        verdict = judge(check, check.thing_in(names), self.seed, source=written)
        if unexpected := self._unexpected(said, verdict, expected):
            return unexpected
        told = named in verdict.misconceptions or any(
            part.cause is Cause.RULE_BROKEN for part in verdict.parts
        )
        if named and not told:
            took = ", ".join(verdict.misconceptions) or "nothing"
            return f"{check.name}: {said} is rejected but taken for {took}"
        return ""

    def _unexpected(self, said: str, verdict: Verdict, expected: float) -> str:
        if verdict.earned == expected:
            return ""
        return f"{self.check.name}: {said} earns {verdict.earned:g}, expected {expected:g}"


def _unknown(sources: Iterable[str], names: Mapping[str, Any]) -> str:
    """Return the global names that code reads and nothing defines, separated by commas."""
    read = {name for source in sources for name in names_read_by(source)}
    return ", ".join(sorted(n for n in read if n not in names and not hasattr(builtins, n)))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``python -m grader selftest``."""
    add_selection(parser, seeds=1, prefix="proof")


def run(args: argparse.Namespace, root: Path = ROOT) -> int:
    """Print the table of all checks; return 1 if one fails on its own candidates.

    Raises:
        UserError: if there is no exercise to test, or no seed.
    """
    console = Console()
    faults: list[str] = []
    chosen, seeds = selection(args, root)
    for phase, checks in chosen:
        lab = LabCode.read(phase.lab)
        with warnings.catch_warnings(action="ignore"):  # wrong solutions cause them
            proofs = [prove_often(check, seeds, lab) for check in checks]
            hidden = [len(unseen(check, lab)) for check in checks]
        console.print(_table(phase.name, proofs, hidden))
        for proof in proofs:
            for part, why in proof.not_run.items():
                console.print(f"[yellow]not run[/yellow] {proof.check.name}, {part}: {why}")
        faults += [fault for proof in proofs for fault in proof.faults]
    for fault in faults:
        console.print(f"[red]fault[/red] {fault}")
    return 1 if faults else 0


def add_selection(parser: argparse.ArgumentParser, seeds: int, prefix: str) -> None:
    """Add the arguments that say which exercises are tried, and on which seeds.

    Args:
        seeds: how many seeds there are by default.
        prefix: what their names begin with by default.
    """
    parser.add_argument("phase", nargs="*", help="such as 01_tensors or 01 (all by default)")
    parser.add_argument("--exercise", action="append", help="only this exercise; may be repeated")
    count = "how many seeds draw the cases (default: %(default)s)"
    parser.add_argument("--seeds", type=int, default=seeds, help=count)
    start = "what the seeds' names begin with (default: %(default)s)"
    parser.add_argument("--seed", default=prefix, help=start)


def selection(
    args: argparse.Namespace, root: Path
) -> tuple[list[tuple[PhasePaths, list[Check]]], list[str]]:
    """Read the arguments of :func:`add_selection`.

    Returns:
        Each phase that has an exercise among the chosen ones, with the checks of these; the seeds.

    Raises:
        UserError: if no exercise or no seed is chosen.
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
        raise UserError("no exercise of that name; `python -m grader selftest` lists them all")
    return chosen, [f"{args.seed}-{k}" for k in range(args.seeds)]


def _table(title: str, proofs: list[Proof], hidden: list[int]) -> Table:
    table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", show_footer=True)
    total = sum(p.check.points for p in proofs)
    rejected = sum(p.rejected for p in proofs), sum(len(p.check.misconceptions) for p in proofs)
    accepted = sum(p.accepted for p in proofs), sum(len(p.check.alternates) for p in proofs)
    table.add_column("exercise", f"{len(proofs)} exercises")
    table.add_column("points", f"{total:g}", justify="right")
    table.add_column("misconceptions rejected", f"{rejected[0]} of {rejected[1]}", justify="right")
    table.add_column("alternates accepted", f"{accepted[0]} of {accepted[1]}", justify="right")
    every = f"{sum(hidden)} of {rejected[1]}"
    table.add_column("pass all visible cells", every, justify="right")
    for proof, passing in zip(proofs, hidden, strict=True):
        table.add_row(
            proof.check.name,
            f"{proof.check.points:g}",
            f"{proof.rejected} of {len(proof.check.misconceptions)}",
            f"{proof.accepted} of {len(proof.check.alternates)}",
            f"{passing} of {len(proof.check.misconceptions)}",
        )
    return table
