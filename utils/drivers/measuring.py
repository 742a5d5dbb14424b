"""Drivers for lab 07's measurements: machines with their own clock, and steps of several graphs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from utils.drivers import WHOLE, driver

BEFORE, AFTER = "before", "after"


class Machine:
    """A machine with its own clock, on which two functions take known times.

    seconds: how long a call of each function takes, by its name.
    slow: for each function, how many times as long its warm-up calls take.
    factors: how many times as long everything takes, during the first two calls, the next two, and
        so on. After the last factor, it is 1.
    disturbed: calls that another program makes slower. An entry has the function's name, the number
        of the call, and the additional seconds. Calls are counted from 0, after the warm-up calls.
    returns: for each function, after how many seconds a call returns, whatever the factor. That
        should be less than the call takes. The work goes into the queue of a device. Without this
        entry, there is no device, and a call returns when it is done.
    queued: how many seconds of work are in the device's queue at the beginning.
    now: what the clock says at the beginning.
    """

    def __init__(
        self,
        warmup: int,
        pairs: int,
        *,
        seconds: Mapping[str, float],
        slow: Mapping[str, float] | None = None,
        factors: Sequence[float] = (),
        disturbed: Sequence[tuple[str, int, float]] = (),
        returns: Mapping[str, float] | None = None,
        queued: float = 0.0,
        now: float = 0.0,
    ) -> None:
        self.warmup, self.pairs = warmup, pairs
        self.seconds, self.slow, self.factors = seconds, slow or {}, factors
        self.disturbed = {(name, number): extra for name, number, extra in disturbed}
        self.returns = returns
        self.now, self.idle = now, now + queued  # the host's time, and when the device is idle
        self.calls = {BEFORE: 0, AFTER: 0}

    def call(self, name: str) -> None:
        """Call one of the two functions."""
        number, both = self.calls[name], sum(self.calls.values())
        if number == self.warmup + self.pairs:
            raise RuntimeError(f"`{name}` was called more than {number} times")
        self.calls[name] += 1
        took = self.seconds[name]
        if number < self.warmup:
            took *= self.slow.get(name, 1.0)
        if both // 2 < len(self.factors):
            took *= self.factors[both // 2]
        took += self.disturbed.get((name, number - self.warmup), 0.0)
        self.idle = max(self.idle, self.now) + took
        self.now = self.idle if self.returns is None else self.now + self.returns[name]

    def clock(self) -> float:
        """Return the time of the host, in seconds."""
        return self.now

    def synchronize(self) -> None:
        """Wait until the queue is empty."""
        self.now = max(self.now, self.idle)


@driver(WHOLE)
def timed(speed_up: Callable, machine: Mapping[str, Any], warmup: int, pairs: int) -> Any:
    """Return the result of ``speed_up(before, after, warmup, pairs, clock, synchronize)``.

    ``machine`` has the properties of the machine by name; see :class:`Machine`. For example,
    ``{"seconds": {"before": 3.0, "after": 2.0}}`` is a machine without any difficulties.
    """
    on = Machine(warmup, pairs, **machine)
    before, after = (lambda: on.call(BEFORE)), (lambda: on.call(AFTER))
    return speed_up(before, after, warmup, pairs, on.clock, on.synchronize)


@driver("bytes", "gradients")
def kept(
    most_kept: Callable,
    x: Tensor,
    rows: Sequence[int],
    weights: Sequence[Tensor],
    acts: Sequence[tuple[str, int]],
    flat: bool = False,
) -> dict[str, Any]:
    """Return the result of ``most_kept(step, weights)``, and the gradients of the weights.

    The batch x (N, D) is cut into parts with these numbers of rows. The weights are (D, H) and (V,
    H). A part's hidden layer is ``h = tanh(part @ first)``. A head on it is ``y = h @ second.T``,
    and its loss is the sum of the products of neighbouring columns of y.

    acts: what the step does, one after the other: what, and with which part. ``"forward"`` makes
        the hidden layer with one head. ``"head"`` makes another head on the same hidden layer, and
        ``"drop head"`` throws this head away. ``"backward"`` goes through the graph, and ``"drop"``
        throws the graph away without a backward. ``"retain"`` is a backward after which the graph
        is still needed. ``"pick"`` makes a head of another kind: with a part of the second weight,
        an index, a factor that needs a gradient, and a detached part of a new tensor.
    flat: whether the weights are views of one storage, one after the other. The storage has another
        number before them.

    At first, the gradients of the weights have ones. ``bytes`` is what the function returned, and
    ``gradients`` are the gradients afterwards. A second call of the step raises an error.
    """
    parts = x.split(list(rows))
    own = [weight.clone() for weight in weights]
    if flat:
        numbers = torch.cat([x.new_zeros(1), *(weight.flatten() for weight in own)])
        pieces = numbers[1:].split([weight.numel() for weight in own])
        own = [piece.view(w.shape) for piece, w in zip(pieces, own, strict=True)]
    first, second = (weight.requires_grad_() for weight in own)
    for weight in (first, second):
        weight.grad = torch.ones_like(weight)
    hidden: dict[int, Tensor] = {}
    losses: dict[int, list[Tensor]] = {}
    calls: list[str] = []

    def head(part: int) -> None:
        y = hidden[part] @ second.T
        losses[part].append((y[:, 1:] * y[:, :-1]).sum())

    def pick(part: int) -> None:
        y = (hidden[part] @ second[1:].T)[:, torch.tensor([1, 0])]
        numbers = torch.arange(3.0 * len(y), dtype=y.dtype).view(len(y), 3)[:, 1:].detach()
        factor = torch.ones(2, dtype=y.dtype, requires_grad=True)
        losses[part].append((y * factor * numbers).exp().sum())

    def act(what: str, part: int) -> None:
        if what == "forward":
            hidden[part], losses[part] = torch.tanh(parts[part] @ first), []
        if what in ("forward", "head"):
            head(part)
        elif what == "pick":
            pick(part)
        elif what == "drop head":
            losses[part].pop()
        elif what in ("backward", "retain"):
            losses[part][0].backward(retain_graph=what == "retain")
        if what in ("backward", "drop"):
            del hidden[part], losses[part]

    def step() -> None:
        if calls:
            raise RuntimeError("`step` was called more than once")
        calls.append("step")
        for what, part in acts:
            act(what, part)

    count = most_kept(step, [first, second])
    return {"bytes": count, "gradients": [first.grad, second.grad]}
