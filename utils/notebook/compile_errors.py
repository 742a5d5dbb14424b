"""If the machine can't compile, a cell ends with one line in place of Inductor's traceback.

:mod:`hood.learner.one_line` asks this module, which `course.toml` names.
"""

from __future__ import annotations

from utils.instruments.toolchain import NoCompiler, inductor_lacks, not_compiled

# Inductor's errors if it found no compiler, or if the compiler found no header.
NOT_COMPILED = ("InvalidCxxCompiler", "CppCompileError")


def line_for(error: BaseException) -> str:
    """Return one line for an error, or "" if the error has another cause."""
    if isinstance(error, NoCompiler):
        return str(error)
    if any(name in str(error) for name in NOT_COMPILED) and (lack := inductor_lacks()):
        return not_compiled(lack)
    return ""
