"""Describe how two outcomes of the same case differ, in words without hidden values.

The words for two values that differ are in :mod:`hood.judge.checks.compare`.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from hood.judge.checks.compare import MISSING_RETURN, Difference, agree, compare, with_article
from hood.judge.checks.exercise import Case, Check, Place
from hood.judge.checks.guess import hedged
from hood.judge.verdicts.outcome import OTHER_KIND, CaseOutcome
from hood.judge.verdicts.subject import CallEffects

Places = Mapping[str, str | Place]  # as hood.judge.checks.exercise.Case has them
NOWHERE: Places = MappingProxyType({})


@dataclass(frozen=True)
class Finding:
    """What is wrong with the outcome of one case."""

    words: str  # a clause without hidden values
    quoted: str = ""  # the message of the learner's exception, which follows the clause; or empty

    def __str__(self) -> str:
        return f"{self.words}: {self.quoted}" if self.quoted else self.words


def in_case(case: Case, found: Finding) -> str:
    """Return what is wrong in a case, after the case's own words for what it asks."""
    return f"{case.shown}: {found}" if case.shown else str(found)


def difference(
    check: Check, got: CaseOutcome, want: CaseOutcome, places: Places | None = NOWHERE
) -> Finding | None:
    """Compare the learner's outcome with the reference's.

    ``places`` are descriptions of places in the value; None if nobody reads what is found. It
    returns what is wrong; None if the outcomes agree. Raises MemoryError if this machine has too
    little memory, which does not count against the code.
    """
    try:
        return _difference(check, got, want, places)
    except MemoryError:
        raise
    except Exception:  # the learner's process may send values of any form
        return Finding(f"returned {OTHER_KIND}")


def differs(check: Check, got: CaseOutcome, want: CaseOutcome) -> bool:
    """Whether there is a :func:`difference`; much cheaper where one would have to be explained."""
    return difference(check, got, want, None) is not None


def _difference(
    check: Check, got: CaseOutcome, want: CaseOutcome, places: Places | None
) -> Finding | None:
    if got.unusable:
        other = compare(got.got, want.got) if got.unprocessed else None
        if other is not None and other.kind in ("type", "length", "keys"):
            return Finding(_clause(other, got, want, {}))
        return Finding(f"returned {got.unusable}")
    if want.raised is not None:
        kind = want.raised.kinds[0]
        if kind in (got.raised.kinds if got.raised else ()):
            return None
        expected = f"expected {with_article(kind)}"
        if got.raised is None:
            return Finding(f"{expected}, but something was returned")
        return Finding(f"{expected}, got {got.raised.kinds[0]}", got.raised.without_values())
    if got.raised is not None:
        return Finding(f"raised {got.raised.kinds[0]}", got.raised.without_values())
    if not check.changes_inputs and any(call.changed for call in got.calls):
        return Finding(_changed_inputs(check, got))
    how: dict[str, Any] = {"tolerance": check.tolerance, "strides": check.strides}
    if places is None:
        if not agree(got.value, want.value, **how):
            return Finding("another value")
    elif wrong := compare(got.value, want.value, **how):
        return Finding(_clause(wrong, got, want, places))
    if check.sharing and [c.shares for c in got.calls] != [c.shares for c in want.calls]:
        if any(s is None for c in got.calls for s in c.shares):
            return Finding(
                "right values, but in a storage of its own: a copy, where a view is asked for"
            )
        return Finding(
            "right values, but a view of the input, where a storage of its own is asked for"
        )
    return None


def _changed_inputs(check: Check, got: CaseOutcome) -> str:
    """Return which inputs a function changed, by the names that the exercise gives them."""
    names = [name for call in got.calls for name in _names_of_inputs(check, call)]
    if not names:
        return "the function changed one of its inputs, a tensor, array or list; work on a new one"
    *others, last = dict.fromkeys(names)
    said = f"inputs {', '.join(others)} and {last}" if others else f"input {last}"
    return f"the function changed its {said}; work on a new {'one each' if others else 'one'}"


def _names_of_inputs(check: Check, call: CallEffects) -> Iterator[str]:
    """Yield the names of a call's inputs that were changed; none where they are a driver's.

    The reference's parameters have the names that the exercise prescribes.
    """
    thing = check.right[call.of] if isinstance(check.right, dict) and call.of else check.right
    if call.method:  # a module's `__call__` takes what its `forward` does
        called = "forward" if call.method == "__call__" else call.method
        thing = getattr(thing, called, getattr(thing, call.method, None))
    try:
        names = [name for name in inspect.signature(thing).parameters if name != "self"]
    except (TypeError, ValueError):  # as of a builtin
        names = []
    for place in () if call.driven else call.touched:
        if isinstance(place, str):
            yield f"`{place}`"
        elif names:  # arguments beyond the names are items of the last, as of `*xs`
            yield f"`{names[min(place, len(names) - 1)]}`"


def _clause(wrong: Difference, got: CaseOutcome, want: CaseOutcome, places: Places) -> str:
    where, returned = where_in_words(wrong, places)
    if where.endswith("."):
        return where
    where += ": " if where else ""
    if wrong.kind == "strides":  # the strides may be the answer, so they are not told
        return f"{where}right values, wrong strides"
    guess = "" if wrong.guess == MISSING_RETURN else wrong.guess
    nothing = got.got is None and want.got is not None  # of what the last call returned
    if nothing and returned and wrong.summary.endswith("got None"):
        guess = MISSING_RETURN
    return where + wrong.summary + (f" ({hedged(guess)})" if guess else "")


def where_in_words(wrong: Difference, places: Places) -> tuple[str, bool]:
    """Return where a difference lies, a whole sentence if that says all, and if it was returned."""
    where, returned = f"at {wrong.where}" if wrong.where else "", True
    for path, described in places.items():
        if wrong.where == path or wrong.where.startswith(f"{path}["):
            place = Place(described) if isinstance(described, str) else described
            rest = wrong.where.removeprefix(path)
            where = f"{place.words}, at {rest}" if rest else place.words
            if place.words.endswith("."):
                return place.words, place.returned
            returned = place.returned
    return where, returned


def alike(check: Check, got: CaseOutcome, candidate: CaseOutcome) -> bool:
    """Return whether two outcomes are the same: same values and effects, or same exception.

    Which results share a storage is an effect only where the check asks for it: a dict in another
    order, or a copy for a view, is no other mistake.

    The messages of two exceptions must be equal, except for ``ValueError``: labs ask for it without
    prescribing its words. Raises MemoryError if this machine has too little memory.
    """
    if got.raised is not None or candidate.raised is not None:
        if got.raised is None or candidate.raised is None:
            return False
        same_words = got.raised.message == candidate.raised.message
        own_words = got.raised.kinds[0] == "ValueError"
        return got.raised.kinds == candidate.raised.kinds and (same_words or own_words)
    if got.unusable or candidate.unusable:
        return got.unusable == candidate.unusable and type(got.got) is type(candidate.got)
    same_effects = [c.changed for c in got.calls] == [c.changed for c in candidate.calls]
    if check.sharing:
        same_effects &= [c.shares for c in got.calls] == [c.shares for c in candidate.calls]
    return same_effects and agrees(check, got.value, candidate.value)


def agrees(check: Check, got: Any, want: Any) -> bool:
    """Return whether two values are the same to a check; those that cannot be compared are not.

    Raises MemoryError if this machine has too little memory.
    """
    try:
        return agree(got, want, tolerance=check.tolerance, strides=check.strides)
    except MemoryError:
        raise
    except Exception:  # values of any form, as in `difference`
        return False
