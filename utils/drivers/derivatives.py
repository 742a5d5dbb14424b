"""Drivers of lab 04: gradients of each example, and products of the Hessian and a direction."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from utils.drivers import driver
from utils.drivers.dispatch import put_back
from utils.minigpt import MiniGPT, MiniGPTConfig, load_minigpt

Loss = Callable[[Tensor, Tensor], Tensor]


class _Centred(nn.Module):
    """A linear layer that first subtracts a buffer."""

    def __init__(self, ins: int, outs: int) -> None:
        super().__init__()
        self.mean: Tensor
        self.register_buffer("mean", torch.zeros(ins))
        self.layer = nn.Linear(ins, outs)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x - self.mean)


class _Tied(nn.Module):
    """The mean of some words' embeddings, compared with all embeddings: one weight, used twice."""

    def __init__(self, ins: int, outs: int) -> None:
        super().__init__()
        self.words = nn.Embedding(outs, ins)
        self.head = nn.Linear(ins, outs)
        self.head.weight = self.words.weight

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.words(tokens).mean(1))


def _nested(ins: int, outs: int) -> nn.Module:
    inner = nn.Sequential(nn.LayerNorm(ins), nn.Linear(ins, outs))
    return nn.Sequential(nn.Linear(ins, ins), nn.Tanh(), inner)


def _convolution(ins: int, outs: int) -> nn.Module:
    return nn.Sequential(nn.Conv1d(2, 3, 2), nn.GELU(), nn.Flatten(), nn.Linear(3 * ins - 3, outs))


# Small models, by name. They are made from two sizes, `ins` and `outs`.
MODELS: dict[str, Callable[[int, int], nn.Module]] = {
    "a linear layer": nn.Linear,  # takes (N, ins)
    "a linear layer without a bias": lambda ins, outs: nn.Linear(ins, outs, bias=False),
    "a linear layer that first subtracts a buffer": _Centred,
    "modules in modules": _nested,
    "a convolution, flattened": _convolution,  # takes (N, 2, ins)
    "an embedding and a layer that share a weight": _Tied,  # takes int64 of (N, T), below `outs`
}
TRAINED = "the trained MiniGPT"


def next_words(logits: Tensor, targets: Tensor) -> Tensor:
    """Return the mean cross-entropy of logits (N, T, V) and the next words (N, T)."""
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def squared_errors(outputs: Tensor, targets: Tensor) -> Tensor:
    """Return the mean squared error.

    In torch 2.13, `vmap` may run the backward of `F.mse_loss` as a loop over the examples, and the
    `jvp` of its `grad` raises an error.
    """
    return (outputs - targets).square().mean()


LOSSES: dict[str, Loss] = {
    "cross-entropy": F.cross_entropy,
    "squared errors": squared_errors,
    "next words": next_words,
}


def model_of(model: str | MiniGPTConfig, sizes: tuple[int, ...] = ()) -> nn.Module:
    """Return a new model: a MiniGPT with these sizes, the trained one, or one of ``MODELS``."""
    if isinstance(model, MiniGPTConfig):
        return MiniGPT(model)
    return load_minigpt() if model == TRAINED else MODELS[model](*sizes)


def _made(
    model: str | MiniGPTConfig, sizes: tuple[int, ...], state: Mapping[str, Tensor]
) -> nn.Module:
    made = model_of(model, sizes)
    if state:
        made.to(next(iter(state.values())).dtype).load_state_dict(state)
    return made


class _Watch(TorchDispatchMode):
    """Counts operators, and notes the largest number of elements that one of them returned."""

    def __init__(self) -> None:
        super().__init__()
        self.operators = self.largest = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        # Forward mode makes tensors of zeros without memory. Below a dispatch mode, torch 2.13 has
        # operators that read or write this memory, and end in an error or a crash.
        if func is torch.ops.aten._efficientzerotensor.default:
            func = torch.ops.aten.zeros.default
        came = func(*args, **(kwargs or {}))
        self.operators += 1
        sizes = [one.numel() for one in tree_leaves(came) if isinstance(one, Tensor)]
        self.largest = max(self.largest, *sizes, 0)
        return came


