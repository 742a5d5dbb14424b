"""Drivers of lab 06: a compiled decode step that writes with MiniGPT."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from utils.drivers import GRAPHS, INPUTS_KEPT, draw_into, driver
from utils.drivers.compiling import fresh
from utils.instruments.empty_memory import empty_is_nan
from utils.minigpt import MiniGPT, MiniGPTConfig, load_minigpt

Sizes = Sequence[int]  # the fields of a MiniGPTConfig, in order


def small_minigpt(sizes: Sizes, seed: int) -> MiniGPT:
    """Return a MiniGPT in eval mode, with random parameters.

    Biases are small, and norms are near the identity. So the words depend on the text.
    """
    with torch.random.fork_rng(devices=[]):
        model = MiniGPT(MiniGPTConfig(*sizes)).eval()
    draw_into(model.parameters(), seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("bias"):
                parameter.mul_(0.25)
            elif "norm" in name:
                parameter.mul_(0.25).add_(1)
    return model


class Products(TorchDispatchMode):
    """Counts the floating-point operations of the products of matrices and vectors."""

    def __init__(self) -> None:
        super().__init__()
        self.operations = 0

    def __torch_dispatch__(
        self, op: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        with self:  # in inference mode, `linear` and `matmul` arrive here as they are
            result = op.decompose(*args, **(kwargs or {}))
        if result is not NotImplemented:
            return result
        result = op(*args, **(kwargs or {}))
        name = op.overloadpacket.__name__
        if name in PRODUCTS:
            self.operations += 2 * result.numel() * args[PRODUCTS[name]].shape[-1]
        return result


# Operators -> the place of the left factor in their arguments
PRODUCTS = {"mm": 0, "bmm": 0, "mv": 0, "dot": 0, "addmm": 1, "baddbmm": 1, "addmv": 1}


class Stepping:
    """A backend that runs its graphs as they are, and looks at them.

    graphs: the number of graphs.
    steps: how often a graph ran.
    fixed: for each graph, whether all its inputs are tensors of fixed sizes.
    whole: for each graph, whether it contains all linear layers of the model.
    single: for each graph, whether its products cost no more than the products for one token.
    """

    def __init__(self, model: MiniGPT) -> None:
        layers = [one.weight for one in model.modules() if isinstance(one, nn.Linear)]
        self._weights = {weight.data_ptr() for weight in layers}
        self._linear = 2 * sum(weight.numel() for weight in layers)  # operations for one token
        config = model.config
        # the scores of a token's query, and the sums of values, over the whole context
        self._attention = 4 * config.n_layers * config.context * config.d_model
        self.graphs, self.steps = 0, 0
        self.fixed: list[bool] = []
        self.whole: list[bool] = []
        self.single: list[bool] = []

    def __call__(self, gm: torch.fx.GraphModule, example_inputs: list[Any]) -> Callable:
        self.graphs += 1
        self.fixed.append(all(map(_is_fixed, gm.graph.find_nodes(op="placeholder"))))
        first = True

        def run(*inputs: Any) -> Any:
            nonlocal first
            self.steps += 1
            if not first:
                return gm.forward(*inputs)
            first = False
            there = {one.data_ptr() for one in inputs if isinstance(one, Tensor)}
            with Products() as products:
                result = gm.forward(*inputs)
            # Layers may be joined, or computed without products.
            self.whole.append(products.operations >= self._linear or self._weights.issubset(there))
            # A write into the cache may be a product, too.
            self.single.append(products.operations <= 1.5 * (self._linear + self._attention))
            return result

        return run


def _is_fixed(node: torch.fx.Node) -> bool:
    value = node.meta.get("example_value")
    return isinstance(value, Tensor) and all(type(size) is int for size in value.shape)


@driver(
    "words",
    observed={
        "graphs": GRAPHS,
        "fixed": "what goes into a graph",
        "whole": "what is in a graph",
        "single": "how much a graph computes",
        "steps": "how often a graph runs",
        "prompts": INPUTS_KEPT,
    },
)
def run_writer(
    make: Callable,
    prompts: Sequence[Sequence[int]],
    sizes: Sizes | None = None,
    seed: int = 0,
    *,
    traced: bool = True,
) -> dict[str, Any]:
    """Let the learner's ``compiled_writer(model, backend)`` write after prompts.

    prompts: the ids of each prompt. One function continues all prompts, in this order.
    sizes: vocab_size, d_model, n_heads, n_layers, d_ff and context of a MiniGPT with random
        weights. Without ``sizes`` it is the trained MiniGPT.
    seed: the seed of the random weights.
    traced: if False, `torch.compile` does nothing. That is faster, but only ``words`` is of use.

    ``words`` has what was written after each prompt. ``graphs`` is the number of graphs, and
    ``steps`` is how often they ran. ``fixed`` is True if all inputs of all graphs are tensors of
    fixed sizes. ``whole`` is True if a single graph contains all linear layers. ``single`` is True
    if no graph computes more products than one token needs. Without a graph, these three are
    False. ``prompts`` are the given prompts after the calls.

    While this runs, memory from `torch.empty` contains NaN.
    """
    model = small_minigpt(sizes, seed) if sizes else load_minigpt()
    backend, given = Stepping(model), [list(prompt) for prompt in prompts]
    stance = torch.compiler.set_stance("default" if traced else "force_eager")
    with fresh(), empty_is_nan(), stance:
        write = make(model, backend)
        words = [write(prompt) for prompt in given]
    return {
        "words": words,
        "graphs": backend.graphs,
        "steps": backend.steps,
        "fixed": bool(backend.fixed) and all(backend.fixed),
        "whole": any(backend.whole),
        "single": bool(backend.single) and all(backend.single),
        "prompts": given,
    }
