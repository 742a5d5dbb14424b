"""Import, in the zygote, the modules that kernels need, so that no kernel imports them itself.

A test compares the lists with what the labs import. Nothing here may start a thread, because a fork
of a process with threads can hang. Learners' kernels can read these lists, so they name nothing
that a kernel could not import itself. What a course needs beside it, its own module imports
(:mod:`hood.grader.inside.course_sandbox`).
"""

from __future__ import annotations

import importlib
import linecache
import sys

from hood.grader.inside.course_sandbox import CourseSandbox

ALWAYS = (
    "numpy.random",
    "bdb",
    "matplotlib.pyplot",
    # not `matplotlib_inline`: it belongs to the first figure, as in Jupyter's kernel
    "matplotlib.backends.backend_agg",
    "matplotlib.backends.backend_svg",
    "IPython.core.logger",
    "ipywidgets",
    "encodings.utf_16_be",
    "faulthandler",
    "PIL.BmpImagePlugin",
    "PIL.GifImagePlugin",
    "PIL.ImageDraw",
    "PIL.JpegImagePlugin",
    "PIL.PpmImagePlugin",
)

# Modules, or packages, with functions that call a learner's code: each traceback reads their files.
ON_THE_STACK = ("asyncio.", "hood.grader.inside.kernel", "IPython.core.interactiveshell")

# Modules of the engine.
OURS = ("hood.judge.connection.rpc_server", "hood.grader.inside.kernel")


def preload(course: CourseSandbox) -> None:
    """Import ``ALWAYS``, what the course needs, and ``OURS``; read the lines of tracebacks."""
    for name in ALWAYS:
        importlib.import_module(name)
    course.preload()
    for name in OURS:
        importlib.import_module(name)
    _make_letters()
    for loaded, module in list(sys.modules.items()):
        stacked = loaded.startswith((*ON_THE_STACK, *course.on_the_stack))
        if stacked and getattr(module, "__file__", None):
            linecache.getlines(str(module.__file__))  # Python keeps them


def _make_letters() -> None:
    """Have matplotlib make its parser of formulas, which takes 50 ms; some markers are formulas.

    The fonts themselves are forgotten again: each has a file open, which no kernel inherits.
    """
    from matplotlib import font_manager, mathtext
    from matplotlib.markers import MarkerStyle

    MarkerStyle("$=$")
    mathtext.MathTextParser._parse_cached.cache_clear()  # type: ignore[attr-defined]
    font_manager._get_font.cache_clear()  # type: ignore[attr-defined]
