"""``verify``: the function that the hidden line of a graded cell calls.

The function runs the check that the call names, shows a short report, and returns the earned points
as a float, which nbgrader reads as partial credit.
"""

from __future__ import annotations

import os
import secrets
from typing import TYPE_CHECKING, Any

from IPython import get_ipython

from hood.judge import history

if TYPE_CHECKING:
    from hood.judge.checks.exercise import Check
    from hood.verdict import Verdict

SEED_VARIABLE = "OPEN_THE_HOOD_SEED"
NO_EXAMPLES_VARIABLE = "OPEN_THE_HOOD_NO_EXAMPLES"
EXAMPLE_SECONDS = 4  # seconds to find failing examples for one exercise, after its points are known


def verify(name: str, thing: Any = None, /, **things: Any) -> float:
    """Judge the learner's work with the check ``name``, show the report, return the points.

    The cases are drawn from the seed in ``OPEN_THE_HOOD_SEED``, or from a fresh seed. The check
    runs in the learner's process, where the learner's code can manipulate it. So this function is
    for a person's own notebooks; :mod:`hood.grader.execution.execute` judges other people's
    notebooks. ``thing`` is the function, class or value that the exercise requires. If the exercise
    requires several functions, ``things`` has each function under its name. Raises LookupError when
    there is no such check. Errors of the learner's code are not raised.
    """
    # Import here: if another process judges a kernel, the kernel does not need these modules.
    from hood.judge.catalogue import find_check
    from hood.judge.report import VerdictReport

    phase, check = find_check(name)
    verdict = judged(check, things or thing)
    VerdictReport(verdict, phase.number).show()
    return Points(verdict.earned)


def judged(check: Check, thing: Any) -> Verdict:
    """Judge a function, class, value or dict of functions in this process, with examples.

    Raises KeyboardInterrupt when somebody stopped the check before all points were known.
    """
    from hood.judge.examples.example import exemplify, fresh_seed
    from hood.judge.source.learner_source import ANY_LINE, LearnerSource
    from hood.judge.verdicts.judge import judge
    from hood.judge.watched import Alarm, WatchedConnection

    seed = os.environ.get(SEED_VARIABLE) or secrets.token_hex(8)
    written = LearnerSource()
    for cell in history.cells().values():
        written.add(cell.source, finished=cell.finished, bound={ANY_LINE: cell.bound})
    verdict = judge(check, thing, seed, source=written, connect=WatchedConnection)
    shell = get_ipython()
    names = shell.user_ns if shell else {}
    by_name = thing if isinstance(thing, dict) else {check.name: thing}
    called_so = all(names.get(key) is value for key, value in by_name.items())
    if called_so and not os.environ.get(NO_EXAMPLES_VARIABLE):
        with Alarm(EXAMPLE_SECONDS, EXAMPLE_SECONDS):
            return exemplify(verdict, check, thing, fresh_seed())
    return verdict


class Points(float):
    """Points in the form that nbgrader reads. On a page, only the report shows the points."""

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return shown_points(self)


def shown_points(earned: float) -> dict[str, str]:
    """Return the points as MIME data: the number as plain text for nbgrader, and empty HTML."""
    return {"text/plain": repr(float(earned)), "text/html": ""}
