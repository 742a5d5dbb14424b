"""``verify``: the function that the hidden line of a graded cell calls.

It runs the check of that name, shows a short report, and returns the points earned as a float,
which nbgrader reads as partial credit.
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
EXAMPLE_SECONDS = 4  # time for the examples of one exercise; its points are known before


def verify(name: str, thing: Any = None, /, **things: Any) -> float:
    """Judge the learner's work with the check ``name``, show the report, return the points.

    The cases are drawn from the seed in ``OPEN_THE_HOOD_SEED``, or from a fresh seed. The check
    runs in the learner's process, where the learner's code can manipulate it, so this function is
    for one's own notebooks; :mod:`hood.grader.execution.execute` judges those of others. ``thing``
    is the function, class or value, for an exercise that asks for one; ``things`` are the functions
    by name, for an exercise that asks for several. Raises LookupError when there is no such check.
    Errors of the learner's code are not raised.
    """
    # Imported here, because a kernel that is judged by another process needs none of these modules.
    from hood.judge.catalogue import find_check
    from hood.judge.report import VerdictReport

    phase, check = find_check(name)
    verdict = judged(check, things or thing)
    VerdictReport(verdict, phase.number).show()
    return Points(verdict.earned)


def judged(check: Check, thing: Any) -> Verdict:
    """Judge a function, class or value, or a dict of functions, here, with failing examples.

    Raises KeyboardInterrupt when somebody stopped it before all points were known.
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
    """Points as nbgrader reads them. A page shows nothing of them, because the report does."""

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return shown_points(self)


def shown_points(earned: float) -> dict[str, str]:
    """Return the MIME data of the points: the number as plain text for nbgrader, and empty HTML."""
    return {"text/plain": repr(float(earned)), "text/html": ""}
