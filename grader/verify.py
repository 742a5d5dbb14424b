"""``verify``: the one hidden line of a graded cell.

It runs the check of that name, shows a short report, and returns the points earned as a float,
which nbgrader reads as partial credit.
"""

from __future__ import annotations

import inspect
import os
import secrets
from typing import Any

SEED_VARIABLE = "OPEN_THE_HOOD_SEED"
VERDICT_MIME = "application/vnd.open-the-hood.verdict+json"


def verify(name: str, thing: Any = None, /, **things: Any) -> float:
    """Judge the learner's work by the check ``name``, show the report, return the points earned.

    The cases are drawn from the seed in ``OPEN_THE_HOOD_SEED``, or from a fresh one.

    Args:
        name: the check.
        thing: the function, class or value, for an exercise that asks for one.
        things: the functions by name, for an exercise that asks for several.

    Raises:
        LookupError: when there is no such check. Nothing that the learner's code does raises.
    """
    thing = things or thing
    # imported here: a kernel that only asks another process to judge needs none of them
    from grader.catalogue import find_check
    from grader.judge import judge
    from grader.report import Report

    phase, check = find_check(name)
    seed = os.environ.get(SEED_VARIABLE) or secrets.token_hex(8)
    verdict = judge(check, thing, seed, source=_source_of(thing))
    Report(verdict, phase.number).show()
    return verdict.earned


def _source_of(thing: Any) -> str | dict[str, str]:
    """The learner's code where Python still has it."""
    if isinstance(thing, dict):
        return {name: _source_of(function) for name, function in thing.items()}
    try:
        return inspect.getsource(thing)
    except Exception:  # it may be an object that pretends to be a function
        return ""
