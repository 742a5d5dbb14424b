"""The learner's code as a check sees it: something that is called by value.

What goes in is copied, what comes out is copied, storage by storage: a view stays a view of the
copied storage, so strides, offsets and sharing survive, while the two sides never hold the same
bytes. A check written against a :class:`Subject` therefore reads the same whether the code runs in
this process or in another one.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

MAX_DEPTH = 16
MAX_ITEMS = 100_000
MAX_BYTES = 1 << 28
MAX_MESSAGE = 120


class NotByValue(TypeError):
    """A value of a kind, depth or size that does not cross between processes."""


class SubjectRaised(Exception):
    """The learner's code raised.

    Attributes:
        kinds: the names of the exception's type and its bases, nearest first.
        message: the first line of what it said.
    """

    def __init__(self, kinds: tuple[str, ...], message: str):
        super().__init__(f"{kinds[0]}: {message}" if message else kinds[0])
        self.kinds = kinds
        self.message = message

    @classmethod
    def of(cls, error: BaseException) -> SubjectRaised:
        """Describe an exception by value."""
        kinds = tuple(k.__name__ for k in type(error).__mro__ if k is not object)
        try:
            message = next(iter(str(error).splitlines()), "")
        except Exception:
            message = ""
        return cls(kinds, message)

    def in_words(self) -> str:
        """Type and message as a report may show them: a message can quote hidden inputs.

        Numbers become ``#``, and what is long is cut.
        """
        message = re.sub(r"(?<![\w.])\d+(\.\d+)?(e[+-]?\d+)?", "#", self.message)
        if len(message) > MAX_MESSAGE:
            message = message[:MAX_MESSAGE] + " …"
        return f"{self.kinds[0]}: {message}" if message else self.kinds[0]


@dataclasses.dataclass(frozen=True)
class Call:
    """What one call did besides returning.

    Attributes:
        changed: positions of the tensor and array arguments whose bytes changed.
        shares: for each tensor returned, the position of the argument whose storage it views, or
            ``None`` for a storage of its own.
        ops: operators that touched an argument's storage, when a trace was asked for.
    """

    changed: tuple[int, ...]
    shares: tuple[int | None, ...]
    ops: tuple[str, ...] = ()


class Subject:
    """A learner's function, class, value, or dict of functions, in this process.

    Args:
        thing: what the learner wrote.
        trace: watch the operators that reach the dispatcher.

    Attributes:
        calls: one :class:`Call` for each call so far.
    """

    def __init__(self, thing: Any, *, trace: bool = False):
        self._thing = thing
        self._trace = trace
        self.calls: list[Call] = []

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function by value; a class gives a :class:`Handle`.

        Raises:
            SubjectRaised: when the learner's code raised.
            NotByValue: when what it returned can't cross.
        """
        if isinstance(self._thing, type):
            return Handle(self, self._run(self._thing, args, kwargs, by_value=False))
        return self._run(self._thing, args, kwargs)

    def __getitem__(self, name: str) -> Callable:
        """The function of that name, when the exercise asks for several."""
        return lambda *args, **kwargs: self._run(self._thing[name], args, kwargs)

    def value(self) -> Any:
        """The learner's value itself, by value."""
        return copy_by_value(self._thing)

    def _run(self, function: Callable, args: tuple, kwargs: dict, by_value: bool = True) -> Any:
        given_args, given_kwargs = copy_by_value((args, kwargs))
        watch = _OpRecorder(tensors_in((given_args, given_kwargs))) if self._trace else None
        try:
            if watch is None:
                result = function(*given_args, **given_kwargs)
            else:
                with watch:
                    result = function(*given_args, **given_kwargs)
        except KeyboardInterrupt:
            raise  # the time limit's interrupt is for the judge
        except BaseException as error:
            raise SubjectRaised.of(error) from None
        if not by_value:
            return result
        # copied together, so that a result that views an argument still does
        came, (after_args, after_kwargs) = copy_by_value((result, (given_args, given_kwargs)))
        before, after = tensors_in((args, kwargs)), tensors_in((after_args, after_kwargs))
        self.calls.append(
            Call(
                changed=tuple(
                    i
                    for i, (b, a) in enumerate(zip(before, after, strict=True))
                    if not _same_bytes(b, a)
                ),
                shares=tuple(_argument_shared_by(t, after) for t in tensors_in(came)),
                ops=tuple(watch.ops) if watch else (),
            )
        )
        return came


