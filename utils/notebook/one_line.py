"""Let a notebook's cell end with one line where its traceback would say less.

Two errors have nothing to trace: a stub that nobody has filled in, and a compilation on a machine
that can't compile. The cell still ends in an error, for Run All and Validate.
"""

from __future__ import annotations

import os
import traceback
from typing import Any

from IPython import get_ipython

from utils.instruments.toolchain import NoCompiler, inductor_lacks, not_compiled
from utils.notebook import bounded_traceback as bounded_traceback  # for all other errors

# nbgrader sets it to "autograde" or "validate" where it runs a notebook.
NBGRADER = "NBGRADER_EXECUTION"
STUB = "write your answer here"  # what the stubs of a released lab raise, see nbgrader_config.py
# What Inductor's errors say where it found no compiler, or the compiler no header.
NOT_COMPILED = ("InvalidCxxCompiler", "CppCompileError")


def install() -> None:
    shell = get_ipython()
    if shell is not None and os.environ.get(NBGRADER) != "autograde":
        shell.set_custom_exc((RuntimeError,), _show)  # NotImplementedError is one


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
    return ""


def _show(shell: Any, kind: Any, error: Any, trace: Any, tb_offset: Any = None) -> None:
    if line := line_for(error, trace):
        shell._showtraceback(kind, error, [line])
    else:
        shell.showtraceback((kind, error, trace), tb_offset=tb_offset)


install()
