"""The learner's code as a check sees it: something that is called by value.

What goes in is copied, what comes out is copied, storage by storage: a view stays a view of the
copied storage, so strides, offsets and sharing survive, while the two sides never hold the same
bytes. A check reads the same whether the code runs in this process or in another one.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from grader.inside.codec import NotByValue
from grader.judging.rpc_client import Link

MAX_MESSAGE = 240
MAX_KINDS = 32
NUMBER = re.compile(r"(?<![\w.])\d+(\.\d+)?(e[+-]?\d+)?")
# What torch says of shapes and dimensions: it helps, and tells no value. An index that is out of
# bounds may be a value.
SIZES = r"\[[-\d, ]*\]"
ABOUT_SHAPES = re.compile(
    "|".join(
        (
            r"The size of tensor a \(\d+\) must match the size of tensor b \(\d+\) at [^\d]*\d+",
            r"The expanded size of the tensor \(\d+\) must match the existing size \(\d+\) "
            r"at [^\d]*\d+"
            rf"(\.\s+Target sizes: {SIZES}\.\s+Tensor sizes: {SIZES})?",
            r"mat1 and mat2 shapes cannot be multiplied \(\d+x\d+ and \d+x\d+\)",
            r"size mismatch, got input \(\d+\), mat \(\d+x\d+\), vec \(\d+\)",
            rf"shape '{SIZES}' is invalid for input of size \d+",
            r"is out of bounds for dimension \d+ with size \d+",
            r"expected to be in range of \[-?\d+, -?\d+\], but got -?\d+",
            r"must match except in dimension \d+\. Expected size \d+ but got size \d+",
            r"stack expects each tensor to be equal size, but got "
            rf"{SIZES} at entry \d+ and {SIZES} at entry \d+",
            r"has size \d+ for operand \d+ which does not broadcast with previously seen size \d+",
            rf"expected tensor {SIZES} and src {SIZES} to have the same number of elements, "
            r"but got \d+ and \d+ elements",
            rf"output with shape {SIZES} doesn't match the broadcast shape {SIZES}",
            r"Expected size for first two dimensions of batch2 tensor to be: "
            rf"{SIZES} but got: {SIZES}",
            rf"setStorage: sizes {SIZES}, strides {SIZES}, storage offset \d+, and itemsize \d+ "
            r"requiring a storage size of \d+ are out of bounds for storage of size \d+",
            rf"mismatch in shape: grad_output\[\d+\] has a shape of torch\.Size\({SIZES}\) and "
            rf"output\[\d+\] has a shape of torch\.Size\({SIZES}\)",
        )
    ),
    re.IGNORECASE,
)
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]|\x1b\[[0-9;?]*[ -/]*[@-~]")


class SubjectRaised(Exception):
    """The learner's code raised.

    Attributes:
        kinds: the names of the exception's type and its bases, nearest first.
        message: the first line of what it said, and the next where the first announces it.
    """

    def __init__(self, kinds: tuple[str, ...], message: str):
        super().__init__(f"{kinds[0]}: {message}" if message else kinds[0])
        self.kinds = kinds
        self.message = message

    @classmethod
    def of(cls, description: Any) -> SubjectRaised:
        """What another process says of an exception, as far as it can be used."""
        said = description if isinstance(description, dict) else {}
        names = said.get("kinds")
        names = names[:MAX_KINDS] if isinstance(names, list) else []
        kinds = [CONTROL.sub("", k)[:100] for k in names if isinstance(k, str)]
        message = said.get("message")
        text = CONTROL.sub("", message) if isinstance(message, str) else ""
        return cls(tuple(kinds) or ("Exception",), text[:1000])

    def in_words(self) -> str:
        """The message as a report may show it: it can quote hidden inputs.

        Numbers of more than one digit become ``#``, but for those of torch's sentences about
        shapes, and what is long is cut.
        """
        message, end = "", 0
        for sentence in ABOUT_SHAPES.finditer(self.message):
            message += _without_numbers(self.message[end : sentence.start()]) + sentence[0]
            end = sentence.end()
        message += _without_numbers(self.message[end:])
        if len(message) > MAX_MESSAGE:
            message = message[:MAX_MESSAGE] + " …"
        return message


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
    """A learner's function, class, value, or dict of functions.

    Args:
        link: the way to it.
        trace: watch the operators that reach the dispatcher.

    Attributes:
        calls: one :class:`Call` for each call so far.
        got: what the last call returned.
    """

    def __init__(self, link: Link, *, trace: bool = False):
        self._link = link
        self._trace = trace
        self.calls: list[Call] = []
        self.got: Any = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function by value; a class gives a :class:`Handle`.

        Raises:
            SubjectRaised: when the learner's code raised.
            NotByValue: when what it returned can't cross.
        """
        return self.run(args, kwargs)

    def __getitem__(self, name: str) -> Callable:
        """The function of that name, when the exercise asks for several."""
        return lambda *args, **kwargs: self.run(args, kwargs, name=name)

    def drive(self, driver: str, *args: Any, of: str | None = None, **kwargs: Any) -> Any:
        """Let a function of ``utils.drivers`` use the learner's thing, beside it, by value.

        Args:
            driver: such as ``dispatch:log_ops``.
            args, kwargs: what the driver gets after the learner's thing.
            of: the function it gets, when the exercise asks for several.

        Raises:
            SubjectRaised: when the driver raised, as it does where the learner's code does.
            NotByValue: when what it returned can't cross.
        """
        return self.run(args, kwargs, name=of, driver=driver)

    def value(self) -> Any:
        """The learner's value itself, by value."""
        return self.ask({"do": "value"})["value"]

    def run(
        self,
        args: tuple,
        kwargs: dict,
        *,
        name: str | None = None,
        made: int | None = None,
        method: str | None = None,
        driver: str | None = None,
    ) -> Any:
        """Call the function, the one of that name, or a method of an instance made earlier.

        With a driver, call that in its place.
        """
        which = {"name": name, "made": made, "method": method, "driver": driver}
        given = {"args": args, "kwargs": kwargs, "trace": self._trace}
        reply = self.ask({"do": "call", **which, **given})
        if isinstance(reply.get("made"), int):
            return Handle(self, reply["made"])
        before, after = tensors_in((args, kwargs)), tensors_in(reply["after"])
        if len(before) != len(after):
            raise NotByValue("other arguments than it was given")
        came = self.got = reply["value"]
        changed = [
            i for i, (b, a) in enumerate(zip(before, after, strict=True)) if not _same_bytes(b, a)
        ]
        shares = tuple(_argument_shared_by(t, after) for t in tensors_in(came))
        ops = tuple(op for op in reply["ops"] if isinstance(op, str))
        self.calls.append(Call(tuple(changed), shares, ops))
        return came

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """The reply to a request; one that tells of an exception raises :class:`SubjectRaised`."""
        reply = self._link.ask(request)
        if "raised" in reply:
            raise SubjectRaised.of(reply["raised"])
        if not ("made" in reply or "value" in reply):
            raise NotByValue("no answer")
        return reply