class Handle:
    """An instance that the learner's class made; its methods are called by value."""

    def __init__(self, subject: Subject, instance: Any):
        self._subject = subject
        self._instance = instance

    def call(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """Call a method; ``"__call__"`` calls the instance itself.

        Raises:
            SubjectRaised: when the method raised or does not exist.
        """
        return self._subject._run(self._attribute(method), args, kwargs)

    def get(self, attribute: str) -> Any:
        """An attribute's value.

        Raises:
            SubjectRaised: when it does not exist.
        """
        return copy_by_value(self._attribute(attribute))

    def _attribute(self, name: str) -> Any:
        try:
            return getattr(self._instance, name)
        except Exception as error:
            raise SubjectRaised.of(error) from None


def copy_by_value(value: Any) -> Any:
    """Copy tensors, arrays, numbers, strings, dtypes and containers of them.

    Each storage is copied once, whole: tensors that shared one share the copy, and keep their
    shape, strides, offset and dtype. NumPy's scalars become Python numbers. Data classes of
    ``utils`` are copied field by field.

    Raises:
        NotByValue: for anything else, or for too much, too large or too deep.
    """
    return _Copier().copy(value, 0)


def tensors_in(value: Any) -> list[torch.Tensor | np.ndarray]:
    """The tensors and arrays inside nested containers, in order."""
    if isinstance(value, (torch.Tensor, np.ndarray)):
        return [value]
    if isinstance(value, Mapping):
        return [t for v in value.values() for t in tensors_in(v)]
    if isinstance(value, (tuple, list)):
        return [t for v in value for t in tensors_in(v)]
    return []


class _Copier:
    def __init__(self) -> None:
        self.storages: dict[int, torch.UntypedStorage] = {}
        self.items = 0
        self.bytes = 0

    def copy(self, value: Any, depth: int) -> Any:
        self.items += 1
        if depth > MAX_DEPTH:
            raise NotByValue(f"something nested more than {MAX_DEPTH} levels deep")
        if self.items > MAX_ITEMS:
            raise NotByValue(f"more than {MAX_ITEMS} values")
        if value is None or isinstance(value, (bool, int, float, complex, str, bytes)):
            return value
        if isinstance(value, (torch.dtype, torch.device)):
            return value
        if isinstance(value, torch.Tensor):
            return self._tensor(value)
        if isinstance(value, np.ndarray):
            return self._array(value)
        if isinstance(value, np.generic):
            return value.item()
        if isinstance(value, slice):
            return slice(*(self.copy(v, depth + 1) for v in (value.start, value.stop, value.step)))
        if isinstance(value, Mapping):
            return {self.copy(k, depth + 1): self.copy(v, depth + 1) for k, v in value.items()}
        if isinstance(value, (tuple, list)):
            items = [self.copy(v, depth + 1) for v in value]
            return items if isinstance(value, list) else tuple(items)
        if dataclasses.is_dataclass(value) and type(value).__module__.startswith("utils."):
            return dataclasses.replace(value)
        raise NotByValue(
            f"a value of type {type(value).__name__}: expected tensors, arrays, numbers, strings, "
            "or containers of them"
        )

    def _count(self, nbytes: int) -> None:
        self.bytes += nbytes
        if self.bytes > MAX_BYTES:
            raise NotByValue(f"more than {MAX_BYTES >> 20} MiB of data")

    def _array(self, value: np.ndarray) -> np.ndarray:
        if value.dtype.hasobject:
            raise NotByValue("a NumPy array of Python objects")
        self._count(value.nbytes)
        return np.array(value, subok=False)

    def _tensor(self, value: torch.Tensor) -> torch.Tensor:
        if value.layout is not torch.strided or value.device.type == "meta":
            raise NotByValue(f"a tensor of layout {value.layout} on {value.device}")
        plain = value.detach()
        storage = plain.untyped_storage()
        key = storage.data_ptr() or id(storage)
        if key not in self.storages:
            self._count(storage.nbytes())
            self.storages[key] = storage.clone()
        copy = torch.empty(0, dtype=plain.dtype, device=plain.device)
        copy.set_(self.storages[key], plain.storage_offset(), plain.shape, plain.stride())
        if plain.is_conj():
            copy = copy.conj()
        if plain.is_neg():
            copy = torch._neg_view(copy)
        return copy.requires_grad_(value.requires_grad)


class _OpRecorder(TorchDispatchMode):
    """Write down each operator that reaches the dispatcher and touches an input's storage."""

    def __init__(self, inputs: list) -> None:
        super().__init__()
        self.ops: list[str] = []
        addresses = {_address(t) for t in inputs if isinstance(t, torch.Tensor)}
        self._inputs = addresses - {0}  # that of every empty storage

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # The default asks torch._dynamo to keep out, and so imports all of it: over a second.
        return False

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        touched = {_address(t) for t in tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor)}
        if touched & self._inputs:
            self.ops.append(str(func._overloadpacket))
        return func(*args, **(kwargs or {}))


def _address(tensor: torch.Tensor) -> int:
    """Where a tensor's storage begins."""
    return tensor.untyped_storage().data_ptr()


def _argument_shared_by(tensor: Any, arguments: list) -> int | None:
    if not isinstance(tensor, torch.Tensor):
        return None
    address = _address(tensor)
    if address == 0:  # an empty storage shares nothing
        return None
    for index, argument in enumerate(arguments):
        if isinstance(argument, torch.Tensor) and _address(argument) == address:
            return index
    return None


def _same_bytes(before: Any, after: Any) -> bool:
    """Whether an argument still has its shape and values (NaN equals NaN)."""
    if isinstance(before, np.ndarray):
        return before.shape == after.shape and np.array_equal(
            before.view(np.uint8) if before.flags.c_contiguous and before.size else before,
            after.view(np.uint8) if after.flags.c_contiguous and after.size else after,
        )
    if before.shape != after.shape or before.dtype != after.dtype:
        return False
    return bool(
        torch.isclose(
            _comparable(before), _comparable(after), rtol=0, atol=0, equal_nan=True
        ).all()
    )


def _comparable(tensor: torch.Tensor) -> torch.Tensor:
    plain = tensor.detach()
    if plain.is_complex():
        return plain.to(torch.complex128)
    return plain.to(torch.float64 if plain.dtype.is_floating_point else torch.int64)
