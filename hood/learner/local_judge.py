"""Judge in the learner's own notebook, in a copy of the course that has the checks.

The verdict is shown with a link to the lesson, if there is one, and with the next step. No grade is
recorded.
"""

from __future__ import annotations

import contextlib
import warnings
from functools import partial
from pathlib import Path

from IPython import get_ipython
from IPython.display import Markdown, display

from hood.addresses import link_to
from hood.judge.card import VerdictCard
from hood.judge.catalogue import find_check
from hood.judge.report import VerdictReport
from hood.judge.solutions import question_in_words, solution_of
from hood.judge.verify import judged
from hood.learner import cell_clock, journal, what_now
from hood.verdict import FULL, Cause


class CellStopped(Exception):
    """Stop the rest of the cell. Jupyter shows only the message, without a traceback."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


def show_verdict(name: str) -> None:
    """Judge the exercise ``name`` with what the notebook defines, and display the verdict.

    The lines below the verdict say what to do now. Raises CellStopped when somebody stopped the
    check. Also raises CellStopped if the answer exceeded its time limit, because the next line of
    the cell would call the same code without a limit. Raises LookupError if there is no such
    exercise, and UserError if the setting ``lesson_url`` is not an address.
    """
    try:
        phase, check = find_check(name)
    except LookupError:
        if question_in_words(name) is None:
            raise
        print(
            f"{name} is a question in words, which no program judges. When you have written your "
            "answer, run this line to compare it with a model answer:\n\n"
            f"from hood.learner.check import solution; solution({name!r})"
        )
        return
    shell = get_ipython()
    defined = shell.user_ns if shell else {}
    missing = [one for one in check.names if one not in defined]
    if missing:
        said = f"not defined yet: {', '.join(missing)}. Run the cells above this one first."
        print(said)
        cell_clock.announce(said)
        return
    try:
        cell_clock.say(f"checking {name}")
        with warnings.catch_warnings(record=True) as heard:
            verdict = judged(check, check.thing_in(defined))
    except KeyboardInterrupt:
        raise CellStopped(
            f"{name}: you stopped the check, so there is no verdict. The rest of this cell did not "
            "run."
        ) from None
    where = Path.cwd()
    warned = dict.fromkeys(f"{one.category.__name__}: {one.message}" for one in heard)
    card = VerdictCard(verdict, phase.number, lambda reads: link_to(phase, reads, where), warned)
    card.show()
    cell_clock.announce(card.heard())
    asked = partial(show_solution, opened=True)
    what_now.show(name, VerdictReport._repr_mimebundle_(card), asked)
    if verdict.status in FULL and shell:
        with contextlib.suppress(LookupError):  # a class's own exercise may have no solution
            _show_page(name)
    if any(part.cause is Cause.TIMEOUT for part in verdict.parts):
        raise CellStopped(f"{name}: a call did not end in time. The rest of this cell did not run.")


def show_solution(name: str, opened: bool = False) -> None:
    """Display a worked solution of the exercise ``name``, or a model answer to a question in words.

    If ``opened`` is not set, the solution is folded. The learner's progress says that the solution
    was shown. Raises LookupError if no exercise or question has this name, or if it has no
    solution.
    """
    _show_page(name, opened)
    journal.shown(name)


def _show_page(name: str, opened: bool = False) -> None:
    page = solution_of(name)
    display(Markdown(page.replace("<details>", "<details open>", 1) if opened else page))
