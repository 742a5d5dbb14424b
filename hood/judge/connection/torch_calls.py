"""Record calls of torch and send gradients, in the learner's process.

Importing this module imports torch. So import it only where torch is loaded or needed.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import GeneratorType
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from hood.judge.connection import course_code
from hood.judge.connection.settings import variable
from hood.judge.values.table import address, stored_in

MAX_OPS = 10_000
# Folders that contain no learner's code.
LIBRARIES = (Path(os.__file__).parent, Path(torch.__file__).parents[1])
OTHERS = tuple(f"{path}{os.sep}" for path in (*LIBRARIES, *course_code.folders()))


@contextlib.contextmanager
def grad_mode_of(generator: Iterator) -> Iterator[None]:
    """Resume a generator in the grad mode in which it yielded; afterwards restore the outer mode.

    A generator may yield inside `with torch.no_grad()`, and other code runs before the next resume.
    """
    outside, is_own = torch.is_grad_enabled(), isinstance(generator, GeneratorType)
    if is_own:
        torch.set_grad_enabled(_grad_modes.get(generator, outside))
    try:
        yield
    finally:
        if is_own:
            _grad_modes[generator] = torch.is_grad_enabled()
        torch.set_grad_enabled(outside)


_grad_modes: WeakKeyDictionary[Iterator, bool] = WeakKeyDictionary()


def gradients(module: Any, args: tuple, upstream: torch.Tensor) -> dict[str, Any]:
    """Call ``module(*args)`` and send a gradient back through it.

    Returns a dict with three keys. ``output`` is the result of the call. ``arguments`` is a list of
    the gradients of ``args``. ``parameters`` is a dict of the parameters' gradients. A gradient
    that does not arrive is None. If the output does not have the shape and dtype of ``upstream``,
    all gradients are None.
    """
    own = {name: p for name, p in module.named_parameters() if isinstance(p, torch.Tensor)}
    floating = [isinstance(a, torch.Tensor) and a.is_floating_point() for a in args]
    leaves = [a.requires_grad_() if is_so else a for a, is_so in zip(args, floating, strict=True)]
    # Pass clones, because autograd refuses in-place changes of a leaf. Changes of the module's
    # inputs are judged in other calls.
    given = [a.clone() if is_so else a for a, is_so in zip(leaves, floating, strict=True)]
    y = module(*given)
    wanted = [a for a, is_so in zip(leaves, floating, strict=True) if is_so]
    wanted += [p for p in own.values() if p.requires_grad]
    found: dict[int, Any] = {}
    alike = isinstance(y, torch.Tensor) and (y.shape, y.dtype) == (upstream.shape, upstream.dtype)
    if alike and y.requires_grad:
        arrived = torch.autograd.grad(y, wanted, upstream, allow_unused=True)
        found = {id(leaf): grad for leaf, grad in zip(wanted, arrived, strict=True)}
    return {
        "output": y,
        "arguments": [found.get(id(a)) for a in leaves],
        "parameters": {str(name): found.get(id(p)) for name, p in own.items()},
    }


@contextlib.contextmanager
def uncompiled() -> Iterator[None]:
    """Run compiled functions without compilation while calls are recorded.

    A mode does not see the calls in a compiled function, and torch cannot compile under a mode.
    """
    with contextlib.ExitStack() as stack:
        if dynamo := sys.modules.get("torch._dynamo"):
            stack.enter_context(dynamo.set_stance("force_eager"))
        stack.enter_context(variable("TORCHDYNAMO_DISABLE", "1"))  # if the call compiles something
        yield


class OpRecorder(TorchDispatchMode):
    """Record each operator that reaches the dispatcher and gets an input's storage as an argument.

    An operator's result, such as a copy of an input, also counts as an input. Inputs that are not
    tensors are ignored.
    """

    def __init__(self, *inputs: Any) -> None:
        super().__init__()
        self.ops: list[str] = []  # the recorded operators, such as ``aten.add``, in order
        # every empty storage has the address 0
        self._inputs = set(map(address, stored_in(inputs))) - {0}
        self._kept: list[Any] = []  # keeps results alive, so that no address is used again

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # torch's default imports all of torch._dynamo, which takes over a second.
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        touched = _tensors_in((*args, *kwargs.values()) if kwargs else args)
        made = func(*args, **(kwargs or {}))
        if touched & self._inputs:
            self.ops.append(str(func._overloadpacket))
            self._kept.append(made)
            self._inputs |= _tensors_in((made,)) - {0}
        return made


class CallRecorder(TorchFunctionMode):
    """Record each function, method and attribute of torch that the learner's code calls or reads.

    A call is recorded even if the code uses an alias. Two kinds of calls are not recorded: calls by
    a library, and calls by the learner's code inside a call of torch, such as a ``backward``.
    """

    def __init__(self) -> None:
        super().__init__()
        # By path, such as ``torch.softmax``: the line of the first call.
        self.lines: dict[str, int] = {}
        self._heard: set[Any] = set()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func not in self._heard and len(self.lines) < MAX_OPS:
            self._hear(func, sys._getframe(1))
        return func(*args, **kwargs) if kwargs else func(*args)

    def _hear(self, func: Any, frame: Any) -> None:
        own = getattr(func, "__code__", None)  # torch's Python functions call the mode themselves
        while own and frame and frame.f_code is not own:
            frame = frame.f_back
        frame = frame.f_back if own and frame else frame
        while frame and frame.f_code.co_filename == torch._ops.__file__:
            frame = frame.f_back  # a frame of torch itself, which calls an operator of `torch.ops`
        if frame and not frame.f_code.co_filename.startswith(OTHERS):
            self._heard.add(func)
            self.lines.setdefault(_path(func), frame.f_lineno)


def _path(func: Any) -> str:
    module, name = getattr(func, "__module__", None) or "torch", getattr(func, "__name__", "")
    if name == "__get__":  # an attribute, which may be a property
        attribute = getattr(func.__self__, "fget", func.__self__)
        return f"torch.Tensor.{getattr(attribute, '__name__', '')}"
    if hasattr(func, "__objclass__") or module == "torch._tensor":
        module = "torch.Tensor"
    return f"{module}.{name}"


def _tensors_in(values: Iterable[Any]) -> set[int]:
    """Return the addresses of tensors' storages. Operators get and return no other storages."""
    found: set[int] = set()
    for one in values:
        if isinstance(one, torch.Tensor):
            found.add(address(one))
        elif isinstance(one, (tuple, list)):
            found |= _tensors_in(one)
    return found
