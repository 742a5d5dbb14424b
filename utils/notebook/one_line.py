"""Let a notebook's cell end with one line where its traceback would say less.

Two errors have nothing to trace: a stub that nobody has filled in, and a compilation on a machine
that can't compile. An error below a verdict in the same cell was traced where the answer was tried
first, in the cell above. The cell still ends in an error, for Run All and Validate.
"""

from __future__ import annotations

import os
import traceback
from typing import Any

from IPython import get_ipython

from utils.instruments.toolchain import NoCompiler, inductor_lacks, not_compiled
from utils.notebook import history

# nbgrader sets it to "autograde" or "validate" where it runs a notebook.
NBGRADER = "NBGRADER_EXECUTION"
STUB = "write your answer here"  # what the stubs of a released lab raise, see nbgrader_config.py
# What Inductor's errors say where it found no compiler, or the compiler no header.
NOT_COMPILED = ("InvalidCxxCompiler", "CppCompileError")
MOST = 200  # characters of an error's message

_judged = [""]  # the text of the last cell that has shown a verdict


def install() -> None:
    shell = get_ipython()
    if shell is not None and os.environ.get(NBGRADER) != "autograde":
        shell.set_custom_exc((Exception,), _show)


def after_verdict() -> None:
    """From now on the cell that runs ends with one line; :func:`utils.notebook.verdict.check` calls
    this when it has shown a verdict."""
    _judged[0] = history.running()


def line_for(error: BaseException, trace: Any) -> str:
    """Return the line that says all of an error; empty where its traceback should be shown."""
    if isinstance(error, NotImplementedError) and str(error) == STUB:
        *_, (frame, _) = traceback.walk_tb(trace)
        name = frame.f_code.co_qualname
        return f"{name}: not written yet. Your answer takes the place of its `raise` line."
    if isinstance(error, NoCompiler):
        return str(error)
    if any(name in str(error) for name in NOT_COMPILED) and (lack := inductor_lacks()):
        return not_compiled(lack)
    own = hasattr(error, "_render_traceback_")  # says by itself what is shown
    if _judged[0] and _judged[0] == history.running() and not own:
        return _below_verdict(error, trace)
    return ""


def _below_verdict(error: BaseException, trace: Any) -> str:
    frames = [frame for frame, _ in traceback.walk_tb(trace)]
    names = [
        frame.f_code.co_qualname
        for frame in frames
        if "__name__" in frame.f_globals and frame.f_globals["__name__"] == "__main__"
    ]
    where = f" (in `{names[-1]}`)" if names and names[-1] != "<module>" else ""
    said = str(error).strip().partition("\n")[0][:MOST]
    return f"{type(error).__name__}: {said}{where}. The rest of this cell did not run."


def _show(shell: Any, kind: Any, error: Any, trace: Any, tb_offset: Any = None) -> None:
    if line := line_for(error, trace):
        shell._showtraceback(kind, error, [line])
    else:
        shell.showtraceback((kind, error, trace), tb_offset=tb_offset)


install()
