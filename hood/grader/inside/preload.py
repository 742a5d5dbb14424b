"""Import, in the zygote, the modules that kernels need, so that no kernel imports them itself.

A test compares the lists with what the labs import. Nothing here may start a thread, because a fork
of a process with threads can hang. Learners' kernels can read these lists, so the lists name only
modules that a kernel could import itself. A course's own module imports anything else that the
course needs (:mod:`hood.grader.inside.course_sandbox`).
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
    # not `matplotlib_inline`, which the first figure imports, as in Jupyter's kernel
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

# Modules or packages with functions that call a learner's code: each traceback reads their files.
ON_THE_STACK = ("asyncio.", "hood.grader.inside.kernel", "IPython.core.interactiveshell")

# Modules of the engine.
OURS = (
    "hood.judge.connection.rpc_server",
    "hood.judge.values.figures",  # because matplotlib is imported
    "hood.grader.inside.kernel",
)


def preload(course: CourseSandbox) -> None:
    """Import ``ALWAYS``, the course's modules, and ``OURS``; cache source lines for tracebacks."""
    for name in ALWAYS:
        importlib.import_module(name)
    course.preload()
    for name in OURS:
        importlib.import_module(name)
    _make_letters()
    for loaded, module in list(sys.modules.items()):
        stacked = loaded.startswith((*ON_THE_STACK, *course.on_the_stack))
        if stacked and getattr(module, "__file__", None):
            linecache.getlines(str(module.__file__))  # fills Python's cache


def _make_letters() -> None:
    """Create matplotlib's formula parser now (this takes 50 ms), by making a marker from a formula.

    The fonts are removed from the cache again, because each font has an open file, and kernels
    don't inherit open files.
    """
    from matplotlib import font_manager, mathtext
    from matplotlib.markers import MarkerStyle

    MarkerStyle("$=$")
    mathtext.MathTextParser._parse_cached.cache_clear()  # type: ignore[attr-defined]
    font_manager._get_font.cache_clear()  # type: ignore[attr-defined]
