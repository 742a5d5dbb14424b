"""The verdict of grading, asked for where the work is: ``check("view_strides")`` in a lab.

Each lab imports :func:`check`, and each graded cell begins with a call of it, so that a mistake is
named before an example below fails. It looks for the course's checks. A copy of the course that has
them, such as a clone, judges the exercise in this notebook as grading would; a copy without them,
such as a class's bundle, says so.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import traceback
from typing import Any

from IPython import get_ipython

# nbgrader sets it to "autograde" or "validate" where it runs a notebook. Grading
# judges by itself, and Validate runs the visible examples alone.
NBGRADER = "NBGRADER_EXECUTION"
VERIFY = "verify("  # what the instructor's copy of a graded cell calls itself
STUB = "write your answer here"  # what the stubs of a released lab raise, see nbgrader_config.py
ABSENT = (
    "This copy of the course does not have the checks, so there is no verdict here. When your work "
    "is graded, the feedback says for each part whether it is right, what went wrong, and what to "
    "read again."
)


def check(name: str) -> None:
    """Judge the exercise `name` on new cases, as grading does, and show the verdict below the cell.

    It tells which parts are right, names the mistake where it is known, gives a small call that
    fails, and links the section of the lesson. Nothing is recorded or sent.

    Args:
        name: the exercise's name, which is also its graded cell's.

    Raises:
        LookupError: if the course has no exercise of this name.
    """
    if os.environ.get(NBGRADER) or VERIFY in _this_cell():
        return
    if importlib.util.find_spec("grader") is None:
        print(ABSENT)
        return
    importlib.import_module("grader.in_notebook").show_verdict(name)


def _this_cell() -> str:
    """The code of the cell that runs now; empty outside of a notebook."""
    shell = get_ipython()
    return str(shell.user_ns.get("In", [""])[-1]) if shell else ""


def say_not_written() -> None:
    """Let a stub that nobody has filled in end its cell with one line in place of a traceback.

    The cell still ends in an error, for Run All and Validate. Done when a lab imports this module.
    """
    shell = get_ipython()
    if shell is not None and os.environ.get(NBGRADER) != "autograde":
        shell.set_custom_exc((NotImplementedError,), _not_written)


def _not_written(shell: Any, kind: Any, error: Any, trace: Any, tb_offset: Any = None) -> None:
    if str(error) != STUB:
        shell.showtraceback((kind, error, trace), tb_offset=tb_offset)
        return
    *_, (frame, _) = traceback.walk_tb(trace)
    name = frame.f_code.co_qualname
    line = f"{name}: not written yet. Your answer takes the place of its `raise` line."
    shell._showtraceback(kind, error, [line])


say_not_written()
