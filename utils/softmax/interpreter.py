"""Triton's interpreter, on demand.

Triton decides when it is first imported whether kernels will be interpreted or compiled, for the
whole process (`TRITON_INTERPRET`); `torch.compile` imports it too, and a machine with a GPU wants
both. `interpreted(kernel)` is the interpreted twin of any `@triton.jit` kernel, at any time, and
leaves the language as it found it.
"""

from __future__ import annotations

import functools
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

# A first launch imports this, and it must see the language unpatched.
import triton.experimental.gluon  # noqa: F401
import triton.language as tl
from triton.runtime.interpreter import InterpretedFunction
from triton.runtime.jit import JITFunction

# Where the language's functions and builtins live. The modules of the first group hold functions
# that are kernels themselves; their namespaces also keep what the interpreter adds to run them.
_LIBRARIES = (tl.standard, tl.random)
_LANGUAGE = (tl, tl.core, tl.math, tl.tensor, tl.core.tensor_descriptor_base)
_LOCK = threading.RLock()  # the language is patched for the process, so one kernel at a time


def interpreted(kernel: Any) -> Any:
    """A kernel that is launched as usual, `interpreted(kernel)[grid](...)`, on tensors of the CPU.

    kernel: what `@triton.jit` returned. Under `TRITON_INTERPRET=1` that is interpreted already.
    Programs run one after another in NumPy: neither races nor speed can be seen there.
    """
    function = kernel if isinstance(kernel, InterpretedFunction) else _twin(kernel.fn)
    return _Launcher(function)


class _Launcher:
    def __init__(self, function: InterpretedFunction) -> None:
        self.function = function

    def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., None]:
        def launch(*arguments: Any, **options: Any) -> None:
            with _LOCK, _interpreted_language(), warnings.catch_warnings():
                # -inf - -inf is NaN by design, and NumPy would say so on stderr.
                warnings.simplefilter("ignore", RuntimeWarning)
                self.function[grid](*arguments, **options)

        return launch


@functools.cache
def _twin(function: Callable[..., Any]) -> InterpretedFunction:
    return InterpretedFunction(function)


@contextmanager
def _interpreted_language() -> Iterator[None]:
    """Let the language's own functions (`tl.max`, `tl.sum`, …) run interpreted, too.

    They are `@triton.jit` functions themselves, made when Triton was imported. The interpreter
    also leaves builtins patched when one of them has called another; all is put back here.
    """
    before = [(place, dict(vars(place))) for place in _LIBRARIES + _LANGUAGE]
    try:
        for place, names in before:
            for name, value in names.items():
                if isinstance(value, JITFunction):
                    setattr(place, name, _twin(value.fn))
        yield
    finally:
        for place, names in before:
            if place in _LANGUAGE:
                for name in set(vars(place)) - set(names):
                    delattr(place, name)
            for name, value in names.items():
                if vars(place).get(name) is not value:
                    setattr(place, name, value)
