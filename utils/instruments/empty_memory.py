"""Empty tensors that are NaN, so that a result that nothing has written is noticed."""

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

DEFAULT, WARN, ERROR = range(3)  # of `torch.set_deterministic_debug_mode`


@contextlib.contextmanager
def empty_is_nan() -> Iterator[None]:
    """Let `torch.empty` and the like return NaN, or the largest int, inside a `with` block."""
    import torch  # here, because the sandboxes' settings must not import torch

    memory: Any = torch.utils.deterministic
    mode, filled = torch.get_deterministic_debug_mode(), memory.fill_uninitialized_memory
    _set(WARN)
    memory.fill_uninitialized_memory = True
    try:
        yield
    finally:
        memory.fill_uninitialized_memory = filled
        _set(mode)


def _set(mode: int) -> None:
    """Set torch's mode, and Inductor's setting that follows it, but do not import Inductor.

    The import takes 1.6 s in a new process. If the block imports Inductor, a compilation copies the
    mode into Inductor's setting.
    """
    import torch

    if "torch._inductor.config" in sys.modules:
        torch.use_deterministic_algorithms(mode != DEFAULT, warn_only=mode == WARN)
    else:
        torch.set_deterministic_debug_mode(mode)
