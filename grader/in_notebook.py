"""The verdict in a learner's own notebook: what ``utils.verdict.check`` calls.

The exercise is judged in the learner's process, as :func:`grader.verify.verify` does it, and shown
with a link to the lesson, where one leads there. Nothing is recorded.
"""

from __future__ import annotations

from pathlib import Path

from IPython import get_ipython

from grader.judging.card import VerdictCard
from grader.judging.catalogue import find_check
from grader.lesson_links import link_to
from grader.verify import judged


def show_verdict(name: str) -> None:
    """Judge the exercise ``name`` with what the notebook defines, and display the verdict.

    Raises:
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
    verdict = judged(check, check.thing_in(defined))
    VerdictCard(verdict, phase.number, link_to(phase, check.reads, Path.cwd())).show()
