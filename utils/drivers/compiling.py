"""Drivers of lab 06: backends that get graphs, and compiled functions."""

from __future__ import annotations

import contextlib
import functools
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from utils.drivers import GRAPHS, WHOLE, draw_into, driver, gradients, stored_gradients, unlogged
from utils.minigpt import MiniGPT, MiniGPTConfig

Step = tuple  # a word, and its arguments: ("relu",), ("scale", 2.0)


# Words -> an operation on a value. Some operations need a number.
DONE: dict[str, Callable[..., Tensor]] = {
    "relu": torch.relu,
    "gelu": F.gelu,
    "sin": torch.sin,
    "square": lambda x: x * x,
    "softmax": lambda x: torch.softmax(x, -1),
    "neg": lambda x: x.neg(),
    "exp": lambda x: x.exp(),
    "sum": lambda x, dim: x.sum(dim),
    "scale": lambda x, factor: x * factor,
    "first": lambda x, count: torch.chunk(x, count)[0],
}


def program(steps: Sequence[Step]) -> Callable[..., list[Tensor]]:
    """Return a function of ``x`` and some weights that does the steps one after the other.

    Some steps call a function: ``relu``, ``gelu``, ``sin``, ``square`` and ``softmax`` (over the
    last dimension). Some steps call a method: ``neg``, ``exp`` and ``sum`` (over a dimension).
    ``scale`` multiplies by a number. ``first`` splits the value into chunks and takes the first
    chunk. ``linear`` uses the next weight. ``again`` goes back to the original ``x``. ``keep`` adds
    the value to the results. ``break`` breaks the graph. A program has at most two breaks. The
    function returns the kept values and the last value.
    """
    pieces: list[list[Step]] = [[]]
    for step in steps:
        if step[0] == "break":
            pieces.append([])
        else:
            pieces[-1].append(step)

    def advance(piece: list[Step], x: Tensor, state: tuple) -> Tensor:
        first, weights, kept = state
        for word, *more in piece:
            if word == "keep":
                kept.append(x)
            elif word == "again":
                x = first
            elif word == "linear":
                x = F.linear(x, weights.pop(0))
            else:
                x = DONE[word](x, *more)
        return x

    def run(x: Tensor, *weights: Tensor) -> list[Tensor]:
        kept: list[Tensor] = []
        state = x, list(weights), kept
        x = advance(pieces[0], x, state)
        if len(pieces) > 1:  # not in a loop: a break there makes Dynamo leave the whole function
            torch._dynamo.graph_break()
            x = advance(pieces[1], x, state)
        if len(pieces) > 2:
            torch._dynamo.graph_break()
            x = advance(pieces[2], x, state)
        return [*kept, x]

    return run


@contextlib.contextmanager
def fresh() -> Iterator[None]:
    """Reset the compiler before and after the context, and suppress the compiler's log.

    If an operation fails on Dynamo's fake tensors, an error with the operation's message is raised.
    """
    torch._dynamo.reset()
    try:
        with unlogged():
            yield
    except torch._dynamo.exc.TorchRuntimeError as error:
        own = re.search(r": got (.+)", str(error))
        if own is None:
            raise
        raise RuntimeError(f"while Dynamo followed it: {own[1]}") from error
    finally:
        torch._dynamo.reset()


@dataclass(frozen=True)
class Captured:
    """A graph that Dynamo gave to a backend, and the inputs of its call."""

    gm: torch.fx.GraphModule
    example_inputs: list[Any]
    inputs: tuple[Any, ...]


def capture(function: Callable, *args: Any) -> list[Captured]:
    """Return the graphs that Dynamo gives to a backend while a function is called."""
    found: list[Captured] = []

    def backend(gm: torch.fx.GraphModule, example_inputs: list[Any]) -> Callable:
        def run(*inputs: Any) -> Any:
            found.append(Captured(gm, example_inputs, inputs))
            return gm.forward(*inputs)

        return run

    with fresh():
        torch.compile(function, backend=backend)(*args)
    return found


