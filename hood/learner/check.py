"""The verdict of grading, asked for where the work is: ``check("view_strides")`` in a lab.

Each lab imports :func:`check`, and each graded cell begins with a call of it, so that a mistake is
named before an example below fails. Where the environment names a class's service, that judges. A
copy of the course that has the checks, such as a clone, else judges the exercise as grading would;
a copy without them, such as a class's bundle, says so.
"""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import Any

from IPython import get_ipython
from IPython.display import Markdown, display

from hood.audience import NBGRADER
from hood.judge import history
from hood.learner import one_line, service
from hood.learner.contents import ROOT
from hood.phase_paths import copy_of

JUDGE = "hood.judge.verdicts.judge"  # a class's copy of the course is without it
VERIFY = "verify("  # what the instructor's copy of a graded cell calls itself
UNSOLVED = "This copy of the course does not have the solutions."
ABSENT = (
    "This copy of the course does not have the checks, so there is no verdict here. When your work "
    "is graded, the feedback says for each part whether it is right, what went wrong, and what to "
    "read again."
)


RELEASED = "**This is the lab as it is released**, which the next release overwrites. "
YOURS = "Your copy is [{name}]({link}): open that one, and write your answers there."
NOT_YET = (
    "To get a copy of your own, {name}, run `python -m hood.learner.copies` in the course's "
    "folder; what you have written here comes along."
)


def say_where_to_work(root: Path = ROOT) -> None:
    """Display where the learner's copy is, in a notebook that lies in `root/release`.

    A lab's first cell imports this module, so this is said before anything is solved.
    """
    folder = Path.cwd()
    if get_ipython() is None or os.environ.get(NBGRADER) or folder.parent.parent != root:
        return
    copy = copy_of(Path("release", folder.name, f"{folder.name}.ipynb"))
    if folder.parent.name == "release" and copy is not None:
        link = Path(os.path.relpath(root / copy, folder)).as_posix()
        words = YOURS if (root / copy).exists() else NOT_YET
        display(Markdown(RELEASED + words.format(name=copy.parent.as_posix(), link=link)))


def check(name: str) -> None:
    """Judge the exercise `name` on new cases, as grading does, and show the verdict below the cell.

    It tells which parts are right, names the mistake where it is known, gives a small call that
    fails, and links the section of the lesson. Nothing is recorded or sent, but to a class's
    service, where the environment names one. Raises LookupError if the course has no exercise of
    this name.
    """
    if judges := _judges(ABSENT):
        judges.show_verdict(name)
        one_line.after_verdict()


def solution(name: str) -> None:
    """Show a worked solution of the exercise `name` behind a fold: code, reasons, other ways.

    :func:`check` shows it below a full verdict. Of a question in words it is a model answer and how
    it is marked. The start page says of which exercises it was shown before they were right. In a
    class's copy of the course, which does not have the checks, there is none.
    """
    if judges := _judges(UNSOLVED):
        judges.show_solution(name)


def _judges(absent: str) -> Any:
    """The module that judges here; None, and say so, where the course has no checks.

    Grading judges by itself, and Validate runs the visible examples alone: None there, too.
    """
    if os.environ.get(NBGRADER) or VERIFY in history.running():
        return None
    if service.address():
        return service
    if importlib.util.find_spec(JUDGE) is None:
        print(absent)
        return None
    from hood.learner import local_judge  # here, because it imports what is absent there

    return local_judge


say_where_to_work()
