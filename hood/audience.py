"""For whom a notebook runs. What lessons, drills and views show depends on it.

The build, the site and the grader each set a variable in the environment of the kernels that they
start. Without one of them a person sits in front of the notebook.
"""

from __future__ import annotations

import os
import sys

BUILD = "OPEN_THE_HOOD_BUILD"
FRAMES = "OPEN_THE_HOOD_FRAMES"
TEXT_ONLY = "OPEN_THE_HOOD_TEXT_ONLY"
# nbgrader sets it to "autograde" or "validate" where it runs a notebook.
NBGRADER = "NBGRADER_EXECUTION"


def building() -> bool:
    """Return whether the output is committed or published: it is then the same for everyone."""
    return bool(os.environ.get(BUILD))


def filming() -> bool:
    """Return whether the output is for the site, where a view moves by pictures made now."""
    return bool(os.environ.get(FRAMES))


def text_only() -> bool:
    """Return whether nobody looks, as while a class is graded.

    A figure's words then take the place of the picture, which costs a tenth of a second and decides
    nothing.
    """
    return bool(os.environ.get(TEXT_ONLY))


def can_move() -> bool:
    """Whether a widget would be answered: a kernel with ipywidgets, not building or grading."""
    if building() or text_only():
        return False
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is None or getattr(shell, "kernel", None) is None:
        return False
    try:
        import ipywidgets  # noqa: F401
    except ImportError:
        return False
    return True
