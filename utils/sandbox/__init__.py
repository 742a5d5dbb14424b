"""What the engine's sandboxes must know about this course: imports of kernels, and compilation.

`course.toml` names this package, and :class:`hood.grader.inside.course_sandbox.CourseSandbox` says
what each name here is for. Learners' kernels can read this package. So it names only modules
that a kernel can import, too.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from utils.instruments.empty_memory import empty_is_nan as filled_memory
from utils.instruments.toolchain import cxx as compiler
from utils.instruments.toolchain import inductor_lacks as lacks
from utils.sandbox.headers import make as make_headers
from utils.sandbox.headers import use as use_headers
from utils.sandbox.headers import version
from utils.sandbox.imports import (
    ON_DEMAND,
    on_the_stack,
    preload,
    preload_compiler,
    preload_group,
    preload_tracer,
)

__all__ = [
    "compiler",
    "compiles",
    "environment",
    "filled_memory",
    "groups",
    "kernel_environment",
    "lacks",
    "lesson_environment",
    "make_headers",
    "never_fail",
    "on_the_stack",
    "one_thread",
    "preload",
    "preload_compiler",
    "preload_group",
    "preload_tracer",
    "refresh",
    "same_random",
    "use_headers",
    "version",
]

# Modules for figures, and modules for runs over gloo, whose results are printed.
never_fail = ("utils.views", "utils.instruments.world.gloo")
compiles = "torch.compile's C++"
groups = tuple(ON_DEMAND)
kernel_environment = {
    "TORCHINDUCTOR_CACHE_DIR": "/tmp/inductor",
    "TRITON_CACHE_DIR": "/tmp/triton",
}


def environment(folder: Path) -> Mapping[str, str]:
    """Return additional environment variables for the zygote and its kernels."""
    return {
        # Kernels get the compiler that this process found. So a kernel can compile exactly if this
        # process can.
        "CXX": compiler(),
        # Without this, each sandbox would compile the headers. If compiled headers exist,
        # `use_headers` sets it to 1.
        "TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS": "0",
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
        # There is no network. So a missing file must be an error at once, without retries.
        "HF_HUB_OFFLINE": "1",
        # A folder for the test programs of the zygote. Each kernel has another folder.
        "TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor"),
    }


def lesson_environment(folder: Path) -> Mapping[str, str]:
    """Return environment variables for a lesson's kernel while the build executes the lesson.

    No code is compiled in advance, because lesson 06 shows how long compiling takes and how much
    time a cache saves.
    """
    return {"TORCHINDUCTOR_CACHE_DIR": str(folder / "compiled")}


def one_thread() -> None:
    """Let torch use one thread in this process."""
    import torch

    torch.set_num_threads(1)


def refresh() -> None:
    """Replace the random state that a kernel inherited from the zygote."""
    import torch

    torch.default_generator.seed()


@contextlib.contextmanager
def same_random() -> Iterator[None]:
    """Seed torch's random numbers with 0, and restore their state afterwards."""
    import torch

    before = torch.get_rng_state()
    torch.manual_seed(0)
    try:
        yield
    finally:
        torch.set_rng_state(before)
