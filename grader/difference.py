"""What two codes that played the same case did differently, in words without hidden values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from utils.checks import Check
from utils.compare import Difference, agree, compare, with_article

if TYPE_CHECKING:
    from grader.answer_key import Outcome

OTHER_KIND = "something of another kind than was asked for"


def difference(
    check: Check, got: Outcome, want: Outcome, places: Mapping[str, str] | None = None
) -> str:
    """Why ``got`` is not what the reference did, in words without values; empty when it is.

    What a learner's process sent may be of any form, so whatever comparing it raises decides
    against it; that this machine ran short of memory does not.

    Args:
        places: as :class:`Case` has it.
    """
    try:
        return _difference(check, got, want, places or {})
    except MemoryError:
        raise
    except Exception:
        return f"returned {OTHER_KIND}"


def differs(check: Check, got: Outcome, want: Outcome) -> bool:
    """Whether there is a :func:`difference`; much cheaper where one would have to be explained."""
    try:
        return bool(_difference(check, got, want, None))
    except MemoryError:
        raise
    except Exception:
        return True


def _difference(check: Check, got: Outcome, want: Outcome, places: Mapping[str, str] | None) -> str:
    """As :func:`difference`; without places, some words or none."""
    if got.unusable:
        other = compare(got.came, want.came) if got.unusable == OTHER_KIND else None
        if other is not None and other.kind in ("type", "length", "keys"):
            return _in_words(other, {})
        return f"returned {got.unusable}"
    if want.raised is not None:
        kind = want.raised.kinds[0]
        if kind in (got.raised.kinds if got.raised else ()):
            return ""
        came = f"came {got.raised.in_words()}" if got.raised else "but something was returned"
        return f"expected {with_article(kind)}, {came}"
    if got.raised is not None:
        return f"raised {got.raised.in_words()}"
    if not check.changes_inputs and any(call.changed for call in got.calls):
        return "the function changed one of its inputs; work on a new tensor"
    how = {"tolerance": check.tolerance, "strides": check.strides}
    if places is None:
        if not agree(got.value, want.value, **how):
            return "another value"
    elif wrong := compare(got.value, want.value, **how):
        return _in_words(wrong, places)
    if check.sharing and [c.shares for c in got.calls] != [c.shares for c in want.calls]:
        if any(s is None for c in got.calls for s in c.shares):
            return "right values, but in a storage of its own: a copy, where a view is asked for"
        return "right values, but a view of the input, where a storage of its own is asked for"
    return ""


def _in_words(wrong: Difference, places: Mapping[str, str]) -> str:
    place = f"at {wrong.where}: " if wrong.where else ""
    for path, words in places.items():
        if wrong.where == path or wrong.where.startswith(f"{path}["):
            if words.endswith("."):
                return words
            place = f"{words}: "
    if wrong.kind == "strides":  # they may be what was asked for
        return f"{place}right values, wrong strides"
    return place + wrong.summary + (f" (perhaps {wrong.guess})" if wrong.guess else "")


def alike(check: Check, got: Outcome, candidate: Outcome) -> bool:
    """Whether two codes did the same: the same values and effects, or the same exception.

    A `ValueError` is how the labs ask for a refusal, and its words are the writer's own: two of
    them are the same.
    """
    if got.raised is not None or candidate.raised is not None:
        if got.raised is None or candidate.raised is None:
            return False
        same_words = got.raised.message == candidate.raised.message
        own_words = got.raised.kinds[0] == "ValueError"
        return got.raised.kinds == candidate.raised.kinds and (same_words or own_words)
    if got.unusable or candidate.unusable:
        return got.unusable == candidate.unusable and type(got.came) is type(candidate.came)
    same_effects = [(c.changed, c.shares) for c in got.calls] == [
        (c.changed, c.shares) for c in candidate.calls
    ]
    try:
        return same_effects and agree(
            got.value, candidate.value, tolerance=check.tolerance, strides=check.strides
        )
    except MemoryError:
        raise
    except Exception:  # as in `difference`
        return False
