"""Run Triton kernels in Triton's interpreter, on demand.

The first import of Triton decides for the whole process whether kernels are interpreted or compiled
(`TRITON_INTERPRET`). But `interpreted(kernel)` returns an interpreted version of any `@triton.jit`
kernel at any time: a *twin*. A launch of a twin patches Triton's language, and then restores it.
"""

from __future__ import annotations

import dataclasses
import functools
import threading
import types
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from unittest import mock

import numpy as np
import torch

# A first launch would import this module. The module must be imported before the language is
# patched.
import triton.experimental.gluon  # noqa: F401
import triton.language as tl
from triton.runtime import interpreter
from triton.runtime.interpreter import InterpretedFunction
from triton.runtime.jit import JITFunction

from utils.instruments import shapes_once

# The modules with the language's functions and builtins. The modules of the first group have
# functions that are kernels. The interpreter also adds names to these modules.
_LIBRARIES = (tl.standard, tl.random)
_LANGUAGE = (tl, tl.core, tl.math, tl.tensor, tl.core.tensor_descriptor_base)
INTERPRETED = (
    "TRITON_INTERPRET was set when Triton was imported. Remove the line that sets it, and restart "
    "the kernel"
)
# The language is patched for the whole process, so only one kernel may run at a time.
_LOCK = threading.RLock()


def interpreted(kernel: Any) -> Any:
    """Return a kernel that is launched as usual, `interpreted(kernel)[grid](...)`, on CPU tensors.

    Programs run one after another in NumPy, so they show neither races nor speed. With
    `TRITON_INTERPRET=1` a kernel is already interpreted.
    """
    function = kernel if isinstance(kernel, InterpretedFunction) else _twin(kernel.fn)
    return _Launcher(function)


def compiled_form(kernel: Any) -> Any:
    """Return a kernel in the form for the compiler, with its helpers.

    With `TRITON_INTERPRET=1` in the environment, `@triton.jit` makes an interpreted function. This
    function still has the kernel's source text, so the compiler's form is made from the text. If
    neither the kernel nor its helpers are interpreted functions, the kernel is returned unchanged.
    """
    return _compiled_form(kernel, {})


def _compiled_form(kernel: Any, made: dict[int, Any]) -> Any:
    if not isinstance(kernel, (InterpretedFunction, JITFunction)) or id(kernel) in made:
        return made.get(id(kernel), kernel)
    made[id(kernel)] = kernel  # for a kernel that calls itself, which the compiler refuses
    function: Any = kernel.fn
    space = function.__globals__
    names = {n: _compiled_form(space[n], made) for n in function.__code__.co_names if n in space}
    if isinstance(kernel, InterpretedFunction) or any(
        space[n] is not new for n, new in names.items()
    ):
        options = kernel.kwargs if isinstance(kernel, InterpretedFunction) else {}
        copy = types.FunctionType(
            function.__code__, space | names, None, function.__defaults__, function.__closure__
        )
        functools.update_wrapper(copy, function)
        copy.__kwdefaults__ = function.__kwdefaults__
        made[id(kernel)] = JITFunction(copy, **options)
    return made[id(kernel)]


@contextmanager
def compiling() -> Iterator[None]:
    """Keep the language unpatched, as the compiler needs it, while the context is open."""
    with _LOCK:
        yield


class _Launcher:
    def __init__(self, function: InterpretedFunction) -> None:
        self.function = function

    def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., None]:
        def launch(*arguments: Any, **options: Any) -> None:
            storages = _storages(self.function.arg_names, arguments, options)
            with (
                _LOCK,
                # The helpers are looked up after the lock is taken, because another launch may have
                # replaced the globals.
                _interpreted_language(_helpers(self.function.fn)),
                _in_bounds(storages),
                warnings.catch_warnings(),
            ):
                # For -inf - -inf, NumPy would print a warning to stderr. The result NaN is right.
                warnings.simplefilter("ignore", RuntimeWarning)
                self.function[grid](*arguments, **options)

        return launch