def hand(backend: Callable, graph: Captured) -> Callable:
    """Give a copy of a graph to a backend, as Dynamo does, and return the backend's result."""
    gm = copied(graph.gm)
    assert gm.code  # read before the backend gets it, as logging does
    return backend(gm, list(graph.example_inputs))


def copied(gm: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """Return a module with a copy of the graph. The nodes keep their names and metadata."""
    graph = torch.fx.Graph()
    graph.output(graph.graph_copy(gm.graph, {}))
    return torch.fx.GraphModule(gm, graph)


@functools.lru_cache(maxsize=64)
def _captured_program(
    steps: tuple[Step, ...], shape: tuple[int, ...], weights: tuple[tuple[int, ...], ...]
) -> list[Captured]:
    x, *others = (torch.ones(one) for one in (shape, *weights))
    return capture(program(steps), x, *others)


@driver("report", "results", "gradient")
def report(
    make_backend: Callable, steps: Sequence[Step], x: Tensor, weights: Sequence[Tensor] = ()
) -> dict[str, Any]:
    """Give the graphs of a program to the learner's backend, one after the other, and run them.

    make_backend: the learner's function. It gets an empty list, and returns a backend that fills
        the list.
    steps: the steps of the program, as in :func:`program`. The program gets ``x`` and ``weights``.

    ``report`` is the filled list. ``results`` has the result of each graph, computed by the
    function that the backend returned. ``gradient`` is the gradient of the last result's sum with
    respect to x, or None.
    """
    written: list[Any] = []
    backend = make_backend(written)
    shapes = tuple(tuple(one.shape) for one in weights)
    graphs = _captured_program(tuple(map(tuple, steps)), tuple(x.shape), shapes)
    # The first graph gets x and the weights; a graph after a break gets the last value of the
    # previous graph.
    leaf = x.detach().clone().requires_grad_()
    value, rest, results = leaf, list(weights), []
    for graph in graphs:
        run = hand(backend, graph)
        if not written:
            raise ValueError("the report is empty, although the backend got a graph")
        count = len(graph.inputs) - 1
        given, rest = rest[:count], rest[count:]
        returned = run(value, *given)
        value = returned[-1]
        results.append([one.detach().clone() for one in returned])
    (gradient,) = gradients(value.sum(), [leaf])
    return {"report": written, "results": results, "gradient": gradient}


def count_as_torch_does(calls: Sequence[tuple[tuple[int, ...], torch.dtype, float]]) -> list[int]:
    """Return how many graphs torch has compiled after each call of ``x * k``.

    ``calls`` has a tuple (shape of x, dtype of x, k) for each call.
    """
    from torch._dynamo.testing import CompileCounter

    counter, found = CompileCounter(), []
    with fresh():
        compiled = torch.compile(lambda x, k: x * k, backend=counter)
        for shape, dtype, k in calls:
            compiled(torch.zeros(shape, dtype=dtype), k)
            found.append(counter.frame_count)
    return found


@driver("values", "gradients", observed={"graphs": GRAPHS})
def compiled(function: Callable, *calls: Sequence[Tensor]) -> dict[str, Any]:
    """Compile a function that returns one tensor, without ``fullgraph``, and call it.

    ``values`` has the value of each call. ``gradients`` has the gradient of each value's sum with
    respect to the first argument. ``graphs`` is the number of graphs that a backend got.
    """
    from torch._dynamo.testing import CompileCounter

    counter = CompileCounter()
    found: dict[str, Any] = {"values": [], "gradients": []}
    with fresh():
        run = torch.compile(function, backend=counter)
        for first, *others in calls:
            x = first.detach().clone().requires_grad_()
            value = run(x, *others)
            found["values"].append(value.detach().clone())
            found["gradients"] += gradients(value.sum(), [x])
    return {**found, "graphs": counter.frame_count}


# Calls on a tensor x and a dimension dim that a backend may find in a graph. An operator without
# a dtype can't replace some of these calls.
FORMS: dict[str, Callable[[Tensor, int], Tensor]] = {
    form: eval(f"lambda x, dim: {form}".replace("float64", "torch.float64"))
    for form in (
        "torch.softmax(x, dim)",
        "torch.softmax(x, dim=dim)",
        "torch.softmax(input=x, dim=dim)",
        "torch.softmax(x, dim, dtype=None)",
        "F.softmax(x, dim)",
        "F.softmax(x, dim=dim)",
        "F.softmax(input=x, dim=dim)",
        "x.softmax(dim)",
        "x.softmax(dim=dim)",
        "x[None].softmax(dim + 1)[0]",
        "nn.Softmax(dim)(x)",
        "nn.Softmax(dim=dim)(x)",
        "torch.softmax(x, dim, float64)",
        "torch.softmax(x, dim, dtype=float64)",
        "F.softmax(x, dim=dim, dtype=float64)",
        "x.softmax(dim, float64)",
        "x.softmax(dim, dtype=float64)",
        "torch.log_softmax(x, dim)",
        "x.log_softmax(dim)",
        "F.log_softmax(x, dim=dim)",
        "x.cumsum(dim)",
    )
}


def sharper(x: Tensor) -> Tensor:
    """Return softmax(1.5 * x) over the last dimension. Its values differ from softmax(x)."""
    e = (1.5 * x - (1.5 * x).detach().amax(-1, keepdim=True)).exp()
    return e.div(e.sum(-1, keepdim=True))


def calling(
    forms: Sequence[tuple[str, int]], chained: bool = False, names: Sequence[str] = ()
) -> str:
    """Return the text of a function ``run(x)`` that calls some of FORMS and returns their values.

    ``forms`` has pairs of a form and a dimension. The first form gets x, the second form gets
    x / 2, the third form gets x / 3, and so on. If the forms are ``chained``, each form after the
    first gets the result of the previous form. ``names`` are the names of the values, by default
    y0, y1, and so on.
    """
    names = names or [f"y{number}" for number in range(len(forms))]
    lines = ["def run(x):"]
    for number, ((form, dim), name) in enumerate(zip(forms, names, strict=True)):
        given = names[number - 1] if chained and number else f"(x / {number + 1})"
        called = re.sub(r"\bdim\b(?!=)", str(dim), form).replace("float64", "torch.float64")
        lines.append(f"    {name} = " + re.sub(r"\bx\b", given, called))
    return "\n".join([*lines, f"    return [{', '.join(names)}]"])


@functools.lru_cache(maxsize=64)
def _captured_text(text: str, shape: tuple[int, ...], dtype: torch.dtype) -> Captured:
    scope: dict[str, Any] = {"torch": torch, "F": F, "nn": nn}
    exec(text, scope)
    (graph,) = capture(scope["run"], torch.ones(shape, dtype=dtype, requires_grad=True))
    return graph


@driver("values", "gradient")
def replaced(
    make_backend: Callable,
    forms: Sequence[tuple[str, int]] | str,
    x: Tensor,
    g: Tensor | None = None,
    *,
    chained: bool = False,
    again: bool = False,
) -> dict[str, Any]:
    """Let the learner's backend compile a function that calls some of FORMS. Run the result.

    ``make_backend`` is the learner's function. It gets the operator :func:`sharper`, and returns a
    backend. ``forms`` is the text of the function that is compiled, or an argument of
    :func:`calling`. ``g`` is the upstream gradient of each of the ``values``. Without ``g`` there
    is no ``gradient`` of x. With ``again``, the backend gets the graph twice, and the second result
    is run.
    """
    text = forms if isinstance(forms, str) else calling(forms, chained)
    graph = _captured_text(text, tuple(x.shape), x.dtype)
    leaf = x.detach().clone().requires_grad_()
    backend = make_backend(sharper)
    if again:
        hand(backend, graph)
    values = hand(backend, graph)(leaf)
    gradient = None
    if g is not None and all(value.requires_grad for value in values):
        (gradient,) = torch.autograd.grad(values, leaf, [g] * len(values))
    return {"values": [value.detach().clone() for value in values], "gradient": gradient}


@functools.lru_cache(maxsize=8)
def _captured_minigpt(config: MiniGPTConfig) -> tuple[MiniGPT, Captured]:
    model = MiniGPT(config)
    (graph,) = capture(model.probabilities, torch.zeros(1, config.context, dtype=torch.long))
    return model, graph


@driver("probabilities", "gradients")
def replaced_in_minigpt(
    make_backend: Callable, config: MiniGPTConfig, seed: int, tokens: Tensor
) -> dict[str, Any]:
    """Run a forward and a backward of a MiniGPT with the learner's backend.

    ``probabilities`` are the model's probabilities for tokens of shape (1, context). The loss is
    the sum of the squared probabilities. ``gradients`` maps a parameter's name to its gradient.
    """
    model, graph = _captured_minigpt(config)
    model.zero_grad()
    draw_into(model.parameters(), seed, 0.5)
    run = hand(make_backend(sharper), graph)
    given = [one if isinstance(one, nn.Parameter) else tokens for one in graph.inputs]
    (probabilities,) = run(*given)
    if probabilities.requires_grad:
        probabilities.square().sum().backward()
    return {
        "probabilities": probabilities.detach().clone(),
        "gradients": stored_gradients(dict(model.named_parameters())),
    }


def joint_graph(
    steps: Sequence[Step], shapes: Sequence[tuple[int, ...]], fixed: Sequence[int] = ()
) -> tuple[torch.fx.GraphModule, int]:
    """Return a program's joint graph, as a partitioner gets it, and the number of forward outputs.

    Each caller gets a new copy of the graph. Each `detach` is removed, because it has no effect.

    steps: the steps of the program, as in :func:`program`, without a break.
    shapes: the shapes of x and of the weights.
    fixed: the indices in ``shapes`` of the tensors that require no gradient.
    """
    key = tuple(map(tuple, steps)), tuple(map(tuple, shapes)), tuple(fixed)
    joint, outputs = _traced_jointly(*key)
    return copied(joint), outputs


@functools.lru_cache(maxsize=64)
def _traced_jointly(
    steps: tuple[Step, ...], shapes: tuple[tuple[int, ...], ...], fixed: tuple[int, ...]
) -> tuple[torch.fx.GraphModule, int]:
    from torch._functorch.aot_autograd import aot_function, make_boxed_func
    from torch._functorch.partitioners import default_partition

    found: list[Any] = []

    def look(joint: torch.fx.GraphModule, inputs: Any, *, num_fwd_outputs: int, **how: Any) -> Any:
        for node in joint.graph.nodes:
            if node.target is torch.ops.aten.detach.default:
                node.replace_all_uses_with(node.args[0])
        joint.graph.eliminate_dead_code()
        joint.recompile()
        found.extend((joint, num_fwd_outputs))
        return default_partition(joint, inputs, num_fwd_outputs=num_fwd_outputs, **how)

    tensors = [
        torch.ones(shape).requires_grad_(number not in fixed) for number, shape in enumerate(shapes)
    ]
    traced = aot_function(
        program(steps), fw_compiler=lambda gm, _: make_boxed_func(gm.forward), partition_fn=look
    )
    traced(*tensors)
    return found[0], found[1]


@driver(WHOLE)
def on_joint(
    function: Callable,
    steps: Sequence[Step],
    shapes: Sequence[tuple[int, ...]],
    *names: Sequence[str],
    fixed: Sequence[int] = (),
) -> Any:
    """Return the result of the learner's function for a program's joint graph.

    The function gets the graph and the ``names``, which are lists of nodes' names. Without
    ``names``, it gets the graph and the number of forward outputs.
    """
    joint, outputs = joint_graph(steps, shapes, fixed)
    return function(joint, *names) if names else function(joint, outputs)


class Counting:
    """A backend that counts its graphs and passes them to another backend.

    It records the functions that the graphs call. It also records the shapes of the graphs' inputs
    that are not parameters.
    """

    def __init__(self, inner: str) -> None:
        self.inner, self.graphs, self.functions = inner, 0, set[str]()
        self.shapes = set[tuple[int, ...]]()

    def __call__(self, gm: torch.fx.GraphModule, example_inputs: list[Tensor]) -> Callable:
        self.graphs += 1
        self.functions |= {str(n.target) for n in gm.graph.nodes if n.op == "call_function"}
        self.shapes |= {
            tuple(one.shape)
            for one in example_inputs
            if isinstance(one, Tensor) and not isinstance(one, nn.Parameter)
        }
        return torch._dynamo.lookup_backend(self.inner)(gm, example_inputs)


@driver(
    "values",
    "gradients",
    observed={
        "graphs": GRAPHS,
        "operator": "which operators a graph has",
        "hidden": "what goes into a graph",
    },
)
def run_head(
    make: Callable,
    width: int,
    words: int,
    seed: int,
    calls: Sequence[tuple[Tensor, float]],
    g: Tensor,
    *,
    inner: str = "eager",
    trained: float = 0.0,
) -> dict[str, Any]:
    """Let the learner's ``compiled_head(model, backend)`` compile a MiniGPT's head, and call it.

    Inductor is slow, so it compiles the head only if the head is one graph that contains the
    operator.

    width: the size of a hidden state.
    words: the number of words.
    seed: the seed of the head's weight and bias.
    calls: the hidden states and the temperature of each call.
    g: the upstream gradient of each call's probabilities.
    inner: the backend that compiles the counted graphs.
    trained: the share by which the weight and the bias grow after each call.

    ``values`` has the probabilities of each call. ``gradients`` has the gradients of the hidden
    states, the weight and the bias for each call. ``graphs`` is the number of compiled graphs.
    ``operator`` is True if a graph contains phase 05's operator. ``hidden`` is True if a graph gets
    the hidden states. Their first dimensions may be joined or split.
    """
    if inner == "inductor":
        traced = run_head(make, width, words, seed, calls, g, trained=trained)
        if traced["graphs"] != 1 or not traced["operator"] or not traced["hidden"]:
            raise ValueError(
                "expected one graph for Inductor: a graph that takes the hidden states and "
                "contains the operator for softmax"
            )
    model = MiniGPT(MiniGPTConfig(words, width, 1, 1, 4, 4))
    generator = torch.Generator().manual_seed(seed)
    weight, bias = model.lm_head.weight, model.lm_head.bias
    with torch.no_grad():
        weight.copy_(torch.randn(weight.shape, generator=generator) / width**0.5)
        bias.copy_(torch.randn(bias.shape, generator=generator))
    backend = Counting(inner)
    found: dict[str, Any] = {"values": [], "gradients": []}
    with fresh():
        head = make(model, backend)
        for hidden, temperature in calls:
            leaf = hidden.detach().clone().requires_grad_()
            value = head(leaf, temperature)
            fits = value.shape == g.shape
            came = gradients(value, (leaf, weight, bias), g) if fits else [None] * 3
            found["values"].append(value.detach().clone())
            found["gradients"].append(came)
            with torch.no_grad():
                for parameter in (weight, bias):
                    parameter.mul_(1 + trained)
    softmax = "open_the_hood.softmax.default"
    hidden = calls[0][0]
    return {
        **found,
        "graphs": backend.graphs,
        "operator": softmax in backend.functions,
        "hidden": any(
            shape[-1:] == hidden.shape[-1:] and math.prod(shape) == hidden.numel()
            for shape in backend.shapes
        ),
    }


TEXTS = Path(__file__).parent / "written"


def written(name: str) -> str:
    """Return the text of a module that Inductor wrote. Its first lines state the origin.

    name: ``mlp_gpu``, ``mlp_backward_cpu`` or ``head_backward_cpu``.
    """
    return (TEXTS / f"{name}.txt").read_text()
