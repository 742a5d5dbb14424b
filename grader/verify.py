"""``verify``: the one hidden line of a graded cell.

It runs the check of that name, shows a short report, and returns the points earned as a float,
which nbgrader reads as partial credit.
"""

from __future__ import annotations

import os
import secrets
from typing import Any

from IPython import get_ipython

SEED_VARIABLE = "OPEN_THE_HOOD_SEED"
VERDICT_MIME = "application/vnd.open-the-hood.verdict+json"


def verify(name: str, thing: Any = None, /, **things: Any) -> float:
    """Judge the learner's work by the check ``name``, show the report, return the points earned.

    The cases are drawn from the seed in ``OPEN_THE_HOOD_SEED``, or from a fresh one. It runs in
    the learner's process and can be cheated there: it is for one's own notebooks. Where strangers'
    are graded, :mod:`grader.preprocessors.execute` asks from outside and this is never called.

    Args:
        name: the check.
        thing: the function, class or value, for an exercise that asks for one.
        things: the functions by name, for an exercise that asks for several.

    Raises:
        LookupError: when there is no such check. Nothing that the learner's code does raises.
    """
    # imported here: a kernel that only asks another process to judge needs none of them
    from grader.catalogue import find_check
    from grader.judge import judge
    from grader.report import Report
    from grader.written import Written

    phase, check = find_check(name)
    seed = os.environ.get(SEED_VARIABLE) or secrets.token_hex(8)
    verdict = judge(check, things or thing, seed, source=Written(_cells()))
    Report(verdict, phase.number).show()
    return verdict.earned


def _cells() -> list[str]:
    """The code of every cell that ran in this notebook."""
    shell = get_ipython()
    return [str(cell) for cell in shell.user_ns.get("In", [])] if shell else []