class _Twin(InterpretedFunction):
    """An interpreted function that other kernels call."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        # Triton would patch the whole language again at every call, which takes two milliseconds.
        try:
            return self.rewrite()(*args, **kwargs)
        except interpreter.InterpreterError:
            raise
        except Exception as error:
            raise interpreter.InterpreterError(repr(error)) from error

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """Make the language's functions methods of its tensors, as in `x.max(0)`."""
        return self if instance is None else functools.partial(self, instance)


_twins: dict[tuple, InterpretedFunction] = {}


def _twin(function: Callable[..., Any]) -> InterpretedFunction:
    """Return the twin of a function. All copies of a function have the same twin."""
    if function.__closure__:
        return _Twin(function)
    key = function.__code__, function.__defaults__, id(function.__globals__)
    if key not in _twins:
        _twins[key] = _Twin(function)
    return _twins[key]


def _storages(
    names: list[str], arguments: tuple, options: dict[str, Any]
) -> list[tuple[int, int, str]]:
    """Return the start, the end and the name of each tensor's memory in a launch."""
    given = {**dict(zip(names, arguments, strict=False)), **options}
    ranges = []
    for name, value in given.items():
        if isinstance(value, torch.Tensor):
            if value.device.type == "meta" or type(value).__name__ == "FakeTensor":
                raise TypeError(
                    f"{name} is a fake tensor, which has no memory for a kernel: "
                    "do not launch kernels in code that is traced"
                )
            storage = value.untyped_storage()
            # A tensor without elements has the address 0, also if its storage has another address.
            start, size = (storage.data_ptr(), storage.nbytes()) if value.numel() else (0, 0)
            ranges.append((start, start + size, name))
    return ranges


@contextmanager
def watched(note: Callable[[str, Any, Any], None]) -> Iterator[None]:
    """Call ``note("loads" or "stores", places, mask)`` before each memory access of a program."""
    builder = interpreter.interpreter_builder
    load, store = builder.create_masked_load, builder.create_masked_store

    def noted_load(places: Any, mask: Any, other: Any, *rest: Any) -> Any:
        note("loads", places, mask)
        places = _as_wide(places, places)
        return load(places, _as_wide(mask, places, bool), _as_wide(other, places), *rest)

    def noted_store(places: Any, value: Any, mask: Any, *rest: Any) -> Any:
        note("stores", places, mask)
        places = _as_wide(places, places)
        return store(places, _as_wide(value, places), _as_wide(mask, places, bool), *rest)

    with (
        mock.patch.object(builder, "create_masked_load", noted_load),
        mock.patch.object(builder, "create_masked_store", noted_store),
    ):
        yield


