"""The verdict in a learner's own notebook: what ``utils.notebook.verdict`` calls.

The exercise is judged in the learner's process, as :func:`grader.verify.verify` does it, and shown
with a link to the lesson, where one leads there. Nothing is recorded.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

from IPython import get_ipython
from IPython.display import Markdown, display

from grader.judging.card import VerdictCard
from grader.judging.catalogue import find_check
from grader.lesson_links import link_to
from grader.solutions import worked
from grader.verdict import FULL, Cause
from grader.verify import judged
from utils.notebook import cell_clock


class CellStopped(Exception):
    """The rest of the cell is not run; what Jupyter shows is the message, without a traceback."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


def show_verdict(name: str) -> None:
    """Judge the exercise ``name`` with what the notebook defines, and display the verdict.

    Raises:
        CellStopped: when somebody stopped it, or after a verdict that had to stop the answer: the
            next line of the cell would call the same code, without a limit.
        LookupError: if there is no such exercise.
        UserError: if the setting ``lesson_url`` is not an address.
    """
    phase, check = find_check(name)
    shell = get_ipython()
    defined = shell.user_ns if shell else {}
    missing = [one for one in check.names if one not in defined]
    if missing:
        print(f"not defined yet: {', '.join(missing)}. Run the cells above this one first.")
        return
    try:
        cell_clock.say(f"checking {name}")
        verdict = judged(check, check.thing_in(defined))
    except KeyboardInterrupt:
        raise CellStopped(
            f"{name}: you stopped its check, so there is no verdict. The rest of this cell did not "
            "run."
        ) from None
    VerdictCard(verdict, phase.number, link_to(phase, check.reads, Path.cwd())).show()
    if verdict.status in FULL and shell:
        with contextlib.suppress(LookupError):  # a class's own exercise may have none
            show_solution(name)
    if any(part.cause is Cause.TIMEOUT for part in verdict.parts):
        raise CellStopped(f"{name}: a call did not end. The rest of this cell did not run.")


def show_solution(name: str) -> None:
    """Display a worked solution of the exercise ``name``, folded.

    Raises:
        LookupError: if there is no such exercise, or no worked solution of it.
    """
    display(Markdown(worked(*find_check(name))))
