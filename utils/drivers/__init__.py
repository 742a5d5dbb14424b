"""Drivers: code that tests an answer if calls with values are not enough.

:mod:`hood.judge.connection.drivers` explains drivers and their declarations. Each module here
has the drivers of one lab or of several.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from hood.judge.connection.drivers import GRAPHS as GRAPHS
from hood.judge.connection.drivers import INPUTS_KEPT as INPUTS_KEPT
from hood.judge.connection.drivers import WHOLE as WHOLE
from hood.judge.connection.drivers import driver as driver


def draw_into(tensors: Iterable[Tensor], seed: int, size: float = 1.0) -> None:
    """Fill tensors with normally distributed numbers, without torch's global generator."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for tensor in tensors:
            tensor.copy_(size * torch.randn(tensor.shape, generator=generator))


def gradients(value: Tensor, inputs: Sequence[Tensor], upstream: Tensor | None = None) -> list[Any]:
    """Return the gradient of each input, or None for an input without a gradient."""
    if not value.requires_grad:
        return [None] * len(inputs)
    return list(torch.autograd.grad(value, inputs, upstream, allow_unused=True))


def stored_gradients(parameters: Mapping[str, Tensor]) -> dict[str, Tensor | None]:
    """Return copies of the parameters' gradients: name -> gradient."""
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
