"""``verify``: the one hidden line of a graded cell.

It runs the check of that name, shows a short report, and returns the points earned as a float,
which nbgrader reads as partial credit.
"""

from __future__ import annotations

import os
import secrets
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from IPython import get_ipython

SEED_VARIABLE = "OPEN_THE_HOOD_SEED"
NO_EXAMPLES_VARIABLE = "OPEN_THE_HOOD_NO_EXAMPLES"
EXAMPLE_SECONDS = 4  # for one exercise; what it earns is settled by then


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
    from grader.judging.catalogue import find_check
    from grader.judging.example import fresh_seed
    from grader.judging.judge import exemplify, judge
    from grader.judging.learner_source import Written
    from grader.judging.report import Report

    phase, check = find_check(name)
    seed = os.environ.get(SEED_VARIABLE) or secrets.token_hex(8)
    verdict = judge(check, things or thing, seed, source=Written(_cells()))
    names = get_ipython().user_ns if get_ipython() else {}
    called_so = all(names.get(key) is value for key, value in (things or {name: thing}).items())
    if called_so and not os.environ.get(NO_EXAMPLES_VARIABLE):
        with _interrupted_after(EXAMPLE_SECONDS):
            verdict = exemplify(verdict, check, things or thing, fresh_seed())
    Report(verdict, phase.number).show()
    return Points(verdict.earned)


class Points(float):
    """Points as nbgrader reads them; a page shows nothing, since the report has said them."""

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return shown_points(self)


def shown_points(earned: float) -> dict[str, str]:
    """The data of the output that nbgrader reads: a number as text, and no text for a page."""
    return {"text/plain": repr(float(earned)), "text/html": ""}


@contextmanager
def _interrupted_after(seconds: float) -> Iterator[None]:
    """Interrupt what runs inside, as Ctrl-C would; only a main thread can be."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _cells() -> list[str]:
    """The code of every cell that ran in this notebook."""
    shell = get_ipython()
    return [str(cell) for cell in shell.user_ns.get("In", [])] if shell else []
