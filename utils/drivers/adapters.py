"""Drivers of lab 08: low-rank adapters, and a tensor whose numbers have four bits."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.multiprocessing.reductions import StorageWeakRef
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from utils.drivers import WHOLE, draw_into, driver
from utils.drivers.dispatch import put_back
from utils.minigpt import MiniGPT, MiniGPTConfig

Functions = Mapping[str, Callable]


BASE_FROZEN = "that the base gets no gradient"


def _linear(weight: Tensor, bias: Tensor | None) -> nn.Linear:
    rows, columns = weight.shape
    layer = nn.Linear(columns, rows, bias=bias is not None, dtype=weight.dtype)
    state = {"weight": weight} if bias is None else {"weight": weight, "bias": bias}
    layer.load_state_dict(state)
    return layer


@driver(
    "start",
    "shapes",
    observed={"made": "how A and B begin, what the base is, and what requires a gradient"},
)
def new_lora(
    functions: Functions,
    weight: Tensor,
    bias: Tensor | None,
    rank: int,
    alpha: float,
    x: Tensor,
) -> dict[str, Any]:
    """Return facts about a new ``LoRA(layer, rank, alpha)``, before any training.

    ``start`` is its output for x, and ``shapes`` has the shapes of the tensors in its state dict.
    ``made`` says whether ``B`` has only zeros, whether ``A`` has any other number, whether the
    numbers of A are random and new in each LoRA, whether A and B have the dtype of ``weight``,
    whether ``base`` is ``layer``, and which parameters require a gradient.
    """
    layer = _linear(weight, bias)
    made = functions["LoRA"](layer, rank, alpha)
    other = functions["LoRA"](_linear(weight, bias), rank, alpha)
    start = made(x).detach()
    a, b = made.A.detach(), made.B.detach()
    drawn = a.numel() == 1 or a.unique().numel() > 1
    return {
        "start": start,
        "shapes": {name: tuple(one.shape) for name, one in made.state_dict().items()},
        "made": {
            "zeros": not b.any(),
            "moving": bool(a.any()),
            "random": drawn and not torch.equal(a, other.A.detach()),
            "dtype": a.dtype == b.dtype == weight.dtype,
            "base": made.base is layer,
            "trained": sorted(name for name, one in made.named_parameters() if one.requires_grad),
        },
    }


@driver(
    "outputs",
    "weights",
    "other",
    "gradients",
    observed={"frozen": BASE_FROZEN, "leaf": BASE_FROZEN},
)
def played_lora(
    functions: Functions,
    weight: Tensor,
    bias: Tensor | None,
    a: Tensor,
    b: Tensor,
    alpha: float,
    x: Tensor,
    steps: Sequence[str] = (),
    upstream: Tensor | None = None,
) -> dict[str, Any]:
    """Write all numbers into a LoRA layer, use it, and return what it does.

    steps: the methods that are called, in this order: ``"merge"``, ``"unmerge"``, ``"eval"`` and
        ``"train"``. The step ``"numbers"`` writes other numbers into A.
    upstream: the gradient of the output. If it is given, there is a backward before the steps.

    ``outputs`` has the output for x before the first step and after each step, and ``weights`` has
    the weight of the base layer at these moments. ``other`` is the output after all steps of a
    second LoRA with the same numbers, which is never merged; without steps there is none.
    ``gradients`` has the gradients of A, B and x.
    ``frozen`` says whether the base layer has no gradient, and ``leaf`` whether its weight has no
    graph after all steps.
    """
    layer = _linear(weight.neg(), bias)  # as before a state dict is loaded
    made = functions["LoRA"](layer, len(a), alpha)
    other = functions["LoRA"](_linear(weight, bias), len(a), alpha) if steps else None
    with torch.no_grad():
        for one in {id(one): one for one in (layer, getattr(made, "base", layer))}.values():
            one.weight.copy_(weight)
        for one in (made, other) if other is not None else (made,):
            one.A.copy_(a)
            one.B.copy_(b)
    x = x.clone().requires_grad_(upstream is not None)
    weight = layer.weight.detach()  # the storage that a merge should change in place
    outputs, weights = [made(x)], [weight.clone()]
    gradients = {}
    if upstream is not None:
        outputs[0].backward(upstream)
        gradients = {"A": made.A.grad, "B": made.B.grad, "x": x.grad}
    frozen = all(one.grad is None for one in layer.parameters())
    for step in steps:
        if step == "numbers":
            with torch.no_grad():
                made.A.mul_(-2)
        else:
            getattr(made, step)()
        outputs.append(made(x))
        weights.append(weight.clone())
    return {
        "frozen": frozen,
        "leaf": layer.weight.is_leaf,
        "outputs": [one.detach() for one in outputs],
        "weights": weights,
        "other": None if other is None else other(x).detach(),
        "gradients": gradients,
    }


@driver(WHOLE)
def adapter_alone(
    functions: Functions, weight: Tensor, bias: Tensor | None, a: Tensor, b: Tensor
) -> dict[str, Tensor]:
    """Return ``adapter(model)`` of a frozen model that is a LoRA, with these A and B."""
    made = functions["LoRA"](_linear(weight, bias), len(a), 1)
    made.load_state_dict({"A": a, "B": b}, strict=False)
    made.requires_grad_(False)
    return {name: one.detach() for name, one in functions["adapter"](made).items()}


class Mixed(nn.Module):
    """A model with parameters A and B of its own, and a linear layer with the name ``base``.

    Its ``up`` is not a linear layer.
    """

    def __init__(self, ins: int, outs: int) -> None:
        super().__init__()
        self.up = nn.Sequential(nn.Linear(ins, ins), nn.Tanh())
        self.base = nn.Linear(ins, outs, bias=False)
        self.A = nn.Parameter(torch.zeros(outs))
        self.B = nn.Parameter(torch.zeros(outs))

    def forward(self, x: Tensor) -> Tensor:
        return self.base(self.up(x)) * self.A + self.B


def _loss(outputs: Tensor, targets: Tensor) -> Tensor:
    if targets.is_floating_point():
        return (outputs - targets).square().mean()
    return F.cross_entropy(outputs.flatten(0, 1), targets.flatten())


@driver(
    "adapter",
    "outputs",
    observed={
        "trained": "how many numbers are trained, and of which parameters",
        "changed": "which parameters have changed",
    },
)
def adapted(
    functions: Functions,
    sizes: MiniGPTConfig | tuple[int, int],
    names: Sequence[str],
    rank: int,
    alpha: float,
    seed: int,
    x: Tensor,
    targets: Tensor,
    steps: int = 2,
) -> dict[str, Any]:
    """Call ``adapt(model, names, rank, alpha)``, train the model, and return what has changed.

    sizes: the sizes of a MiniGPT, or of a :class:`Mixed`.
    seed: decides all numbers of the model, and the numbers that are written into each A and B.
    x, targets: what the model is trained on, for ``steps`` steps of SGD.

    ``adapter`` is the result of ``adapter(model)`` after the training, and ``outputs`` are the
    trained model's outputs for x. ``trained`` maps each parameter that requires a gradient to its
    count of numbers. ``changed`` has the names of the parameters that the steps have changed.
    """
    model = MiniGPT(sizes) if isinstance(sizes, MiniGPTConfig) else Mixed(*sizes)
    draw_into(model.parameters(), seed, 0.3)
    functions["adapt"](model, names, rank, alpha)
    kind: Any = functions["LoRA"]
    layers = {name: one for name, one in model.named_modules() if isinstance(one, kind)}
    for place, name in enumerate(sorted(layers)):  # an answer may put its layers in another order
        draw_into((layers[name].A, layers[name].B), seed + 1 + place, 0.3)
    before = {name: one.detach().clone() for name, one in model.named_parameters()}
    chosen = {name: one for name, one in model.named_parameters() if one.requires_grad}
    for _ in range(steps if chosen else 0):
        model.zero_grad()
        _loss(model(x), targets).backward()
        with torch.no_grad():
            for one in chosen.values():
                if one.grad is not None:
                    one.sub_(0.1 * one.grad)
    after = dict(model.named_parameters())
    return {
        "adapter": {name: one.detach() for name, one in functions["adapter"](model).items()},
        "outputs": model(x).detach(),
        "trained": {name: one.numel() for name, one in chosen.items()},
        "changed": sorted(n for n, one in before.items() if not torch.equal(one, after[n])),
    }


@driver("packed", "scales", "values", "shape")
def packed(int4: Any, weight: Tensor, group: int) -> dict[str, Any]:
    """Return what ``Int4.from_float(weight, group)`` stores, and its dequantized ``values``.

    ``shape`` has the sizes of the Int4, and its dtype as the last entry.
    """
    made = int4.from_float(weight, group)
    return {
        "packed": made.packed,
        "scales": made.scales,
        "values": made.dequantize(),
        "shape": (*made.shape, str(made.dtype)),
    }


@driver("output", "gradients", observed={"plain": "that the output is a plain tensor"})
def multiplied(
    int4: Any,
    weight: Tensor,
    group: int,
    x: Tensor,
    bias: Tensor | None,
    *,
    by_name: bool = False,
    upstream: Tensor | None = None,
) -> dict[str, Any]:
    """Return the ``output`` of ``F.linear`` with an Int4 in place of ``weight``.

    by_name: whether the bias is passed as ``bias=``, or left out if there is none.
    upstream: the gradient of the output. If it is given, the ``gradients`` of x and of the bias are
        returned, too.

    ``plain`` says whether the output is a torch.Tensor, and not an Int4.
    """
    made = int4.from_float(weight, group)
    leaves = [one.clone() for one in (x, bias) if one is not None]
    for one in leaves:
        one.requires_grad_(upstream is not None)
    x, bias = leaves[0], leaves[-1] if bias is not None else None
    given = () if bias is None and by_name else (bias,)
    output = F.linear(x, made, bias=bias) if by_name and given else F.linear(x, made, *given)
    found = {"output": output.detach(), "gradients": [], "plain": type(output) is Tensor}
    if upstream is not None:
        another = int4.from_float(-2 * weight, group)
        F.linear(x.detach(), another)  # as the next layer of a model, before the backward
        output.backward(upstream)
        found["gradients"] = [one.grad for one in leaves]
    return found


def in_four_bits(int4: Any, model: nn.Module, group: int) -> nn.Module:
    """Replace the weight of each linear layer by a Parameter of four bits; return the model."""
    for layer in model.modules():
        if isinstance(layer, nn.Linear):
            small = int4.from_float(layer.weight.detach(), group)
            layer.weight = nn.Parameter(small, requires_grad=False)
    return model


def _whole_steps(shape: Sequence[int], group: int, generator: torch.Generator) -> Tensor:
    """Return a matrix that four bits store exactly, so that no code depends on rounding."""
    rows, columns = shape
    codes = torch.randint(-7, 8, (rows, columns), generator=generator)
    codes[:, ::group] = 7
    steps = 2.0 ** torch.randint(-6, -2, (rows, -(-columns // group)), generator=generator)
    return codes * steps.repeat_interleave(group, dim=1)[:, :columns]


@driver("first", "loaded", "after", observed={"kind": "of which class the weights are"})
def reloaded(
    int4: Any, config: MiniGPTConfig, seeds: tuple[int, int], group: int, tokens: Tensor
) -> dict[str, Any]:
    """Load the state dict of one MiniGPT in four bits into another, and return the logits.

    ``first`` are the logits of the first model, and ``loaded`` those of the other model after
    ``load_state_dict``. Then the first model's codes and scales are
    overwritten. ``after`` are the logits of
    the other model after this. ``kind`` says whether all weights of linear layers are still Int4.
    """
    models = []
    for seed in seeds:
        model = MiniGPT(config)
        draw_into(model.parameters(), seed, 0.3)
        generator = torch.Generator().manual_seed(seed)
        for layer in model.modules():
            if isinstance(layer, nn.Linear):
                layer.weight = nn.Parameter(_whole_steps(layer.weight.shape, group, generator))
        models.append(in_four_bits(int4, model, group))
    one, other = models
    with torch.no_grad():
        first = one(tokens)
        other(tokens)  # a model may have computed before it is loaded
        other.load_state_dict(one.state_dict())
        loaded = other(tokens)
        weights = [w for m in models for w in m.parameters() if isinstance(w, int4)]
        for weight in weights[: len(weights) // 2]:
            weight.packed.fill_(0x88)
            weight.scales.fill_(3)
        after = other(tokens)
    linear = [one for model in models for one in model.modules() if isinstance(one, nn.Linear)]
    kind = len(weights) == len(linear)
    return {"first": first, "loaded": loaded, "after": after, "kind": kind}


# Operators on numbers, which an Int4 does not have.
REFUSED: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "w + 1": lambda w, plain: w + 1,
    "w.exp()": lambda w, plain: w.exp(),
    "plain + w": lambda w, plain: plain + w,
    "torch.relu(w)": lambda w, plain: torch.relu(w),
    "w.sum()": lambda w, plain: w.sum(),
    "w.mul_(2)": lambda w, plain: w.mul_(2),
}


@driver("raised")
def refused(int4: Any, weight: Tensor, group: int, names: Sequence[str]) -> dict[str, Any]:
    """Return the name of the error that each operator of REFUSED raises, or ``""`` for no error."""
    made, raised = int4.from_float(weight, group), {}
    for name in names:
        try:
            REFUSED[name](made, weight)
            raised[name] = ""
        except NotImplementedError:
            raised[name] = "NotImplementedError"
        except Exception as error:
            raised[name] = type(error).__name__
    return {"raised": raised}


class _Alive(TorchDispatchMode):
    """Notes each storage that an operator returns, without keeping it alive."""

    def __init__(self) -> None:
        super().__init__()
        self.noted: list[StorageWeakRef] = []
        self.size = 0

    def note(self, one: Tensor) -> None:
        """Note the storage of a tensor, if it has at least ``size`` bytes."""
        storage = one.untyped_storage()
        if storage.nbytes() >= self.size:
            self.noted.append(StorageWeakRef(storage))

    def count(self) -> int:
        """Return how many of the noted storages are still alive."""
        if not all(one.expired() for one in self.noted):
            gc.collect()
        return len({one.cdata for one in self.noted if not one.expired()})

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        own = [kind for kind in types if kind not in (Tensor, nn.Parameter)]
        if own:  # the class's own code runs without this mode, unless the mode is set again
            with self:
                return own[0].__torch_dispatch__(func, types, args, kwargs)
        came = func(*args, **kwargs)
        for one in tree_leaves(came):
            if type(one) is Tensor:
                self.note(one)
        return came


@driver("output", "gradient", observed={"alive": "which tensors are alive between two calls"})
def left_behind(
    int4: Any, weight: Tensor, group: int, x: Tensor, bias: Tensor, upstream: Tensor
) -> dict[str, Any]:
    """Return what is alive between calls with an Int4, with the results of these calls.

    ``alive`` has four counts of large storages: after ``from_float``, after ``F.linear`` without
    gradients, after ``F.linear`` with gradients and before the backward, and after the backward. A
    storage is large if it has at least a byte for each number of the weight. ``output`` is the
    output of ``F.linear``, and ``gradient`` is the gradient of x.
    """
    watch = _Alive()
    watch.size = weight.numel()
    with put_back(int4), watch:
        given = weight.clone()
        made = int4.from_float(given, group)
        del given
        alive = [watch.count()]
        with torch.no_grad():
            output = F.linear(x, made, bias)
        alive.append(watch.count())
        x = x.clone().requires_grad_()
        again = F.linear(x, made, bias)
        alive.append(watch.count())
        again.backward(upstream)
        alive.append(watch.count())
    return {"output": output, "gradient": x.grad, "alive": alive}