class Handle:
    """An instance that the learner's class made; its methods are called by value."""

    def __init__(self, subject: Subject, made: int):
        self._subject = subject
        self._made = made

    def call(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """Call a method; ``"__call__"`` calls the instance itself.

        A method that returns the instance, as ``eval`` does, gives a handle to it.

        Raises:
            SubjectRaised: when the method raised or does not exist.
        """
        return self._subject.run(args, kwargs, made=self._made, method=method)

    def gradients(self, upstream: torch.Tensor, *args: Any) -> dict[str, Any]:
        """What becomes of a gradient of the instance's output on its way back.

        Args:
            upstream: the gradient of the output, of its shape and dtype.
            args: what the instance, a module, is called on.

        Returns:
            ``output``; ``arguments``, a gradient for each of ``args``; ``parameters``, a gradient
            by name. None where none arrives, and throughout where the output does not have the
            shape and dtype of ``upstream``.

        Raises:
            SubjectRaised: when the forward or the backward raised.
        """
        asked = {"do": "gradients", "made": self._made, "args": args, "upstream": upstream}
        return self._subject.ask(asked)["value"]

    def get(self, attribute: str) -> Any:
        """An attribute's value.

        Raises:
            SubjectRaised: when it does not exist.
        """
        asked = {"do": "get", "made": self._made, "attribute": attribute}
        return self._subject.ask(asked)["value"]


def _without_numbers(text: str) -> str:
    return NUMBER.sub(lambda n: n[0] if len(n[0]) == 1 else "#", text)


def tensors_in(value: Any) -> list[torch.Tensor | np.ndarray]:
    """The tensors and arrays inside nested containers, in order."""
    if isinstance(value, (torch.Tensor, np.ndarray)):
        return [value]
    if isinstance(value, Mapping):
        return [t for v in value.values() for t in tensors_in(v)]
    if isinstance(value, (tuple, list)):
        return [t for v in value for t in tensors_in(v)]
    return []


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
    if torch.equal(before, after):  # most often, and faster; it takes no NaN for equal
        return True
    return bool(
        torch.isclose(_comparable(before), _comparable(after), rtol=0, atol=0, equal_nan=True).all()
    )


def _comparable(tensor: torch.Tensor) -> torch.Tensor:
    plain = tensor.detach()
    if plain.is_complex():
        return plain.to(torch.complex128)
    return plain.to(torch.float64 if plain.dtype.is_floating_point else torch.int64)
