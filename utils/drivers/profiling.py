"""Drivers of lab 09: profiling a step, counting the cost of a loss, finding non-finite numbers."""

from __future__ import annotations

import collections
import contextlib
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.modules import module as torch_module
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from utils.drivers import WHOLE, driver, gradients
from utils.instruments.drawn_clock import drawn_clock, states

COSTS = "how many operators ran and how many bytes they made"

# The names of the attributes that contain a module's hooks. With `_global` before the name, the
# attribute contains hooks for all modules.
HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


class Blend(torch.autograd.Function):
    """A function that doubles its input; the backward uses NumPy."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return 2 * x

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        return torch.from_numpy(2 * grad_output.numpy())


NUMBERS = torch.linspace(-1.0, 1.0, 12).view(3, 4)
SQUARE = torch.linspace(-1.0, 1.0, 16).view(4, 4)

# Words -> the work of a step. The comments name the operators, with inner operators in brackets.
WORK: dict[str, Callable[[], Any]] = {
    "exp": lambda: NUMBERS.exp(),  # aten::exp
    "exp of a row": lambda: NUMBERS[0].exp(),  # aten::exp
    "tanh": lambda: NUMBERS.tanh(),  # aten::tanh
    "sort": lambda: NUMBERS.sort(stable=True),  # aten::sort
    "mm": lambda: SQUARE.mm(SQUARE),  # aten::mm
    "linear": lambda: F.linear(NUMBERS, SQUARE, SQUARE[0]),  # aten::linear (aten::addmm)
    "softmax": lambda: NUMBERS.softmax(-1),  # aten::softmax (aten::_softmax)
    "stack": lambda: torch.stack([NUMBERS, NUMBERS]),  # aten::stack (aten::cat)
    "blend": lambda: _blended(),  # Blend, BlendBackward
}


def _blended() -> None:
    leaf = NUMBERS.clone().requires_grad_()
    torch.autograd.grad(Blend.apply(leaf), leaf, NUMBERS)


@driver("found", observed={"states": "what the profiler does while a step runs"})
def profiled(
    slowest: Callable,
    calls: Sequence[Mapping[str, int]],
    costs: Mapping[str, int],
    wait: int,
    warmup: int,
    active: int,
    label: str = "",
) -> dict[str, Any]:
    """Return the results of ``slowest(step, wait, warmup, active)`` with an artificial clock.

    calls: for each call of the step, how often the call does each entry of `WORK`. Later calls do
        no work.
    costs: the self time of each event by the event's name, in nanoseconds; see `drawn_clock`.
    label: a label around the whole step.

    ``found`` is the result of ``slowest``. ``states`` has the profiler's state during each call of
    the step.
    """
    seen: list[str] = []

    def step() -> None:
        seen.append(state())
        around = torch.profiler.record_function(label) if label else contextlib.nullcontext()
        with around:
            for words, times in calls[len(seen) - 1].items() if len(seen) <= len(calls) else ():
                for _ in range(times):
                    WORK[words]()

    with warnings.catch_warnings(), drawn_clock(costs), states() as state:
        # the warnings that there is no warm-up, and that each cycle starts again
        warnings.simplefilter("ignore")
        found = slowest(step, wait, warmup, active)
    return {"found": found, "states": seen}


class Counter(TorchDispatchMode):
    """Counts ``operators`` by name, and the ``bytes`` of the tensors that they make.

    A view, or a write into a tensor, counts 0 bytes.
    """

    def __init__(self) -> None:
        super().__init__()
        self.operators: collections.Counter[str] = collections.Counter()
        self.bytes = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = {_storage(t) for t in tree_leaves((args, kwargs)) if isinstance(t, Tensor)}
        result = func(*args, **(kwargs or {}))
        self.operators[func.overloadpacket.__name__] += 1
        for made in tree_leaves(result):
            if isinstance(made, Tensor) and _storage(made) not in given:
                self.bytes += made.numel() * made.element_size()
        return result


def _storage(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


class OtherDevice(RuntimeError):
    """A tensor was made on a device that is not the device of the given tensors."""


class _OnOneDevice(TorchDispatchMode):
    """Raises :exc:`OtherDevice` if an operator's result is on another type of device."""

    def __init__(self, device: str) -> None:
        super().__init__()
        self.device = device

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for made in tree_leaves(result):
            if isinstance(made, Tensor) and made.device.type != self.device:
                raise OtherDevice(
                    f"a tensor is on {made.device}, but the logits are on {self.device}"
                )
        return result


