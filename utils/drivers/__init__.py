"""Drivers: code that tries what cannot simply be called with values.

A dispatch mode, a tensor subclass or a backend does its work while *other* code runs. A driver is
that other code: a function that takes the learner's thing and plain values, uses the thing, and
returns plain values. A check names it, ``subject.drive("dispatch:log_ops", "two layers", x)``, and
it runs beside the learner's code. A lab imports the same function for its visible checks, so that
everybody can see how an answer will be asked.

What the learner's functions returned, stored or raised there is evidence: whoever says it has
computed it from values that were drawn. What the driver observed beside that, such as how many
graphs there were, is a claim of the learner's process. So :func:`driver` declares, of every part of
what a driver returns, which of the two it is, and a verdict lists the claims.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor

F = TypeVar("F", bound=Callable[..., Any])

WHOLE = ""  # in place of a key: all that a driver returns
# A verdict says it with the same words of a plain call, so it says it once.
INPUTS_KEPT = "that the inputs were left as they were"
GRAPHS = "how many graphs there were"


class NoDriver(LookupError):
    """There is no driver of this name, or it does not declare what it returns."""


@dataclass(frozen=True)
class Declared:
    """What a driver returns."""

    # keys of the dict that it returns, of what the learner's code returned, stored or raised.
    # ``WHOLE`` stands for the value itself, if it is no such dict.
    returned: frozenset[str]
    observed: Mapping[str, str]  # the same for what the driver observed, with words for the claim

    def fits(self, came: Any) -> bool:
        """Return whether nothing came back that is not declared."""
        keys = (self.returned | self.observed.keys()) - {WHOLE}
        return not keys or (isinstance(came, dict) and came.keys() <= keys)


def driver(*returned: str, observed: Mapping[str, str] | None = None) -> Callable[[F], F]:
    """Declare a driver. Used as a decorator; see :class:`Declared`."""

    def declare(function: F) -> F:
        function.declared = Declared(frozenset(returned), observed or {})  # type: ignore[attr-defined]
        return function

    return declare


def declared(function: Callable[..., Any]) -> Declared:
    """Return what a driver declares; NoDriver if it declares nothing."""
    found = getattr(function, "declared", None)
    if not isinstance(found, Declared) or not (found.returned or found.observed):
        raise NoDriver(
            f"{getattr(function, '__name__', function)!r} does not declare what it returns: "
            "decorate it with `utils.drivers.driver`"
        )
    return found


def draw_into(tensors: Iterable[Tensor], seed: int, size: float = 1.0) -> None:
    """Fill tensors with normal numbers of a seed; torch's own generator is not asked."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for tensor in tensors:
            tensor.copy_(size * torch.randn(tensor.shape, generator=generator))


def gradients(value: Tensor, inputs: Sequence[Tensor], upstream: Tensor | None = None) -> list[Any]:
    """Return the gradient of each input, None where there is none."""
    if not value.requires_grad:
        return [None] * len(inputs)
    return list(torch.autograd.grad(value, inputs, upstream, allow_unused=True))


def stored_gradients(parameters: Mapping[str, Tensor]) -> dict[str, Tensor | None]:
    """Return copies of what backward has left in parameters, by name."""
    grads = {name: parameter.grad for name, parameter in parameters.items()}
    return {name: None if grad is None else grad.clone() for name, grad in grads.items()}


@contextlib.contextmanager
def unlogged() -> Iterator[None]:
    """Keep torch from logging errors that are raised anyway, while the context is open."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)
