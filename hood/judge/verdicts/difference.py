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

Places = Mapping[str, str | Place]  # as in hood.judge.checks.exercise.Case
NOWHERE: Places = MappingProxyType({})


@dataclass(frozen=True)
class Finding:
    """What is wrong with the outcome of one case."""

    words: str  # a clause without hidden values
    quoted: str = ""  # the message of the learner's exception, to put after the clause; or empty

    def __str__(self) -> str:
        return f"{self.words}: {self.quoted}" if self.quoted else self.words


def in_case(case: Case, found: Finding) -> str:
    """Return the case's words for its question (``shown``), followed by the finding."""
    return f"{case.shown}: {found}" if case.shown else str(found)


def difference(
    check: Check, got: CaseOutcome, want: CaseOutcome, places: Places | None = NOWHERE
) -> Finding | None:
    """Compare the learner's outcome with the reference's outcome.

    ``places`` are descriptions of places in the value; None if nobody reads the finding. Return
    None if the outcomes are equal. Raises MemoryError if this machine has too little memory,
    because that is not the code's fault.
    """
    try:
        return _difference(check, got, want, places)
    except MemoryError:
        raise
    except Exception:  # the learner's process may send values of any form
        return Finding(f"returned {OTHER_KIND}")


def differs(check: Check, got: CaseOutcome, want: CaseOutcome) -> bool:
    """Return whether there is a :func:`difference`. This is faster, because no words are needed."""
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
            return Finding(f"{expected}, but the code returned a value")
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
        return Finding(_left_unchanged(check, got, want) or _clause(wrong, got, want, places))
    if check.sharing and [c.shares for c in got.calls] != [c.shares for c in want.calls]:
        if any(s is None for c in got.calls for s in c.shares):
            return Finding(
                "right values, but the result is a copy with its own storage; expected a view of "
                "the input"
            )
        return Finding(
            "right values, but the result is a view of the input; expected a copy with its own "
            "storage"
        )
    return None


def _changed_inputs(check: Check, got: CaseOutcome) -> str:
    """Say which inputs a function changed, with the names that the exercise gives them."""
    names = [name for call in got.calls for name in _names_of_inputs(check, call)]
    if not names:
        return (
            "the function changed one of its inputs (a tensor, an array or a list); change a copy "
            "instead"
        )
    *others, last = dict.fromkeys(names)
    said = f"inputs {', '.join(others)} and {last}" if others else f"input {last}"
    return f"the function changed its {said}; change {'copies' if others else 'a copy'} instead"


def _left_unchanged(check: Check, got: CaseOutcome, want: CaseOutcome) -> str:
    """Say that a function did not change an input that it should change; empty if it did."""
    if not (got.calls and want.calls) or got.calls[-1].touched or want.calls[-1].changed:
        return ""
    names = list(_names_of_inputs(check, want.calls[-1]))
    if not names:
        return ""
    said = " and ".join(names)
    return f"expected a change of {said} in place, but the function did not change {said}"


def _names_of_inputs(check: Check, call: CallEffects) -> Iterator[str]:
    """Yield the names of a call's changed inputs; yield nothing if a driver was called.

    The reference's parameters have the names that the exercise prescribes.
    """
    thing = check.right[call.of] if isinstance(check.right, dict) and call.of else check.right
    if call.method:  # a module's `__call__` has the parameters of its `forward`
        called = "forward" if call.method == "__call__" else call.method
        thing = getattr(thing, called, getattr(thing, call.method, None))
    try:
        names = [name for name in inspect.signature(thing).parameters if name != "self"]
    except (TypeError, ValueError):  # for example of a builtin
        names = []
    for place in () if call.driven else call.touched:
        if isinstance(place, str):
            yield f"`{place}`"
        # more arguments than names: the last arguments are items of a parameter such as `*xs`
        elif names:
            yield f"`{names[min(place, len(names) - 1)]}`"


def _clause(wrong: Difference, got: CaseOutcome, want: CaseOutcome, places: Places) -> str:
    where, returned = where_in_words(wrong, places)
    if where.endswith("."):
        return where
    where += ": " if where else ""
    if wrong.kind == "strides":  # never show strides, because strides may be the answer
        return f"{where}right values, wrong strides"
    guess = "" if wrong.guess == MISSING_RETURN else wrong.guess
    nothing = got.got is None and want.got is not None  # the last call returned None
    if nothing and returned and wrong.summary.endswith("got None"):
        guess = MISSING_RETURN
    return where + wrong.summary + (f" ({hedged(guess)})" if guess else "")


def where_in_words(wrong: Difference, places: Places) -> tuple[str, bool]:
    """Return words for the place of a difference, and whether the code returned the value there."""
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

    Shared storage counts as an effect only if the check requires it. A dict in another order, or a
    copy in place of a view, is still the same mistake.

    The messages of two exceptions must be equal. The message of a ``ValueError`` doesn't count,
    because labs require this exception but don't prescribe its message. Raises MemoryError if this
    machine has too little memory.
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
    """Return whether two values are equal for a check; False if they cannot be compared.

    Raises MemoryError if this machine has too little memory.
    """
    try:
        return agree(got, want, tolerance=check.tolerance, strides=check.strides)
    except MemoryError:
        raise
    except Exception:  # the values may have any form, as in `difference`
        return False
