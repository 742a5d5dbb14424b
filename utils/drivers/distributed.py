"""Drivers of lab 10: models at the ranks of a world, and pipelines that follow a plan."""

from __future__ import annotations

import copy
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from utils.drivers import draw_into, driver, stored_gradients
from utils.minigpt import MiniGPT, MiniGPTConfig, load_minigpt

Program = Generator[Any, Any, Any]


class Net(nn.Module):
    """A small classifier with everything that makes data parallelism difficult.

    `inner` and `again` share their parameters. `still` is frozen. A rank uses one of the two
    `experts`. The rank's first row of x decides which. A rank without rows uses no expert. `spare`
    is never used. `seen`, `scale` and `mask` are buffers. `seen` is a number that a float can't
    store, and `mask` is not in the state dict. The same ``values`` give the same parameters and
    buffers.
    """

    seen: Tensor
    scale: Tensor
    mask: Tensor

    def __init__(self, values: int = 0) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 4)
        self.again = self.inner
        self.experts = nn.ModuleList(nn.Linear(4, 4, bias=False) for _ in range(2))
        self.still = nn.Linear(3, 4)
        self.spare = nn.Linear(2, 1)
        self.head = nn.Linear(4, 5)
        self.register_buffer("seen", torch.tensor(2**60 + values))
        self.register_buffer("scale", torch.ones(4))
        bits = torch.tensor(values) >> torch.arange(16).view(4, 4)
        self.register_buffer("mask", bits % 2 == 1, persistent=False)
        draw_into([*self.parameters(), self.scale], values)
        self.still.requires_grad_(False)

    def forward(self, x: Tensor) -> Tensor:
        """(rows, 3) -> logits, (rows, 5)."""
        hidden = torch.tanh(self.still(x)) * self.scale
        hidden = self.again(torch.tanh(self.inner(hidden)))
        if len(x):
            hidden = hidden + self.experts[int(x[0, 0] > 0)](hidden)
        return self.head(hidden)


@driver("tensors", observed={"tensors kept": "that a model keeps its parameters and buffers"})
def started(
    start: Callable[..., Program], rank: int, world: int, values: int, unwritten: bool = False
) -> Program:
    """Let a rank call the learner's ``ddp_start`` with a `Net` that has the rank's values.

    With ``unwritten`` the model's floats are NaN, as in uninitialised memory. ``tensors`` has the
    values after the call, by name. They are the values of the tensors that the model had before the
    call, because an optimizer would still have these tensors.
    """
    model = Net(values)
    held = _named_tensors(model)
    if unwritten:
        for tensor in held.values():
            if tensor.is_floating_point():
                tensor.detach().fill_(torch.nan)
    yield from start(rank, world, model)
    now = _named_tensors(model)
    kept = now.keys() == held.keys() and all(now[name] is held[name] for name in held)
    found = {name: tensor.detach().clone() for name, tensor in held.items()}
    return {"tensors": found, "tensors kept": kept}


def _named_tensors(model: nn.Module) -> dict[str, Tensor]:
    return dict([*model.named_parameters(remove_duplicate=False), *model.named_buffers()])


@driver("loss", "gradients", observed={"parameters kept": "that a step does not change parameters"})
def stepped(
    step: Callable[..., Program],
    rank: int,
    world: int,
    values: int,
    x: Tensor,
    y: Tensor,
    bucket_bytes: int,
    stale: bool = False,
    plain: bool = False,
) -> Program:
    """Let a rank do the learner's ``ddp_step``. The model is the same at all ranks.

    The model is a `Net`. With ``plain`` it is a `Sequential` with three linear layers. With
    ``stale`` the model already has gradients. Returns the ``loss``, and ``gradients``: name ->
    gradient.
    """
    model: nn.Module = Net(values)
    if plain:
        layers = nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 5)
        model = nn.Sequential(*layers)
        draw_into(model.parameters(), values)
    if stale:
        for parameter in model.parameters():
            parameter.grad = torch.ones_like(parameter) if parameter.requires_grad else None
    before = [parameter.detach().clone() for parameter in model.parameters()]
    loss = yield from step(rank, world, model, x, y, bucket_bytes)
    gradients = stored_gradients(dict(model.named_parameters()))
    same = all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
    return {"loss": loss, "gradients": gradients, "parameters kept": same}


def buckets(parameters: Iterable[Tensor], bucket_bytes: int) -> list[list[Tensor]]:
    """Put parameters, in their order, into buckets.

    The next parameter goes into the same bucket if the bucket then has at most ``bucket_bytes``
    bytes. A parameter with more bytes than this gets a separate bucket.
    """
    found: list[list[Tensor]] = []
    left = 0
    for parameter in parameters:
        size = parameter.numel() * parameter.element_size()
        if not found or size > left:
            found.append([])
            left = bucket_bytes
        found[-1].append(parameter)
        left -= size
    return found