@driver("loss", "share", "gradient", observed={"operators": COSTS, "bytes": COSTS})
def counted(loss_of: Callable, logits: Tensor, targets: Tensor) -> dict[str, Any]:
    """Return the result of a loss, and its cost.

    ``loss_of`` maps logits (B, T, V) and targets (B, T) to a ``loss`` and a ``share`` of right
    answers. ``operators`` and ``bytes`` have two counts each: of the forward, and of the backward.
    The upstream gradient of the backward is 2, and the resulting ``gradient`` is halved. So a
    backward that ignores its upstream gradient gives another result.
    """
    leaf = logits.detach().clone().requires_grad_()
    with Counter() as counter:
        loss, share = loss_of(leaf, targets)
    forward = counter.operators.total(), counter.bytes
    two = torch.full_like(loss, 2.0)
    with counter:
        (gradient,) = gradients(loss, [leaf], two)
    gradient = None if gradient is None else gradient / 2
    return {
        "loss": loss.detach(),
        "share": share.detach() if isinstance(share, Tensor) else share,
        "gradient": gradient,
        "operators": (forward[0], counter.operators.total() - forward[0]),
        "bytes": (forward[1], counter.bytes - forward[1]),
    }


@driver(observed={WHOLE: "that the code did not read a tensor's value"})
def asks(loss_of: Callable, logits: Tensor, targets: Tensor) -> str | None:
    """Run a loss on the device `meta`, where tensors have no values.

    Returns None if the loss runs. Otherwise the loss reads a value, or uses a tensor on another
    device, and the error's message is returned.
    """
    leaf, there = logits.detach().to("meta").requires_grad_(), targets.to("meta")
    try:
        with _OnOneDevice("meta"):
            loss_of(leaf, there)
    except Exception as error:
        lines = str(error).strip().splitlines() or [""]
        return f"{type(error).__name__}: {lines[0][:100]}"
    return None


OPERATIONS: dict[str, Callable[..., Tensor]] = {
    "keep": lambda x: x,
    "exp": torch.exp,
    "log": torch.log,
    "root": torch.sqrt,
    "square": torch.square,
    "tanh": torch.tanh,
    "relu": torch.relu,
    "sum": lambda x: x.sum(-1, keepdim=True),
    "mean": lambda x: x.mean(-1, keepdim=True),
    "center": lambda x: x - x.mean(-1, keepdim=True),
    "softmax": lambda x: x.softmax(-1),
    "times": lambda x, factor: x * factor,
    "plus": lambda x, term: x + term,
    "over": lambda x, divisor: x / divisor,
    "over itself": lambda x: x / x,
}


def operation(words: str) -> Callable[[Tensor], Tensor]:
    """Return the function for a key of `OPERATIONS` and its number, such as ``times 1e-4``."""
    if words in OPERATIONS:
        return OPERATIONS[words]
    name, _, number = words.rpartition(" ")
    return lambda x: OPERATIONS[name](x, float(number))


class Operation(nn.Module):
    """A module that does one of `OPERATIONS`."""

    def __init__(self, words: str) -> None:
        super().__init__()
        self.function = operation(words)

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x)


