"""A course's additions to its sandboxes: the module that its ``course.toml`` names as ``sandbox``.

That module may have any of the names in :class:`CourseSandbox`, as functions or as values. The
module is in one of the course's packages, so sandboxes have it too. The grading process also loads
the module, to find out what this machine lacks. So importing the module must be fast.

``python -m hood.grader.inside.course_sandbox MODULE FOLDER`` makes the files that are shared by all
labs that use a compiler.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Protocol

SHOWN = "/tmp/headers"  # the path of `make_headers`' folder in a sandbox


class Lack(Protocol):
    """What this machine lacks for compiling. As a text, it is a part of a sentence."""

    tools: tuple[str, ...]  # the missing tools, in words
    packages: tuple[str, ...]  # the packages of Debian and Ubuntu with these tools
    how: str  # what to do


def _nothing(*_: Any) -> None:
    """Do nothing: the default for a function that a course does not define."""


@dataclass(frozen=True)
class CourseSandbox:
    """The engine's questions to a course about its sandboxes."""

    compiles: str = ""  # what its labs compile, in words, such as "C extensions"
    groups: tuple[str, ...] = ()  # groups of modules, for `preload` in a lab's header
    # Modules or packages with functions that call a learner's code: tracebacks read their files.
    on_the_stack: tuple[str, ...] = ()
    # The zygote's environment variables. The argument is the zygote's folder.
    environment: Callable[[Path], Mapping[str, str]] = lambda folder: {}
    # Additional environment variables of kernels.
    kernel_environment: Mapping[str, str] = field(default_factory=dict)
    # Environment variables of a lesson that the build executes. The argument is a folder, which is
    # removed afterwards.
    lesson_environment: Callable[[Path], Mapping[str, str]] = lambda folder: {}
    lacks: Callable[[], Lack | None] = _nothing  # what this machine lacks for compiling, or None
    compiler: Callable[[], str] = lambda: ""  # the compiler's path
    # Functions that import modules in the zygote.
    preload: Callable[[], None] = _nothing  # for every kernel
    preload_group: Callable[[str], None] = _nothing  # for the labs that name this group
    preload_tracer: Callable[[], None] = _nothing  # for labs that trace
    preload_compiler: Callable[[], None] = _nothing  # for labs that compile
    # Functions for the files that all compiling labs share, in a folder. Sandboxes see this folder
    # at another path.
    make_headers: Callable[[Path, str], None] | None = None  # fill the folder with the files
    use_headers: Callable[[Path, str], None] = _nothing  # use the folder in the zygote
    version: Callable[[], list[str]] = list  # return what the files depend on
    one_thread: Callable[[], None] = _nothing  # make libraries use one thread
    refresh: Callable[[], None] = _nothing  # set new random states in a kernel
    # For the proof, which runs a lab's own cells.
    never_fail: tuple[str, ...] = ()  # modules with functions that never fail
    same_random: Callable[[], AbstractContextManager[None]] = nullcontext  # fixed random numbers
    # New memory is filled, so that values which were never written become visible.
    filled_memory: Callable[[], AbstractContextManager[None]] = nullcontext


def load(name: str) -> CourseSandbox:
    """Return the settings in the module of this name; for an empty name, return the defaults."""
    if not name:
        return CourseSandbox()
    module = importlib.import_module(name)
    said = {one.name: getattr(module, one.name, None) for one in fields(CourseSandbox)}
    return CourseSandbox(**{key: value for key, value in said.items() if value is not None})


if __name__ == "__main__":
    make = load(sys.argv[1]).make_headers
    assert make is not None
    make(Path(sys.argv[2]), SHOWN)
