"""Make sentences on the total of a term: on its rules, and on how a learner's total is computed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

from hood.classroom.rules.schema import ClassRules
from hood.classroom.rules.sentences import percent
from hood.classroom.rules.total import NOUGHT, Standing, Total


def total_sentences(file: ClassRules, weights: Mapping[str, Fraction]) -> Iterator[str]:
    """Yield sentences on the rules of the total; none if the file has no ``total:``.

    Args:
        weights: the weights of the labs, from :func:`hood.classroom.rules.total.weights_of`.
    """
    if (policy := file.total) is None:
        return
    digits = "a whole number" if policy.decimals == 0 else f"{policy.decimals} decimal"
    digits += "s" * (policy.decimals > 1)
    yield (
        f"The total is out of {policy.out_of:g}. Only the total itself is rounded, to {digits} (a "
        "half is rounded up)."
    )
    parts = [f"{lab} {percent(float(weight))}" for lab, weight in weights.items() if weight]
    by = "has a weight" if policy.weights else "has its points as its weight"
    yield (
        f"Each lab {by}: {', '.join(parts)}. A lab's part of the total is its weight times the "
        "share of its points that count."
    )
    if number := policy.drop_lowest:
        which = "One lab is" if number == 1 else f"{number} labs are"
        yield f"{which} dropped for each learner, so that the total is highest."
    yield "A lab that is not handed in counts 0 after its due date."
    yield (
        "A bonus can raise a lab above its maximum and make up for points lost in another lab; "
        f"the total is at most {policy.out_of:g}."
    )


def term_sentences(total: Total) -> Iterator[str]:
    """Yield sentences for a learner on their total and how it is computed."""
    so_far = "" if total.is_final else " so far"
    if total.rounded is None:
        yield f"Total of the term{so_far}: nothing yet."
    else:
        yield f"Total of the term{so_far}: {total.rounded:g} of {total.out_of:g}."
    yield from _why(total)


def why(total: Total) -> str:
    """Return which labs are dropped, count 0 or are missing in a total; empty without such labs."""
    return " ".join(_why(total))


def _why(total: Total) -> Iterator[str]:
    inside = [lab for lab in total.labs if lab.share is not None]
    if dropped := [one.lab for one in inside if one.dropped]:
        yield f"Dropped, because this makes the total highest: {_named(dropped)}."
    for standing in Standing:
        labs = [lab.lab for lab in total.labs if lab.standing is standing]
        if not labs or standing is Standing.COUNTED:
            continue
        if standing is Standing.NOT_ASKED:
            yield f"Not in the total: {_named(labs)} ({standing})."
        elif standing in NOUGHT:
            late = ", and a hand-in will be late" if standing is Standing.MISSING_YET else ""
            yield f"Counts 0: {_named(labs)} ({standing}{late})."
        else:
            yield f"Not in the total yet: {_named(labs)} ({standing})."


def _named(labs: Sequence[str]) -> str:
    *others, last = (f"`{lab}`" for lab in labs)
    return f"{', '.join(others)} and {last}" if others else last
