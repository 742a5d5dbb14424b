"""Describe a failing case in words: the question, the expected result, and the learner's result.

For some cases there is no line to paste, for example if the case trains a model. Such a case is
described in words. For this, the case must have words for its question (``shown``). The expected
result must depend on the drawn values. Otherwise the expected result could be the answer to the
exercise, and the example would reveal the answer.
"""

from __future__ import annotations

import warnings
from typing import Any

from hood.judge.checks.answers import Candidate
from hood.judge.checks.compare import MISSING_RETURN, compare
from hood.judge.checks.exercise import Case, Check
from hood.judge.checks.guess import hedged
from hood.judge.connection.rpc_client import Connection, InProcess
from hood.judge.examples.shown_values import differing, raised_in_words, short, side_by_side
from hood.judge.verdicts.difference import agrees, alike, difference, where_in_words
from hood.judge.verdicts.outcome import CaseOutcome, play

MAX_TOLD = 80  # characters of a value in a sentence


def told(
    check: Check,
    case: Case,
    other: Case,
    connection: Connection,
    named: Candidate | None = None,
) -> str:
    """Return what goes wrong in a case, as a clause; empty if it cannot be described.

    The code must fail the case twice in the same way, and behave like ``named``, if given.
    ``other`` is the same case, drawn with another seed.
    """
    got = play(check, connection, case)
    want = play(check, InProcess(check.right), case)
    if difference(check, got, want, None) is None or got.unusable or want.raised is not None:
        return ""
    if not alike(check, play(check, connection, case), got):
        return ""
    if named and not behaves_like(check, case, got, named):
        return ""
    if got.raised is not None:
        return f"{case.shown}: got {raised_in_words(got.raised)}"
    said = _compared(check, case, got, want)
    if not said or _is_constant(check, want, play(check, InProcess(check.right), other), said[0]):
        return ""
    return f"{case.shown}: {said[1]}"


def behaves_like(check: Check, case: Case, got: CaseOutcome, named: Candidate) -> bool:
    """Return whether a misconception has exactly the outcome of the learner's code in a case."""
    with warnings.catch_warnings():  # the misconception's warnings are not the learner's
        warnings.simplefilter("ignore")
        return alike(check, got, play(check, InProcess(named.thing), case))


def _compared(
    check: Check, case: Case, got: CaseOutcome, want: CaseOutcome
) -> tuple[list[Any], str] | None:
    """Return the path to a short item that differs, and a text about the item; or None.

    If a place is described by a whole sentence, no text is needed: the verdict shows the sentence.
    """
    wrong = compare(got.value, want.value, tolerance=check.tolerance, strides=check.strides)
    if wrong is None:
        return None
    where, _ = where_in_words(wrong, case.places)
    if where.endswith("."):
        return None
    guess = f" ({hedged(wrong.guess)})" if wrong.guess not in ("", MISSING_RETURN) else ""
    path = list(wrong.path)
    # the summary is enough; no value is needed
    if wrong.kind in ("type", "shape", "dtype", "keys"):
        return path, f"{f'{where}: ' if where else ''}{wrong.summary}{guess}"
    expected, came = want.value, got.value
    for key in path:
        expected, came = expected[key], came[key]
    while not (short(expected, most=MAX_TOLD) and short(came, most=MAX_TOLD)):
        found = differing(check, expected, came)
        if not found:
            return None
        path.append(found[0])
        where += f"[{found[0]!r}]" if where.endswith("]") else f", at [{found[0]!r}]"
        expected, came = expected[found[0]], came[found[0]]
    right, shown = side_by_side(expected, came)
    if not right or right == shown:
        return None
    place = f"{where.removeprefix(', ')}: " if where else ""
    return path, f"{place}expected {right}, got {shown}{guess}"


def _is_constant(check: Check, want: CaseOutcome, other: CaseOutcome, path: list[Any]) -> bool:
    """Return whether the expected value at a place is the same in both draws."""
    one, two = want.value, other.value
    try:
        for key in path:
            one, two = one[key], two[key]
    except (LookupError, TypeError):  # the other draw has no such place
        return False
    return agrees(check, one, two)
