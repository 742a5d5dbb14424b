"""Drivers of lab 11: tiled products, attention in tiles, and kernels for both."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from hood.judge.connection.drivers import INPUTS_KEPT
from utils.drivers import WHOLE, draw_into, driver
from utils.drivers.custom_op import MODEL_KEPT
from utils.drivers.custom_op import cut as cut  # for the lab
from utils.instruments.empty_memory import empty_is_nan
from utils.instruments.interpreter import watched
from utils.instruments.launching import ptx_of, recorded_launches
from utils.minigpt import MiniGPT, MiniGPTConfig, generate, load_minigpt
from utils.minigpt import model as minigpt

PRODUCTS = "how large the products are"
ACCESSES = "how much the kernels load and store"
LAUNCHES = "how many kernels are launched"
OTHERS = "which tensors the kernels get"

_BATCHED = {"bmm", "baddbmm", "addbmm"}
_MATRICES = {"mm", "addmm", "mv", "addmv", "dot", "vdot", "addr", "convolution"} | _BATCHED
_PRODUCTS = _MATRICES | {"mul", "addcmul", "div"}


@functools.cache
def _name(operator: Any) -> str:
    # `addmm_`, which adds in place, counts as `addmm`
    return operator._schema.name.removeprefix("aten::").removesuffix("_")


class Sizes(TorchDispatchMode):
    """Notes the sizes of products and of new tensors."""

    def __init__(self) -> None:
        super().__init__()
        # the shapes of the two factors of each product, without sizes of 1
        self.products: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
        self.tensors: list[tuple[int, ...]] = []  # the shapes of tensors that are no views
        self.flops = 0  # the operations of all matrix products
        self.widest = 0  # the longest side of a factor in a matrix product

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # else the first use of a mode imports the whole compiler

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        name = _name(func)
        if name in _PRODUCTS:
            self._note_product(name, args)
        elif "scaled_dot_product" in name:
            self.widest = max(self.widest, *args[0].shape)
        if not func.is_view:
            made = [result] if isinstance(result, Tensor) else tree_leaves(result)
            self.tensors += [tuple(one.shape) for one in made if isinstance(one, Tensor)]
        return result

    def _note_product(self, name: str, args: tuple) -> None:
        factors = [one for one in args if isinstance(one, Tensor) and one.dim()][-2:]
        if name == "convolution":
            factors = list(args[:2])
        if len(factors) != 2:
            return
        left, right = (tuple(size for size in one.shape if size != 1) for one in factors)
        self.products.append((left, right))
        if name in _MATRICES:
            # each number of the left factor is multiplied once for each column of the right factor
            columns = factors[1].shape[-1] if factors[1].dim() > 1 else 1
            self.flops += 2 * factors[0].numel() * columns
            # the first dimensions count the matrices of a batch, so they are not sides of a matrix
            self.widest = max(self.widest, *(max(one.shape[-2:]) for one in factors))

    def largest_factor(self) -> int:
        """Return the side of the smallest square in which each factor of each product fits."""
        sides = [
            max([1, math.ceil(math.sqrt(math.prod(shape))), *shape])
            for pair in self.products
            for shape in pair
        ]
        return max(sides, default=0)


@driver("output", observed={"largest": PRODUCTS})
def tiled(function: Callable, a: Tensor, b: Tensor, block: int) -> dict[str, Any]:
    """Return the ``output`` of ``function(a, b, block)``, and the ``largest`` factor of a product.

    A product is a call of `@`, `mm` or the like, or a multiplication of two tensors. ``largest`` is
    the side of the smallest square in which each factor of each product fits.
    """
    with Sizes() as sizes:
        output = function(a, b, block)
    return {"output": output, "largest": sizes.largest_factor()}


LARGEST = "how large the tensors are"
FLOPS = "how much is multiplied"


@driver("output", "lse", observed={"largest": LARGEST, "flops": FLOPS})
def attention(
    flash: Callable, q: Tensor, k: Tensor, v: Tensor, causal: bool, block: int
) -> dict[str, Any]:
    """Return the ``output`` and the ``lse`` of ``flash(q, k, v, causal, block)``.

    ``largest`` is the number of elements of the largest new tensor. ``flops`` is the number of
    operations in all matrix products.
    """
    with Sizes() as sizes:
        output, lse = flash(q, k, v, causal, block)
    largest = max(map(math.prod, sizes.tensors), default=0)
    return {"output": output, "lse": lse, "largest": largest, "flops": sizes.flops}


@dataclass
class Counted:
    """How many numbers kernels loaded and stored in the interpreter."""

    loads: int = 0  # without masked lanes
    stores: int = 0


@contextlib.contextmanager
def counted() -> Iterator[Counted]:
    """Count the loads and stores of kernels in the interpreter while the context is open."""
    found = Counted()

    def note(kind: str, places: Any, mask: Any) -> None:
        lanes = int(np.count_nonzero(np.broadcast_to(mask.data, np.shape(places.data))))
        setattr(found, kind, getattr(found, kind) + lanes)

    with watched(note):
        yield found


@driver("output")
def computed(function: Callable, *args: Any) -> dict[str, Any]:
    """Return the ``output`` of a function. Elements that the function does not write are NaN."""
    with empty_is_nan():
        return {"output": function(*args)}


@driver(
    "output",
    observed={"loads": ACCESSES, "stores": ACCESSES, "launches": LAUNCHES, "others": OTHERS},
)
def launched(function: Callable, *args: Any) -> dict[str, Any]:
    """Return the ``output`` of a function that launches kernels, and what the kernels did.

    ``loads`` and ``stores`` count the numbers that all programs load and store, without masked
    lanes. ``launches`` is the number of launches. ``others`` is the number of additional tensors
    that the kernels got. An additional tensor has the output's dtype, and shares no storage with an
    argument or the output.
    """
    with empty_is_nan(), recorded_launches() as launches, counted() as found:
        output = function(*args)
    known = {_storage(one) for one in (*args, output) if isinstance(one, Tensor)}
    given = [one for launch in launches for one in tree_leaves(dict(launch.arguments))]
    others = {
        _storage(one)
        for one in given
        if isinstance(one, Tensor) and one.dtype == getattr(output, "dtype", None)
    } - known
    came = {"loads": found.loads, "stores": found.stores, "launches": len(launches)}
    return {"output": output, **came, "others": len(others)}


def _storage(one: Tensor) -> int:
    return one.untyped_storage().data_ptr()


@driver(observed={WHOLE: "that the launched kernels compile for sm_90, and use tensor cores"})
def tensor_cores(function: Callable, *args: Any) -> bool:
    """Return whether a kernel that a function launches uses the tensor cores of an H100.

    The kernels are compiled without a GPU. Instructions for tensor cores have `mma` in their names.
    """
    with recorded_launches() as launches:
        function(*args)
    if not launches:
        raise LookupError("no kernel was launched: call launch(kernel, grid, ...) to run a kernel")
    texts = [ptx_of(one) for one in launches]
    names = [line.split()[0] for text in texts for line in text.splitlines() if line.split()]
    return any("mma" in name for name in names)


def sharper(q: Tensor, k: Tensor, v: Tensor, causal: bool) -> Tensor:
    """Return attention with 1.5 times larger scores, so that its outputs show where it is used."""
    return F.scaled_dot_product_attention(
        q, k, v, is_causal=causal, scale=1.5 * q.shape[-1] ** -0.5
    )


SAVED = "how much is kept for the backward"


def attended(q: Tensor, k: Tensor, v: Tensor, causal: bool) -> tuple[Tensor, Tensor]:
    """Return the output, (B, H, T, D), and the log-sum-exp, (B, H, T), of attention."""
    found = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
        q, k, v, dropout_p=0.0, is_causal=causal
    )
    return found[0], found[1]


@driver(
    "output",
    "gradients",
    observed={
        "largest": LARGEST,
        "widest": PRODUCTS,
        "saved": SAVED,
        "attributes": SAVED,
        "unchanged": INPUTS_KEPT,
    },
)
def backward(
    function: Any,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    causal: bool,
    block: int,
    upstream: Tensor,
    between: bool = False,
) -> dict[str, Any]:
    """Return the ``output`` of ``function.apply(q, k, v, causal, block)``, and the ``gradients``.

    upstream: the gradient of the output.
    between: whether other calls come between forward and backward.

    ``gradients`` has the gradients of q, k and v. ``largest`` is the number of elements of the
    largest new tensor. ``widest`` is the longest side of a factor in the backward's matrix
    products. ``saved`` is the number of elements that are saved for the backward. ``attributes`` is
    the number of tensors that are attributes of the graph's node. ``unchanged`` is True if the
    backward changes no argument of the forward, no output and no upstream gradient.
    """
    saved: dict[int, int] = {}

    def keep(one: Tensor) -> Tensor:
        saved[one.data_ptr()] = one.numel()
        return one

    leaves = [one.detach().clone().requires_grad_() for one in (q, k, v)]
    with Sizes() as sizes, torch.autograd.graph.saved_tensors_hooks(keep, lambda one: one):
        output = function.apply(*leaves, causal, block)
    if between:
        others = [one.detach().flip(-2).requires_grad_() for one in leaves]
        function.apply(*others, causal, block)
        function.apply(*others, not causal, block + 1)
    attributes = [t for t in tree_leaves(vars(output.grad_fn)) if isinstance(t, Tensor)]
    before, grad = output.detach().clone(), upstream.clone()
    with Sizes() as back:
        found = torch.autograd.grad(output, leaves, grad, allow_unused=True)
    pairs = zip((*leaves, output, grad), (q, k, v, before, upstream), strict=True)
    return {
        "output": before,
        "gradients": list(found),
        "largest": max(map(math.prod, sizes.tensors + back.tensors), default=0),
        "widest": back.widest,
        "saved": sum(saved.values()),
        "attributes": len(attributes),
        "unchanged": all(torch.equal(one, other) for one, other in pairs),
    }


def gradcheck(function: Any, q: Tensor, k: Tensor, v: Tensor, causal: bool, block: int) -> bool:
    """Return whether the gradients agree with finite differences, in float64."""
    leaves = [one.detach().double().requires_grad_() for one in (q, k, v)]
    return torch.autograd.gradcheck(
        lambda *given: function.apply(*given, causal, block), leaves, raise_exception=False
    )


@contextlib.contextmanager
def _kept() -> Iterator[None]:
    """Restore MiniGPT's classes, which a learner may change for all models."""
    classes = [one for one in vars(minigpt).values() if isinstance(one, type)]
    classes = [one for one in classes if one.__module__ == minigpt.__name__]
    before = [(one, dict(vars(one))) for one in classes]
    try:
        yield
    finally:
        for one, names in before:
            for name in set(vars(one)) - set(names):
                delattr(one, name)
            for name, value in names.items():
                if vars(one).get(name) is not value:
                    setattr(one, name, value)


