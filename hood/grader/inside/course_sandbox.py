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
    """What this machine lacks for compiling; the text is a part of a sentence."""

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
    # The zygote's environment variables, made from its folder; and the kernels' additional
    # variables.
    environment: Callable[[Path], Mapping[str, str]] = lambda folder: {}
    kernel_environment: Mapping[str, str] = field(default_factory=dict)
    # Environment variables of a lesson that the build executes; the folder is removed afterwards.
    lesson_environment: Callable[[Path], Mapping[str, str]] = lambda folder: {}
    # What this machine lacks for compiling, or None; and the compiler's path.
    lacks: Callable[[], Lack | None] = _nothing
    compiler: Callable[[], str] = lambda: ""
    # Imports in the zygote: for each kernel; for a group; and for a lab that traces or compiles.
    preload: Callable[[], None] = _nothing
    preload_group: Callable[[str], None] = _nothing
    preload_tracer: Callable[[], None] = _nothing
    preload_compiler: Callable[[], None] = _nothing
    # Three functions for files that all compiling labs share: fill a folder with these files
    # (sandboxes see the folder at another path); use the folder in the zygote; and name the
    # folder's dependencies.
    make_headers: Callable[[Path, str], None] | None = None
    use_headers: Callable[[Path, str], None] = _nothing
    version: Callable[[], list[str]] = list
    one_thread: Callable[[], None] = _nothing  # make libraries use one thread
    refresh: Callable[[], None] = _nothing  # set new random states in a kernel
    # For the proof, which runs a lab's own cells: modules with functions that never fail; fixed
    # random numbers; and filled memory, which makes unwritten values visible.
    never_fail: tuple[str, ...] = ()
    same_random: Callable[[], AbstractContextManager[None]] = nullcontext
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
