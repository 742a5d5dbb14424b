"""What a cell ends with where the machine can't compile: one line in place of Inductor's traceback.

:mod:`hood.learner.one_line` asks this module, which `course.toml` names.
"""

from __future__ import annotations

from utils.instruments.toolchain import NoCompiler, inductor_lacks, not_compiled

# What Inductor's errors say where it found no compiler, or the compiler no header.
NOT_COMPILED = ("InvalidCxxCompiler", "CppCompileError")


def line_for(error: BaseException) -> str:
    """Return the line that says all of an error; empty of an error that has another cause."""
    if isinstance(error, NoCompiler):
        return str(error)
    if any(name in str(error) for name in NOT_COMPILED) and (lack := inductor_lacks()):
        return not_compiled(lack)
    return ""
