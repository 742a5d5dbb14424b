"""Empty tensors that are NaN, so that a result that nothing has written is noticed."""

import contextlib
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def empty_is_nan() -> Iterator[None]:
    """Let `torch.empty` and the like return NaN, or the largest int, inside a `with` block."""
    import torch  # here, because the sandboxes' settings must not import torch

    memory: Any = torch.utils.deterministic
    mode, filled = torch.get_deterministic_debug_mode(), memory.fill_uninitialized_memory
    # `torch.use_deterministic_algorithms` would also import the compiler: 1.6 s in a new process
    torch.set_deterministic_debug_mode("warn")
    memory.fill_uninitialized_memory = True
    try:
        yield
    finally:
        memory.fill_uninitialized_memory = filled
        torch.set_deterministic_debug_mode(mode)
