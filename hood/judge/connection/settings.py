"""Judge answers with the settings of Python, NumPy and torch that a new kernel has.

A setting applies to a whole process. An answer must not lose points because a cell has changed a
setting.
"""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np

ROUNDS = {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"}


# For each setting: a function to read it, a function to write it, and the value in a new kernel.
Setting = tuple[Callable[[], Any], Callable[[Any], Any], Any]
OF_NUMPY: tuple[Setting, ...] = ((np.geterr, lambda value: np.seterr(**value), ROUNDS),)


@cache
def of_torch() -> tuple[Setting, ...]:
    """Return the settings of torch."""
    import torch

    def default_device() -> Any:
        context = getattr(torch._GLOBAL_DEVICE_CONTEXT, "device_context", None)
        return context and context.device

    return (
        # one thread: cases are too small to gain from more threads, which slow down a busy machine
        (torch.get_num_threads, torch.set_num_threads, 1),
        (torch.get_default_dtype, torch.set_default_dtype, torch.float32),
        (default_device, torch.set_default_device, None),
        (torch.is_grad_enabled, torch.set_grad_enabled, True),
        (
            lambda: torch.is_autocast_enabled("cpu"),
            lambda value: torch.set_autocast_enabled("cpu", value),
            False,
        ),
        (torch.get_float32_matmul_precision, torch.set_float32_matmul_precision, "highest"),
    )


@contextlib.contextmanager
def usual_settings() -> Iterator[None]:
    """Use the settings of a new kernel; afterwards, restore the earlier settings.

    If an answer changes a setting in its own call, the change stays until the call ends.
    """
    with contextlib.ExitStack() as stack:
        torch = sys.modules.get("torch")
        if torch and torch.is_inference_mode_enabled():
            stack.enter_context(torch.inference_mode(False))
        for read, write, usual in (*(of_torch() if torch else ()), *OF_NUMPY):
            before = read()
            stack.callback(_restore, read, write, before)
            if before != usual:
                write(usual)
        stack.enter_context(variable("TRITON_INTERPRET", None))  # Triton's decorator reads it
        if any(action == "error" for action, *_ in warnings.filters):
            stack.enter_context(warnings.catch_warnings())
            others = [chosen for chosen in warnings.filters if chosen[0] != "error"]
            warnings.resetwarnings()
            warnings.filters.extend(others)  # type: ignore[attr-defined]  # a list
        yield


def _restore(read: Callable[[], Any], write: Callable[[Any], Any], before: Any) -> None:
    if read() != before:
        write(before)


@contextlib.contextmanager
def variable(name: str, value: str | None) -> Iterator[None]:
    """Set an environment variable, or unset it with None, while the context is open."""

    environ: Any = getattr(os, "environ", {})  # a cell may have deleted the variable

    def put(value: str | None) -> None:
        if value is not None:
            environ[name] = value
        elif name in environ:
            del environ[name]

    before = environ.get(name)
    put(value)
    try:
        yield
    finally:
        put(before)
