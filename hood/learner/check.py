"""Give the verdict of grading in the lab itself: ``check("view_strides")``.

Each lab imports :func:`check`. Each graded cell begins with a call of :func:`check`, so that the
learner reads about a mistake before an example below the call fails. If the environment names a
class's service, the service judges. Otherwise, if the copy of the course has the checks (a clone
has them), these checks judge as in grading. In a copy without the checks, such as a class's bundle,
a message says that the checks are missing.
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

JUDGE = "hood.judge.verdicts"  # a copy without checks does not have this package
VERIFY = "verify("  # a graded cell of the instructor's copy calls this
UNSOLVED = "This copy of the course does not have the solutions."
ABSENT = (
    "This copy of the course does not have the checks, so there is no verdict here. When your work "
    "is graded, the feedback says for each part whether it is right, what went wrong, and what to "
    "read again."
)


RELEASED = "**This is the released lab**, which the next release overwrites. "
YOURS = "Your copy is [{name}]({link}): open it, and write your answers there."
NOT_YET = (
    "To get your own copy, {name}, run `python -m hood.learner.copies` in the course's "
    "folder. The copy will have what you have written here."
)


def say_where_to_work(root: Path = ROOT) -> None:
    """In a notebook in `root/release`, display where the learner's own copy is.

    A lab's first cell imports this module, so the learner reads this before solving anything.
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

    The verdict says which parts are right, names the mistake if it is known, gives a small call
    that fails, and links to the section of the lesson. If the environment names a class's service,
    the cells are sent to the service. Otherwise, nothing is sent, and no grade is recorded. Raises
    LookupError if the course has no exercise of this name.
    """
    if judges := _judges(ABSENT):
        judges.show_verdict(name)
        one_line.after_verdict()


def solution(name: str) -> None:
    """Show a worked solution of the exercise `name`, folded: code, reasons, other solutions.

    :func:`check` shows the same solution below a verdict with full points. For a question in words,
    show a model answer and its rubric. The start page lists each exercise whose solution was shown
    before its answer was right. A class's copy of the course has no solutions, because it does not
    have the checks.
    """
    if judges := _judges(UNSOLVED):
        judges.show_solution(name)


def _judges(absent: str) -> Any:
    """Return the module that judges here; without the checks, print ``absent`` and return None.

    Also return None while nbgrader runs the notebook: grading makes its own verdicts, and Validate
    runs only the visible examples.
    """
    if os.environ.get(NBGRADER) or VERIFY in history.running():
        return None
    if service.address():
        return service
    if importlib.util.find_spec(JUDGE) is None:
        print(absent)
        return None
    from hood.learner import local_judge  # here, because it imports the checks

    return local_judge


say_where_to_work()