@driver("logits", "then", observed={"names": MODEL_KEPT, "others": MODEL_KEPT})
def swapped(
    swap: Callable, config: MiniGPTConfig, seed: int, tokens: Tensor, then: Tensor
) -> dict[str, Any]:
    """Let ``swap(model, attention)`` change a MiniGPT, and run this model and two others.

    ``attention`` is :func:`sharper`. All models have the same weights, which ``seed`` decides.
    ``logits`` are the changed model's logits for tokens (batch, length), and ``then`` has its
    logits for other tokens. ``names`` has the keys of the changed model's state dict. ``others``
    has the logits of a model made before the change, and of a model made after the change.
    """

    def made() -> MiniGPT:
        model = MiniGPT(config)
        draw_into(model.parameters(), seed, 0.5)
        return model.eval()

    with _kept(), torch.no_grad():
        model, before = made(), made()
        swap(model, sharper)
        after = made()
        return {
            "logits": model(tokens),
            "then": model(then),
            "names": list(model.state_dict()),
            "others": [before(tokens), after(tokens)],
        }


class _Weights:
    """Stands for the weights of q and k. Its product with v is ``attention(q, k, v, True)``."""

    def __init__(self, attention: Callable, q: Tensor, k: Tensor) -> None:
        self._attend = functools.partial(attention, q, k)

    def __matmul__(self, v: Tensor) -> Tensor:
        return self._attend(v, True)


class _Pattern(nn.Module):
    """Replaces the module that computes the weights in MiniGPT's attention."""

    def __init__(self, attention: Callable) -> None:
        super().__init__()
        self._attention = attention

    def forward(self, q: Tensor, k: Tensor) -> _Weights:
        return _Weights(self._attention, q, k)


@driver("sentences", "logits")
def written(
    attention: Callable, asked: Sequence[tuple[str, str, str]], tokens: Tensor
) -> dict[str, Any]:
    """Return the ``sentences`` of the trained MiniGPT with another attention.

    ``asked`` has the subject, the verb and the tense of each sentence. ``logits`` are the model's
    logits for the tokens (B, T).
    """
    with torch.no_grad():
        model = load_minigpt()
        for one in model.modules():
            if isinstance(one, minigpt.CausalSelfAttention):
                one.pattern = _Pattern(attention)  # type: ignore[assignment]
        found = [generate(who, verb=verb, tense=tense, model=model) for who, verb, tense in asked]
        return {"sentences": found, "logits": model(tokens)}
