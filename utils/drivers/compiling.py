"""Drivers of lab 06: backends that are handed graphs, and functions that are compiled."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

Step = tuple  # a word, and what it needs: ("relu",), ("scale", 2.0)


def program(steps: Sequence[Step]) -> Callable[..., list[Tensor]]:
    """A function of ``x`` and some weights that does one step after the other.

    Steps: ``relu`` and ``gelu``, functions; ``neg``, ``exp`` and ``sum`` (of a dimension), methods;
    ``scale`` by a number; ``first`` of so many chunks; ``linear`` with the next weight; ``keep`` the
    value as one more result; ``break`` the graph, twice at most. The function returns what was kept and the last.
    """

    pieces: list[list[Step]] = [[]]
    for step in steps:
        if step[0] == "break":
            pieces.append([])
        else:
            pieces[-1].append(step)
    if len(pieces) > 3:
        raise ValueError(f"at most two breaks, got {len(pieces) - 1}")

    def run(x: Tensor, *weights: Tensor) -> list[Tensor]:
        kept: list[Tensor] = []
        rest = list(weights)
        x = _advance(pieces[0], x, rest, kept)
        if len(pieces) > 1:  # not in a loop: a break there makes Dynamo leave the whole function
            torch._dynamo.graph_break()
            x = _advance(pieces[1], x, rest, kept)
        if len(pieces) > 2:
            torch._dynamo.graph_break()
            x = _advance(pieces[2], x, rest, kept)
        return [*kept, x]

    return run


def _advance(steps: Sequence[Step], x: Tensor, weights: list[Tensor], kept: list[Tensor]) -> Tensor:
    for word, *more in steps:
        if word == "relu":
            x = torch.relu(x)
        elif word == "gelu":
            x = F.gelu(x)
        elif word == "neg":
            x = x.neg()
        elif word == "exp":
            x = x.exp()
        elif word == "sum":
            x = x.sum(more[0])
        elif word == "scale":
            x = x * more[0]
        elif word == "first":
            x = torch.chunk(x, more[0])[0]
        elif word == "linear":
            x = F.linear(x, weights.pop(0))
        elif word == "keep":
            kept.append(x)
        else:
            raise ValueError(f"no such step: {word!r}")
    return x


@contextlib.contextmanager
def fresh() -> Iterator[None]:
    """Forget what was compiled, before and after, and let nothing be logged on the way."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    torch._dynamo.reset()
    try:
        yield
    finally:
        torch._dynamo.reset()
        logging.disable(before)


def report(
    make_backend: Callable, steps: Sequence[Step], x: Tensor, weights: Sequence[Tensor] = ()
) -> dict[str, Any]:
    """Compile a program with the learner's backend, and run it once.

    Args:
        make_backend: the learner's; given an empty list it returns a backend, which fills the list.
        steps: of :func:`program`.
        x, weights: its inputs.

    Returns:
        ``report``, the list; ``results``, what the program returned.
    """
    written: list[Any] = []
    with fresh():
        backend = make_backend(written)
        results = torch.compile(program(steps), backend=backend)(x, *weights)
    return {"report": written, "results": [result.detach().clone() for result in results]}


def count_as_torch_does(calls: Sequence[tuple[tuple[int, ...], torch.dtype, float]]) -> list[int]:
    """How many graphs there are after each call ``f(x, k)``, counted by a backend.

    Args:
        calls: the shape and dtype of x, and k.
    """
    from torch._dynamo.testing import CompileCounter

    counter, found = CompileCounter(), []
    with fresh():
        compiled = torch.compile(lambda x, k: x * k, backend=counter)
        for shape, dtype, k in calls:
            compiled(torch.zeros(shape, dtype=dtype), k)
            found.append(counter.frame_count)
    return found


def compiled(function: Callable, *calls: Sequence[Tensor]) -> dict[str, Any]:
    """Compile a function, without ``fullgraph``, and call it.

    Args:
        function: returns one tensor.
        calls: the arguments of each call.

    Returns:
        ``values``, one for each call; ``gradients``, of the sum of each value for the first
        argument, None where there is none; ``graphs``, how many a backend was handed.
    """
    from torch._dynamo.testing import CompileCounter

    counter = CompileCounter()
    found: dict[str, Any] = {"values": [], "gradients": []}
    with fresh():
        run = torch.compile(function, backend=counter)
        for first, *others in calls:
            x = first.detach().clone().requires_grad_()
            value = run(x, *others)
            gradient = None
            if value.requires_grad:
                (gradient,) = torch.autograd.grad(value.sum(), x, allow_unused=True)
            found["values"].append(value.detach().clone())
            found["gradients"].append(gradient)
    return {**found, "graphs": counter.frame_count}