def pieces(tensors: Iterable[Tensor], world: int) -> list[Tensor]:
    """Return the numbers of all tensors, one after the other, in ``world`` flat pieces.

    All pieces have the same length, because zeros fill the last piece. No piece is part of a graph.
    """
    flat = torch.cat([tensor.detach().flatten() for tensor in tensors])
    return list(F.pad(flat, (0, -len(flat) % world)).chunk(world))


def linear_backward(inputs: Tensor, weight: Tensor, gradient: Tensor) -> tuple[Tensor, Tensor]:
    """Return the gradients of W and h for z = h Wᵀ. ``gradient`` is the gradient of z."""
    return gradient.T @ inputs, gradient @ weight


def adamw(weights: Tensor, gradient: Tensor, state: dict, lr: float) -> tuple[Tensor, dict]:
    """One step of AdamW on a slice of the parameters, by the formulas of phase 07.

    It works like `torch.optim.AdamW` with ``eps=1e-5``. This eps is so large that a gradient of
    pure rounding error has no effect. Before the first step, ``state`` is ``{"step": 0}``. Later,
    ``state`` has ``step``, ``m`` and ``v``. Returns the new slice and the new state. The arguments
    are not changed.
    """
    count = state["step"] + 1
    m = state.get("m", torch.zeros_like(weights)).lerp(gradient, 1 - 0.9)
    v = state.get("v", torch.zeros_like(weights)).lerp(gradient.square(), 1 - 0.999)
    ahead = m / (1 - 0.9**count) / ((v / (1 - 0.999**count)).sqrt() + 1e-5)
    return weights - lr * (ahead + 0.01 * weights), {"step": count, "m": m, "v": v}


def minigpt_of(config: Mapping[str, int] | None, values: int = 0) -> MiniGPT:
    """Return the shipped MiniGPT, or a smaller one with random weights."""
    sizes = None if config is None else tuple(config.items())
    return copy.deepcopy(_minigpt_once(sizes, values))


@lru_cache(maxsize=4)
def _minigpt_once(sizes: tuple[tuple[str, int], ...] | None, values: int) -> MiniGPT:
    """Return a model. Each rank gets a copy, because a copy is faster than a new model."""
    if sizes is None:
        return load_minigpt()
    model = MiniGPT(MiniGPTConfig(**dict(sizes)))
    draw_into(model.parameters(), values, 0.3)
    return model


@driver(
    "losses",
    "norms",
    "weights",
    observed={"held": "how much of the optimizer's state a rank has"},
)
def trained(
    step: Callable[..., Program],
    rank: int,
    world: int,
    config: Mapping[str, int] | None,
    values: int,
    batches: Sequence[tuple[Tensor, Tensor]],
    lr: float,
    max_norm: float,
) -> Program:
    """Let a rank train :func:`minigpt_of` with ``minigpt_step``.

    Before the first step the model already has gradients. ``batches`` are (tokens, targets) of this
    rank, one pair for each step. ``losses`` and ``norms`` have a number for each step. ``weights``
    are the model's final weights, or every 37th weight of a large model. ``held`` is the number of
    elements in this rank's part of the optimizer's state.
    """
    model = minigpt_of(config, values)
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    state: dict = {"step": 0}
    losses, norms = [], []
    for tokens, targets in batches:
        loss, norm, state = yield from step(
            rank, world, model, tokens, targets, state, lr, max_norm
        )
        losses.append(loss)
        norms.append(norm)
    flat = torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
    held = sum(value.numel() for value in state.values() if isinstance(value, Tensor))
    every = 37 if len(flat) > 5000 else 1
    return {"losses": losses, "norms": norms, "weights": flat[::every].clone(), "held": held}


def follow(rank: int, world: int, plan: Sequence) -> Program:
    """Act as one stage of a pipeline.

    ``plan`` has a list of ("F", k) and ("B", k) for each stage. Run the program with
    ``rendezvous=False``. Otherwise two stages that send to each other wait for ever.
    """
    token = torch.zeros(1)
    for what, _ in plan[rank]:
        ahead, behind = (rank + 1, rank - 1) if what == "F" else (rank - 1, rank + 1)
        if 0 <= behind < world:
            yield "recv", behind
        yield "compute", 1.0 if what == "F" else 2.0
        if 0 <= ahead < world:
            yield "send", ahead, token