class _Before:
    """A model's numbers and gradients, to find out later whether they are the same."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        for parameter in list(model.parameters())[::2]:  # others have no gradient
            parameter.grad = torch.full_like(parameter, 0.5)
        self.numbers = {name: one.detach().clone() for name, one in model.state_dict().items()}
        self.grads = self._grads()

    def _grads(self) -> dict[str, Tensor | None]:
        found = {name: one.grad for name, one in self.model.named_parameters()}
        return {name: None if one is None else one.clone() for name, one in found.items()}

    def kept(self) -> dict[str, bool]:
        """Return whether numbers and gradients are as before, and parameters require gradients."""
        now, grads = self.model.state_dict(), self._grads()
        return {
            "model": now.keys() == self.numbers.keys()
            and all(torch.equal(now[name], one) for name, one in self.numbers.items()),
            "requires": all(one.requires_grad for one in self.model.parameters()),
            "grad": grads.keys() == self.grads.keys()
            and all(_same(grads[name], one) for name, one in self.grads.items()),
        }


def _same(a: Tensor | None, b: Tensor | None) -> bool:
    return a is b if a is None or b is None else torch.equal(a, b)


def _plain(came: Any, only: Collection[str] = ()) -> Any:
    """Return a learner's dict with detached tensors. If ``only`` is given, drop all other names."""
    if not isinstance(came, Mapping):
        return came
    return {
        name: one.detach() if isinstance(one, Tensor) else one
        for name, one in came.items()
        if not only or name in only
    }


@driver(
    "gradients",
    observed={
        "operators": "how many operators were called",
        "kept": "that the model stayed as it was",
    },
)
def sample_gradients(
    function: Callable,
    model: str | MiniGPTConfig,
    sizes: tuple[int, ...],
    state: Mapping[str, Tensor],
    loss: str,
    x: Tensor,
    targets: Tensor,
    *,
    few: int = 0,
    only: Collection[str] = (),
) -> dict[str, Any]:
    """Return the learner's gradients of each example, and what the calls did.

    model, sizes: see ``model_of``.
    state: the state of the model; if empty, the model stays as it is made.
    loss: a key of LOSSES.
    few: if not 0, the operators of two calls are counted. The first call is for this number of
        examples, and for a model in which each number is halved.
    only: if given, only the gradients with these names are returned.

    ``operators`` says how many more operators were called for all examples than in the first call.
    Without ``few`` it is 0. ``kept`` says whether the model's numbers and its gradients are as
    before.
    """
    made, heard = _made(model, sizes, state), [0]
    before = _Before(made)
    other = _made(model, sizes, {name: one / 2 for name, one in state.items()})
    with put_back(function):
        for one, rows in ((other, few), (made, len(x))) if few else ((made, len(x)),):
            watch = _Watch()
            with watch if few else contextlib.nullcontext():
                came = function(one, LOSSES[loss], x[:rows], targets[:rows])
            heard.append(watch.operators)
    return {
        "gradients": _plain(came, only),
        "operators": heard[-1] - heard[-2],
        "kept": before.kept(),
    }


@driver(
    "product",
    observed={
        "operators": "how many operators were called",
        "largest": "how large the largest tensor was",
        "kept": "that the model stayed as it was",
    },
)
def hessian_product(
    function: Callable,
    model: str | MiniGPTConfig,
    sizes: tuple[int, ...],
    state: Mapping[str, Tensor],
    loss: str,
    x: Tensor,
    targets: Tensor,
    v: Mapping[str, Tensor],
    *,
    watched: bool = False,
) -> dict[str, Any]:
    """Return the learner's product of the Hessian and ``v``, and what the call did.

    v: name -> tensor. If a parameter has no tensor, the direction does not change this parameter.

    watched: whether a mode hears the operators.

    The other arguments are those of ``sample_gradients``. ``operators`` is the number of operators
    that a mode heard, and ``largest`` the largest number of elements in a tensor that one of them
    returned.
    """
    made = _made(model, sizes, state)
    along = {name: torch.zeros_like(one).detach() for name, one in made.named_parameters()}
    along.update({name: v[name].clone() for name in along if name in v})
    before, given = _Before(made), {name: one.clone() for name, one in along.items()}
    watch = _Watch()
    with put_back(function), watch if watched else contextlib.nullcontext():
        came = function(made, LOSSES[loss], x, targets, along)
    kept = before.kept()
    kept["v"] = all(name in along and torch.equal(along[name], one) for name, one in given.items())
    return {
        "product": _plain(came),
        "operators": watch.operators,
        "largest": watch.largest,
        "kept": kept,
    }
