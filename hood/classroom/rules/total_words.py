"""Say the total of a term in words: its rules, and how a learner's came about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

from hood.classroom.rules.schema import ClassRules
from hood.classroom.rules.sentences import percent
from hood.classroom.rules.total import NOUGHT, Standing, Total


def total_sentences(file: ClassRules, weights: Mapping[str, Fraction]) -> Iterator[str]:
    """Yield what the rules of the total mean, a sentence each; nothing without ``total:``.

    Args:
        weights: as :func:`hood.classroom.rules.total.weights_of` gives them.
    """
    if (policy := file.total) is None:
        return
    digits = "a whole number" if policy.decimals == 0 else f"{policy.decimals} decimal"
    digits += "s" * (policy.decimals > 1)
    yield (
        f"The total is out of {policy.out_of:g}, rounded to {digits}, a half up; nothing before it "
        "is rounded."
    )
    parts = [f"{lab} {percent(float(weight))}" for lab, weight in weights.items() if weight]
    by = "has a weight" if policy.weights else "weighs what it counts"
    yield f"Each lab {by}: {', '.join(parts)}. It adds that times the share of its points."
    if number := policy.drop_lowest:
        which = "One lab is" if number == 1 else f"{number} labs are"
        those = "the one" if number == 1 else "those"
        yield f"{which} dropped for each learner: {those} without which the total is highest."
    yield "A lab that is not handed in counts 0 after its due date."
    yield (
        "A bonus lifts a lab above its maximum, and so makes up for another; the total is at most "
        f"{policy.out_of:g}."
    )


def term_sentences(total: Total) -> Iterator[str]:
    """Yield a learner's total, and how it came about, for its learner."""
    so_far = "" if total.is_final else " so far"
    if total.rounded is None:
        yield f"Of the term{so_far}: nothing yet."
    else:
        yield f"Of the term{so_far}: {total.rounded:g} of {total.out_of:g}."
    yield from _why(total)


def why(total: Total) -> str:
    """Return how a total came about, and what it waits for; empty where all labs just count."""
    return " ".join(_why(total))


def _why(total: Total) -> Iterator[str]:
    inside = [lab for lab in total.labs if lab.share is not None]
    if dropped := [one.lab for one in inside if one.dropped]:
        yield f"Dropped, because the total is highest without: {_named(dropped)}."
    for standing in Standing:
        labs = [lab.lab for lab in total.labs if lab.standing is standing]
        if not labs or standing is Standing.COUNTED:
            continue
        if standing is Standing.NOT_ASKED:
            yield f"Not in it: {_named(labs)} ({standing})."
        elif standing in NOUGHT:
            late = ", and counts late if it comes" if standing is Standing.MISSING_YET else ""
            yield f"Counts 0: {_named(labs)} ({standing}{late})."
        else:
            yield f"Not in it yet: {_named(labs)} ({standing})."


def _named(labs: Sequence[str]) -> str:
    *others, last = (f"`{lab}`" for lab in labs)
    return f"{', '.join(others)} and {last}" if others else last