class Chain(nn.Module):
    """Runs a first operation, its parts one after the other, and a last operation.

    ``parts`` maps a name to the words of an operation, or to the parts of an inner chain. Two parts
    with the same words are two modules. The words ``same as NAME`` mean the module of an earlier
    part. ``first`` and ``last`` are the words of the first and the last operation.
    """

    def __init__(self, parts: Mapping[str, Any], last: str = "keep", first: str = "keep") -> None:
        super().__init__()
        self.order: list[str] = list(parts)
        for name, part in parts.items():
            if isinstance(part, str) and part.startswith("same as "):
                module = getattr(self, part.removeprefix("same as "))
            elif isinstance(part, str):
                module = Operation(part)
            else:
                module = Chain(**part) if "parts" in part else Chain(part)
            self.add_module(name, module)
        self.function, self.before = operation(last), operation(first)

    def forward(self, x: Tensor) -> Tensor:
        x = self.before(x)
        for name in self.order:
            x = getattr(self, name)(x)
        return self.function(x)


@driver(
    "found",
    observed={
        "hooks left": "that no hook is left",
        "as before": "that modes and attributes are as before",
    },
)
def hunted(
    first_bad: Callable, chain: Mapping[str, Any], x: Tensor, times: int = 1, training: bool = True
) -> dict:
    """Return the results of the learner's ``first_bad(model, x)``, and its side effects.

    The model is a `Chain`. All ``times`` calls get the same model. ``found`` is a list with the
    result of each call. ``hooks left`` is the number of hooks that remain on the model or for all
    modules. Hooks for all modules are then removed. ``as before`` is True if the calls changed no
    mode and no attribute.
    """
    model = Chain(**chain).train(training)
    everywhere = tuple(getattr(torch_module, f"_global{kind}") for kind in HOOKS)
    known = [set(hooks) for hooks in everywhere]
    before = [(module.training, set(vars(module))) for module in model.modules()]
    left = 0
    try:
        found = [first_bad(model, x.clone()) for _ in range(times)]
    finally:
        for hooks, before_it in zip(everywhere, known, strict=True):
            for new in set(hooks) - before_it:
                del hooks[new]
                left += 1
    left += sum(len(getattr(module, kind)) for module in model.modules() for kind in HOOKS)
    after = [(module.training, set(vars(module))) for module in model.modules()]
    return {"found": found, "hooks left": left, "as before": before == after}


@driver("value", "gradient")
def rooted(safe_root: Callable, x: Tensor, upstream: Tensor) -> dict[str, Tensor]:
    """Return the ``value`` of ``safe_root(x)``, and x's ``gradient`` for an upstream gradient."""
    leaf = x.detach().clone().requires_grad_()
    value = safe_root(leaf)
    (gradient,) = torch.autograd.grad(value, leaf, upstream)
    return {"value": value.detach(), "gradient": gradient}


@driver(WHOLE)
def in_half(worse_in_half: Callable, words: Sequence[str], x: Tensor) -> Any:
    """Return the result of ``worse_in_half(steps, x)``. The name of a step is its words."""
    return worse_in_half([(word, operation(word)) for word in words], x)


@driver(WHOLE)
def said(met: Callable) -> Any:
    """Return the result of the learner's ``met()``."""
    return met()


def complaint(function: Callable, arguments: Sequence[Any]) -> str:
    """Return the message of the RuntimeError that a call raises, or "" if it raises none."""
    try:
        function(*arguments)
    except RuntimeError as error:
        return str(error)
    return ""


def numbers_in(message: str) -> set[int]:
    """Return the whole numbers in a message, such as 14, 5 and 6 in ``14x5 and 6x5``."""
    return {int(digits) for digits in re.findall(r"\d+", message)}


Table = dict[str, tuple[str, int, int, int]]


def table_of(profile: torch.profiler.profile) -> Table:
    """Return a profile's table: name -> (kind, calls, total, self), in nanoseconds of the host.

    The kind is ``range`` for labels of `record_function`, and ``op`` for other events.
    """
    return {
        row.key: (
            "range" if row.is_user_annotation else "op",
            row.count,
            round(1000 * row.cpu_time_total),
            round(1000 * row.self_cpu_time_total),
        )
        for row in profile.key_averages()
    }