def _in_bounds(storages: list[tuple[int, int, str]]) -> AbstractContextManager[None]:
    """Refuse loads and stores outside the tensors' storages while the context is open.

    An access outside all storages could reach any memory of the process. An access inside a storage
    is allowed, also if it is outside the passed view, as on a GPU.
    """

    def check(kind: str, places: Any, mask: Any) -> None:
        addresses = places.data[np.broadcast_to(mask.data, places.data.shape).astype(bool)]
        if not addresses.size:
            return
        wide = max(places.get_element_ty().primitive_bitwidth // 8, 1)
        low, high = int(addresses.min()), int(addresses.max()) + wide
        if any(start <= low and high <= end for start, end, _ in storages):
            return
        for address in map(int, addresses.ravel()):
            if not any(start <= address and address + wide <= end for start, end, _ in storages):
                program = interpreter.interpreter_builder.grid_idx
                raise IndexError(_outside(kind, address, wide, program, storages))

    return watched(check)


def _as_wide(handle: Any, places: Any, dtype: Any = None) -> Any:
    """Return a handle with one value for each address of a block, contiguous in memory.

    The interpreter's C++ code relies on this. Without it, two masks would corrupt the process: a
    mask of one value that is broadcast to a block, and a mask of integers.
    """
    if handle is None:
        return None
    data, shape = np.asarray(handle.data), places.data.shape
    right = dtype is None or data.dtype == dtype
    if right and data.shape == shape and data.flags.c_contiguous:
        return handle
    full = np.ascontiguousarray(np.broadcast_to(data, shape), dtype=dtype)
    return interpreter.TensorHandle(full, handle.dtype)


def _outside(
    kind: str, address: int, wide: int, program: tuple, storages: list[tuple[int, int, str]]
) -> str:
    if not storages:
        return f"program {program[0]} {kind} memory, but the launch has no tensor"
    start, end, name = min(storages, key=lambda one: abs(one[0] - address))
    if start == end:
        return (
            f"program {program[0]} {kind} an element of {name}, which has no elements: "
            "if there are no rows, launch no program"
        )
    return (
        f"program {program[0]} {kind} element {(address - start) // wide} of the storage of "
        f"{name}, which has {(end - start) // wide} elements: is a mask missing, or a stride wrong?"
    )


def _helpers(function: Callable[..., Any], helpers: dict | None = None) -> dict[int, tuple]:
    """Return the `@triton.jit` functions that a kernel calls by name, with their namespaces."""
    helpers = {} if helpers is None else helpers
    space = getattr(function, "__globals__", {})
    for name in function.__code__.co_names:
        called = space.get(name)
        if isinstance(called, JITFunction) and (id(space), name) not in helpers:
            helpers[id(space), name] = space, called
            _helpers(called.fn, helpers)
    return helpers


@contextmanager
def _interpreted_language(helpers: dict[Any, tuple[dict, Any]]) -> Iterator[None]:
    """Make the language and a kernel's helpers interpreted while the context is open.

    The language's own functions (`tl.max`, …) are `@triton.jit` functions, like helpers. Twins
    replace all these functions. The interpreter itself would search for the language's builtins at
    every launch and every call. A search takes milliseconds, and its result is always the same. So
    the search is done once.
    """
    changes = _changes()
    before = [(place, name, vars(place).get(name, _MISSING)) for place, name, _ in changes]
    patch = interpreter._patch_lang
    interpreter._patch_lang = lambda function: interpreter._LangPatchScope()
    try:
        for (_, name), (space, called) in helpers.items():
            space[name] = _twin(called.fn)
        for place, name, value in changes:
            setattr(place, name, value)
        yield
    finally:
        interpreter._patch_lang = patch
        for place, name, value in before:
            if value is _MISSING:
                delattr(place, name)
            else:
                setattr(place, name, value)
        for (_, name), (space, called) in helpers.items():
            space[name] = called


_MISSING = object()


@functools.cache
def _changes() -> list[tuple[Any, str, Any]]:
    """Return the entries that differ while a kernel is interpreted: (namespace, name, value)."""
    before = [(place, dict(vars(place))) for place in _LIBRARIES + _LANGUAGE]
    try:
        for place, names in before:
            for name, value in names.items():
                if isinstance(value, JITFunction):
                    setattr(place, name, _twin(value.fn))
        # The interpreter looks for the language among the globals of a function.
        interpreter._patch_lang(types.SimpleNamespace(__globals__={"tl": tl, "core": tl.core}))
        changes = [
            (place, name, value)
            for place, names in before
            for name, value in vars(place).items()
            if names.get(name, _MISSING) is not value
        ]
    finally:
        for place, names in before:
            for name in set(vars(place)) - set(names):
                delattr(place, name)
            for name, value in names.items():
                if vars(place).get(name) is not value:
                    setattr(place, name, value)
    # The interpreter computes every sum and product of integers again in 64 bits, for an assertion
    # that there was no overflow. Without `debug` there is no assertion, but this computation would
    # still take a quarter of a launch.
    builder = interpreter.interpreter_builder
    options = dataclasses.replace(builder.options, sanitize_overflow=builder.options.debug)
    own = [(builder, "options", options), (builder, "create_dot", _dot)]
    return [*changes, *own, *shapes_once.changes()]


def _dot(a: Any, b: Any, *rest: Any) -> Any:
    """Multiply two blocks. The interpreter itself would multiply the bits of bfloat16 as integers.

    A GPU's product of two bfloat16 numbers is exact in float32, like the product made here.
    """
    builder = interpreter.interpreter_builder
    a, b = (
        builder.cast_impl(one, tl.float32) if one.dtype.scalar == tl.bfloat16 else one
        for one in (a, b)
    )
    return type(builder).create_dot(builder, a, b, *rest)
