"""Write the learner's and the expected result as short texts, side by side."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hood.judge.checks.compare import kind_of
from hood.judge.checks.exercise import Check
from hood.judge.examples.literal import MAX_CHARACTERS, Unprintable, literal
from hood.judge.values.table import grid, mapped
from hood.judge.verdicts.difference import agrees
from hood.judge.verdicts.subject import SubjectRaised

MAX_MESSAGE = 160  # characters of an exception's message
MAX_VALUE = 240  # characters of a value
DIGITS = 4  # of fractions, as torch prints them


def differing(check: Check, want: Any, got: Any) -> list[Any]:
    """Return the keys of the items that differ; an empty list if the keys are not the same."""
    keys: Iterable[Any] = ()
    if isinstance(want, dict) and isinstance(got, dict) and want.keys() == got.keys():
        keys = want
    elif (row := grid(want)) and row is grid(got) and want.shape == got.shape:
        keys = range(want.shape[0] if want.shape else 0)
    elif isinstance(want, (list, tuple)) and type(want) is type(got) and len(want) == len(got):
        keys = range(len(want))
    return [key for key in keys if not agrees(check, got[key], want[key])]


def raised_in_words(raised: SubjectRaised) -> str:
    """Return an exception's type and message in one line; a long message is cut."""
    message = " ".join(raised.message.split())
    message = message if len(message) <= MAX_MESSAGE else message[:MAX_MESSAGE] + " …"
    return f"{raised.kinds[0]}: {message}" if message else raised.kinds[0]


def short(value: Any, digits: int = DIGITS, most: int = MAX_VALUE) -> str:
    """Return a value's literal, without the layout of tensors; empty if it is long."""
    try:
        text = literal(mapped(_plain, value), digits)
    except (Unprintable, RecursionError):
        return ""
    return text if len(text) <= most else ""


def side_by_side(want: Any, got: Any) -> tuple[str, str]:
    """Return both values, with all digits if they would look the same with fewer digits.

    A long ``want`` becomes "", and a long ``got`` becomes its type.
    """
    for digits in (DIGITS, 0):
        expected, shown = short(want, digits), short(got, digits)
        if expected != shown:
            break
    return expected, shown or kind_of(got)


def _plain(value: Any) -> Any:
    """Return a contiguous copy of a tensor or array; return any other value unchanged.

    Raises Unprintable if the tensor or array is large.
    """
    row = grid(value)
    if row is None:
        return value
    if row.count(value) > MAX_CHARACTERS:
        raise Unprintable("a large tensor")
    return row.plain(value)
