"""``python -m hood claims``: count the points that rest on claims and on rules for work by hand.

A part of an exercise rests on a claim if one of its cases compares a fact that only the learner's
process reports: a driver's observation, shared storage, or a claim that a case states in words. The
part rests on a rule if a learner who breaks the rule loses the part's points. A learner who forges
the claim, or evades the rule, may get these points without the exercise's work. But this learner
may still have to do a part of the work. So the count may be too large, but never too small.

One claim is not counted: that inputs did not change. A learner who forges this claim must still
compute the values.
"""

from __future__ import annotations

import argparse
import dataclasses
import re
import warnings
from collections.abc import Mapping
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from hood import UserError
from hood.atomic_files import write_whole
from hood.authoring.proof.selftest import add_selection, selection
from hood.judge.checks.exercise import Check
from hood.judge.connection.drivers import INPUTS_KEPT
from hood.judge.connection.settings import usual_settings
from hood.judge.verdicts.answer_key import AnswerKey

PAGE = "docs/explanation/walls.md"
COMMAND = "python -m hood claims --write"
BEGIN, END = f"<!-- `{COMMAND}` makes this table -->\n", "<!-- end of the table -->\n"
HEAD = "points", "on claims", "on rules", "on either"
TOTAL = "all labs"
ROW = re.compile(r"\| (\d\w+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \(\d+ %\) \|")


@dataclasses.dataclass(frozen=True)
class Count:
    """The points of one exercise, or of many exercises."""

    points: float = 0.0
    claims: float = 0.0  # points that rest on a claim
    rules: float = 0.0  # points that rest on a rule for work by hand
    either: float = 0.0  # points that rest on a claim, on a rule, or on both

    def __add__(self, other: Count) -> Count:
        pairs = zip(dataclasses.astuple(self), dataclasses.astuple(other), strict=True)
        return Count(*(one + another for one, another in pairs))

    def cells(self) -> tuple[str, ...]:
        """Return the cells of this count's row in the table."""
        points, claims, rules, either = (f"{n:g}" for n in dataclasses.astuple(self))
        share = 100 * self.either / self.points if self.points else 0.0
        return points, claims, rules, f"{either} ({share:.0f} %)"


def count(check: Check, seed: str) -> Count:
    """Count the points of an exercise.

    The count rests on the values that the reference returns in the cases of one seed.

    Raises UserError if this machine can't run all parts of the exercise.
    """
    if lacking := check.not_run():
        said = "; ".join(f"{part}: {why}" for part, why in lacking.items())
        raise UserError(f"{check.name} can't be counted on this machine: {said}")
    with usual_settings(), warnings.catch_warnings(action="ignore"):
        key = AnswerKey(check, seed)
        claims = {c.part for c in key.cases if {*key.right(c).claims} - {INPUTS_KEPT}}
        if check.sharing:
            shares = {c.part for c in key.cases if any(call.shares for call in key.right(c).calls)}
            claims |= shares
    rule = check.by_hand
    rules = {part for part in check.parts if rule and rule.holds_for(part)}
    found = claims, rules, claims | rules
    return Count(check.points, *(sum(check.parts[part] for part in some) for some in found))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_selection(parser, seeds=1, prefix="claims")
    said = f"write the rows of labs with all their exercises into the table in {PAGE}"
    parser.add_argument("--write", action="store_true", help=said)


def run(args: argparse.Namespace, root: Path) -> int:
    """Print a table for each lab, with a row for each exercise, and a table of all labs."""
    console = Console()
    if args.write and args.exercise:
        raise UserError("--write: expected whole labs, so leave --exercise out")
    chosen, seeds = selection(args, root)
    labs = {}
    for phase, checks in chosen:
        counts = {check.name: count(check, seeds[0]) for check in checks}
        labs[phase.name] = sum(counts.values(), Count())
        console.print(_table(phase.name, "exercise", counts, phase.name))
    if len(labs) > 1:
        console.print(_table("all", "lab", labs, TOTAL))
    if args.write:
        page = root / PAGE
        content = page.read_text(encoding="utf-8")
        write_whole(page, with_rows(content, labs).encode())
    return 0


def _table(title: str, what: str, counts: Mapping[str, Count], total: str) -> Table:
    sums = sum(counts.values(), Count()).cells()
    table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", show_footer=True)
    table.add_column(what, total)
    for name, footer in zip(HEAD, sums, strict=True):
        table.add_column(name, footer, justify="right")
    for name, one in counts.items():
        table.add_row(name, *one.cells())
    return table


def rows_of(content: str) -> dict[str, Count]:
    """Return the counts in a page's table: lab -> counts.

    Raises UserError if the page lacks the lines around the table.
    """
    _, found, rest = content.partition(BEGIN)
    table, ended, _ = rest.partition(END)
    if not (found and ended):
        raise UserError(
            f"{PAGE}: expected the lines {BEGIN.strip()!r} and {END.strip()!r} around the table"
        )
    return {name: Count(*map(float, numbers)) for name, *numbers in ROW.findall(table)}


def with_rows(content: str, labs: Mapping[str, Count]) -> str:
    """Return a page with new counts in its table. Labs not in ``labs`` keep their counts."""
    counts = dict(sorted((rows_of(content) | dict(labs)).items()))
    rows = [("lab", *HEAD), ("---", *("---:" for _ in HEAD))]
    rows += [(name, *one.cells()) for name, one in counts.items()]
    rows.append((f"**{TOTAL}**", *sum(counts.values(), Count()).cells()))
    table = "".join(f"| {' | '.join(row)} |\n" for row in rows)
    before, _, rest = content.partition(BEGIN)
    return f"{before}{BEGIN}\n{table}\n{END}{rest.partition(END)[2]}"
