"""Find out who reads a notebook's output. Lessons, drills and views depend on the reader.

The build, the site and the grader each set an environment variable for the kernels that they start.
If none of these variables is set, a person uses the notebook.
"""

from __future__ import annotations

import os
import sys

BUILD = "OPEN_THE_HOOD_BUILD"
FRAMES = "OPEN_THE_HOOD_FRAMES"
TEXT_ONLY = "OPEN_THE_HOOD_TEXT_ONLY"
# When nbgrader runs a notebook, it sets this variable to "autograde" or "validate".
NBGRADER = "NBGRADER_EXECUTION"


def building() -> bool:
    """Return whether the output is committed or published.

    Such output must be the same on all machines.
    """
    return bool(os.environ.get(BUILD))


def filming() -> bool:
    """Return whether the output is for the site, where a view shows stored pictures."""
    return bool(os.environ.get(FRAMES))


def text_only() -> bool:
    """Return whether nobody looks at the output, for example while a class is graded.

    A figure then shows only its text, because drawing takes a tenth of a second and changes no
    result.
    """
    return bool(os.environ.get(TEXT_ONLY))


def can_move() -> bool:
    """Return whether widgets work: ipywidgets is installed, and nothing is built or graded."""
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
