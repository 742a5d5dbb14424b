"""The driver of lab 02: the results of a checkpoint, the memory that it keeps, and its errors."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.multiprocessing.reductions import StorageWeakRef
from torch.nn import functional as F

from utils.drivers import driver

# The words of a case -> how an input is changed.
WRITES: Mapping[str, Callable[[Tensor], Any]] = {
    "added to": lambda t: t.add_(1),
    "one row of it": lambda t: t[:1].add_(1),
    "by way of detach": lambda t: t.detach().add_(1),
    "the same numbers": lambda t: t.copy_(t.clone()),
}


class Layers:
    """A function of two layers. It records how often it runs and which tensors it makes.

    ``weights`` are the weights of the two layers, (D, H) and (H, D). If the function is ``tied``,
    the second layer also uses the first layer's weight. ``dropout`` is the share of the hidden
    numbers that each run drops.
    """

    def __init__(self, weights: Sequence[Tensor], dropout: float, *, tied: bool = False) -> None:
        self.first, self.second = (nn.Parameter(weight.clone()) for weight in weights)
        self.dropout, self.tied = dropout, tied
        self.runs = 0
        self._made: list[StorageWeakRef] = []

    def __call__(
        self,
        x: Tensor,
        scale: Tensor | None = None,
        rows: Tensor | None = None,
        unused: Tensor | None = None,
    ) -> Tensor:
        """x: (N, D), scale: (D,) or (N, D), rows: (M,) of int64 -> (M, D), or (N, D)."""
        self.runs += 1
        if scale is not None:
            x = self._noted(x * scale)
        if rows is not None:
            x = self._noted(x[rows])
        x = self._noted(torch.tanh(x @ self.first))
        if self.dropout:
            x = self._noted(F.dropout(x, self.dropout))
        return x @ (self._noted(self.second + self.first.T) if self.tied else self.second)

    def _noted(self, made: Tensor) -> Tensor:
        self._made.append(StorageWeakRef(made.untyped_storage()))
        return made

    def alive(self) -> int:
        """The number of intermediate tensors, of all runs together, that still have memory."""
        for generation in (1, 2):  # objects that only a reference cycle keeps alive count as freed
            if not all(storage.expired() for storage in self._made):
                gc.collect(generation)
        return sum(not storage.expired() for storage in self._made)


@driver(
    "output",
    "gradients",
    "parameters",
    observed={
        "runs": "how often the function runs",
        "alive": "how many tensors that the function makes are alive between forward and backward",
        "drawn": "which random numbers come afterwards",
        "refused": "whether backward refuses",
    },
)
def checkpoints(
    checkpointed: Callable,
    inputs: Sequence[Tensor],
    wanted: Sequence[bool],
    weights: Sequence[Sequence[Tensor]],
    upstreams: Sequence[Tensor],
    *,
    seed: int = 0,
    dropout: float = 0.0,
    draws: int = 0,
    old: float | None = None,
    computed: bool = False,
    twice: bool = False,
    tied: bool = False,
    written: tuple[int, str, int] | None = None,
    before: bool = False,
    count: bool = False,
) -> dict[str, Any]:
    """Return the results of ``checkpointed(function, *inputs)``, forward and backward.

    wanted: for each input, whether it requires a gradient.
    weights: the weights of each function of a chain. The result of a function is the first input
        of the next function.
    upstreams: the gradient of the output for each backward. All backwards use the same graph.
    seed: the seed of torch's generator at the start.
    draws: how many random numbers are drawn before each backward.
    old: the value of the parameters' ``.grad`` before the call.
    computed: whether the inputs are results of an operator, and not leaves. Then the first input is
        also used outside the function.
    twice: whether the first input is passed a second time, as the second argument.
    tied: whether each function uses its first weight twice.
    written: a change of an input: the input's index, a key of ``WRITES``, and the number of
        backwards before the change. For the index -1, a copy of the first input is changed.
    before: whether the inputs are changed before the call. Then the last input is changed once, the
        input before it twice, and so on.
    count: whether to count ``alive``.

    ``gradients`` has the gradients of the inputs after each backward, with zeros for a missing
    gradient. ``parameters`` has the gradients of the parameters. ``runs`` has the number of runs of
    the functions after the forward, and after each backward. ``alive`` is the number of the
    functions' tensors that are alive before the first backward. ``drawn`` has three random numbers
    that are drawn at the end. If a backward raises a RuntimeError, the run ends, and ``refused`` is
    the index of this backward. Otherwise ``refused`` is None.
    """
    functions = [Layers(pair, dropout, tied=tied) for pair in weights]
    parameters = [p for function in functions for p in (function.first, function.second)]
    if old is not None:
        for p in parameters:
            p.grad = torch.full_like(p, old)
    leaves = [t.clone().requires_grad_(on) for t, on in zip(inputs, wanted, strict=True)]
    # sine saves its input, so a change of sine's result has no effect on backward
    given = [leaf.sin() if computed and leaf.requires_grad else leaf for leaf in leaves]
    beside = given[:1] if computed and wanted[0] else []
    if before:
        for k, tensor in enumerate(given):
            for _ in given[k:]:
                _write(tensor, "the same numbers")
    torch.default_generator.manual_seed(seed)
    output, others = given[0], [given[0]] if twice else []
    for function in functions:
        output, others = checkpointed(function, output, *others, *given[1:]), []
    found: dict[str, Any] = {
        "output": output.detach().clone(),
        "gradients": [],
        "parameters": [],
        "runs": [sum(function.runs for function in functions)],
        "alive": sum(function.alive() for function in functions) if count else None,
        "refused": None,
    }
    for k, upstream in enumerate(upstreams):
        torch.rand(draws)
        if written is not None and written[2] == k:
            _write(given[0].clone() if written[0] < 0 else given[written[0]], written[1])
        try:
            came = [upstream, *map(torch.ones_like, beside)]
            last = k + 1 == len(upstreams)
            torch.autograd.backward([output, *beside], came, retain_graph=not last)
        except RuntimeError:
            if written is None:
                raise
            found["refused"] = k
            break
        found["gradients"].append([_gradient(leaf) for leaf in leaves if leaf.requires_grad])
        found["parameters"].append([_gradient(p) for p in parameters])
        found["runs"].append(sum(function.runs for function in functions))
    return {**found, "drawn": torch.rand(3)}


def _gradient(leaf: Tensor) -> Tensor:
    return torch.zeros_like(leaf) if leaf.grad is None else leaf.grad.clone()


@torch.no_grad()
def _write(tensor: Tensor, how: str) -> None:
    WRITES[how](tensor)
