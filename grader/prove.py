"""Prove the checks: each rejects and names its misconceptions and accepts every right solution.

``python -m grader checks`` runs every check against its own candidates and prints the table; the
test suite does the same with several seeds.
"""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from grader.catalogue import load_checks
from grader.judge import judge
from grader.layout import ROOT, choose
from utils.checks import Candidate, Check


@dataclasses.dataclass(frozen=True)
class Proof:
    """What running a check against its own candidates showed.

    Attributes:
        rejected: misconceptions that earned exactly what was predicted and were named.
        accepted: alternates that earned all points.
        faults: a sentence for each candidate that came out otherwise.
        not_run: the parts that nothing was proven about, and why.
    """

    check: Check
    rejected: int
    accepted: int
    faults: tuple[str, ...]
    not_run: dict[str, str]


def prove(check: Check, seed: str) -> Proof:
    """Run the check against the reference, a stub, every alternate and every misconception."""
    faults = []
    reference = Candidate("reference", check.right, (), check.points)
    for right in (reference, *check.alternates):
        fault = _fault_in(check, right, seed, named=False)
        if fault:
            faults.append(fault)
    stub = _earned_by_stub(check, seed)
    if stub:
        faults.append(f"{check.name}: an untouched stub earns {stub:g}, expected 0")
    wrong = [f for m in check.misconceptions if (f := _fault_in(check, m, seed, named=True))]
    accepted = len(check.alternates) - sum("alternate" in f for f in faults)
    rejected = len(check.misconceptions) - len(wrong)
    return Proof(check, rejected, accepted, (*faults, *wrong), check.not_run())


def _fault_in(check: Check, candidate: Candidate, seed: str, *, named: bool) -> str:
    source = _sources(candidate)
    # the reference may lean on anything: by-hand rules bind learners
    bound = check if candidate.own else dataclasses.replace(check, by_hand=None)
    verdict = judge(bound, candidate.thing, seed, source=source)
    kind = "misconception" if named else "alternate" if candidate.own else "reference"
    said = f"{check.name}: {kind} “{candidate.name}”"
    expected = check.expects(candidate)
    if verdict.earned != expected:
        return f"{said} earns {verdict.earned:g}, expected {expected:g}"
    told = candidate.name in verdict.misconceptions or any(p.broken_rule for p in verdict.parts)
    if named and not told:
        took = ", ".join(verdict.misconceptions) or "nothing"
        return f"{said} is rejected but taken for {took}"
    return ""


def _sources(candidate: Candidate) -> str | dict[str, str]:
    """The candidate's code as the judge wants it: of each function, when there are several."""
    if isinstance(candidate.thing, dict):
        return candidate.sources()
    return candidate.source() if candidate.own else ""


def _earned_by_stub(check: Check, seed: str) -> float:
    def stub(*_, **__):
        raise NotImplementedError

    thing = dict.fromkeys(check.right, stub) if isinstance(check.right, dict) else stub
    return judge(check, thing, seed).earned


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``python -m grader checks``."""
    parser.add_argument("phase", nargs="*", help="such as 01_tensors or 01 (all by default)")
    parser.add_argument("--seed", default="proof", help="draws the cases (default: %(default)s)")


def run(args: argparse.Namespace, root: Path = ROOT) -> int:
    """Print the table of all checks; 1 when a check fails on one of its own candidates."""
    console = Console()
    faults: list[str] = []
    for phase in choose(root, args.phase):
        checks = load_checks(phase.folder)
        if not checks:
            continue
        proofs = [prove(check, args.seed) for check in checks.values()]
        console.print(_table(phase.name, proofs))
        for proof in proofs:
            for part, why in proof.not_run.items():
                console.print(f"[yellow]not run[/yellow] {proof.check.name}, {part}: {why}")
        faults += [fault for proof in proofs for fault in proof.faults]
    for fault in faults:
        console.print(f"[red]fault[/red] {fault}")
    return 1 if faults else 0


def _table(title: str, proofs: list[Proof]) -> Table:
    table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", show_footer=True)
    total = sum(p.check.points for p in proofs)
    rejected = sum(p.rejected for p in proofs), sum(len(p.check.misconceptions) for p in proofs)
    accepted = sum(p.accepted for p in proofs), sum(len(p.check.alternates) for p in proofs)
    table.add_column("exercise", f"{len(proofs)} exercises")
    table.add_column("points", f"{total:g}", justify="right")
    table.add_column("misconceptions rejected", f"{rejected[0]} of {rejected[1]}", justify="right")
    table.add_column("alternates accepted", f"{accepted[0]} of {accepted[1]}", justify="right")
    for proof in proofs:
        table.add_row(
            proof.check.name,
            f"{proof.check.points:g}",
            f"{proof.rejected} of {len(proof.check.misconceptions)}",
            f"{proof.accepted} of {len(proof.check.alternates)}",
        )
    return table
