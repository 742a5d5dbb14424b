"""What a course adds to its sandboxes: the module that its ``course.toml`` names as ``sandbox``.

That module may have any of the names in :class:`CourseSandbox`, as functions or as values. It lies
in one of the course's packages, so a sandbox has it, too. The grading process loads it as well: it
asks what this machine lacks, so importing it takes no time.

``python -m hood.grader.inside.course_sandbox MODULE FOLDER`` makes what labs that compile share.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Protocol

SHOWN = "/tmp/headers"  # where a sandbox has the folder of `make_headers`


class Lack(Protocol):
    """What compiling needs and this machine does not have; as text it is half a sentence."""

    tools: tuple[str, ...]  # what is missing, in words
    packages: tuple[str, ...]  # Debian's and Ubuntu's that bring it
    how: str  # what to do


def _nothing(*_: Any) -> None:
    """What a course does where its module says nothing."""


@dataclass(frozen=True)
class CourseSandbox:
    """What the engine asks of a course where it makes sandboxes."""

    compiles: str = ""  # what its labs compile, in words, such as "C extensions"
    groups: tuple[str, ...] = ()  # of modules, which a lab may name with `preload` in its header
    # Modules, or packages, whose functions call a learner's code: tracebacks read their files.
    on_the_stack: tuple[str, ...] = ()
    # The environment of the zygote, with its folder; and of its kernels, beside that.
    environment: Callable[[Path], Mapping[str, str]] = lambda folder: {}
    kernel_environment: Mapping[str, str] = field(default_factory=dict)
    # Of a lesson that the build executes, with a folder that is removed afterwards.
    lesson_environment: Callable[[Path], Mapping[str, str]] = lambda folder: {}
    # What compiling needs and this machine lacks, None for nothing; and the compiler's path.
    lacks: Callable[[], Lack | None] = _nothing
    compiler: Callable[[], str] = lambda: ""
    # In the zygote: imports for each kernel, for a group, for a lab that traces or compiles.
    preload: Callable[[], None] = _nothing
    preload_group: Callable[[str], None] = _nothing
    preload_tracer: Callable[[], None] = _nothing
    preload_compiler: Callable[[], None] = _nothing
    # Fill a folder with what labs that compile share, which sandboxes have at another path; use it
    # in the zygote; and say what it depends on.
    make_headers: Callable[[Path, str], None] | None = None
    use_headers: Callable[[Path, str], None] = _nothing
    version: Callable[[], list[str]] = list
    one_thread: Callable[[], None] = _nothing  # let libraries compute with one thread
    refresh: Callable[[], None] = _nothing  # draw new random states in a kernel
    # Where the proof runs a lab's own cells. Modules of functions that report no mistake to a
    # program; the same random numbers each time; no leftover in memory that nobody has written.
    never_fail: tuple[str, ...] = ()
    same_random: Callable[[], AbstractContextManager[None]] = nullcontext
    filled_memory: Callable[[], AbstractContextManager[None]] = nullcontext


def load(name: str) -> CourseSandbox:
    """Return what the module of this name says; the defaults without a name."""
    if not name:
        return CourseSandbox()
    module = importlib.import_module(name)
    said = {one.name: getattr(module, one.name, None) for one in fields(CourseSandbox)}
    return CourseSandbox(**{key: value for key, value in said.items() if value is not None})


if __name__ == "__main__":
    make = load(sys.argv[1]).make_headers
    assert make is not None
    make(Path(sys.argv[2]), SHOWN)
