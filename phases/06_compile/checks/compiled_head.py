"""Lab 06, exercise 8: The LM head, compiled"""

import torch
from torch.nn import functional as F

from utils.checks.compare import Tolerance
from utils.checks.exercise import Case, Check, Place, edited, not_run
from utils.checks.lab_solution import lab_solution
from utils.instruments.toolchain import inductor_lacks
from utils.minigpt import MiniGPT
from utils.softmax import softmax

compiled_head = Check(
    "compiled_head",
    parts={"values": 1, "gradients": 1, "one graph": 1, "Inductor": 1},
    reads="Guards: what a graph believes",
    tolerance=Tolerance(1e-5, 1e-5, "float32 sums in another order"),
)


@compiled_head.reference
def _(model, backend):
    """Eager in all but the tracing: Inductor is not asked for what it is compared with."""

    def eager(gm, example_inputs):
        backend.graphs += 1
        backend.functions |= {str(node.target) for node in gm.graph.nodes}
        backend.shapes |= {tuple(one.shape) for one in example_inputs}
        return gm.forward

    traced = torch.compile(
        lambda x, t: softmax(x @ model.lm_head.weight.T / t + model.lm_head.bias / t), backend=eager
    )
    return lambda x, temperature: traced(x, torch.full((), temperature))


@compiled_head.cases
def _(draw):
    values, gradients, graph, inductor = compiled_head.parts

    def asked(part, shape, words, temperatures, trained=0.0, inner="eager"):
        width = shape[-1]
        seed = draw.integer(0, 2**31)
        # stored back to front: nothing says that x is contiguous
        calls = [(draw.tensor(shape[::-1]).permute(*range(len(shape))[::-1]), one) for one in temperatures]
        g = draw.tensor((*shape[:-1], words))
        how = {"inner": inner, "trained": trained}

        def play(subject):
            came = subject.drive("compiling:run_head", width, words, seed, calls, g, **how)
            both = came["values"], came["gradients"]
            claims = came["graphs"], came["operator"], came["hidden"]
            return {values: both[:1], gradients: both[1:], graph: claims, inductor: both}[part]

        places = {
            "[0]": "It is not one graph for all temperatures.",
            "[1]": "Phase 05's operator is in no graph.",
            "[2]": "The hidden states go into no graph.",
        }
        if part != graph:
            places = {}
            for at in range(len(calls)):
                if part != gradients:
                    places[f"[0][{at}]"] = f"the probabilities of call {at + 1}"
                if part != values:
                    for place, name in enumerate(("x", "the weight", "the bias")):
                        where = f"[{0 if part == gradients else 1}][{at}][{place}]"
                        places[where] = Place(f"the gradient of {name} in call {at + 1}", returned=False)
        shown = f"x of shape {shape}, {words} words, temperatures {', '.join(map(str, temperatures))}"
        shown += ", parameters that change in between" if trained else ""
        return Case(part, play, shown=shown, places=places)

    a, b, c = draw.shape(3)
    some = draw.sample((0.513, 0.837, 1.441, 2.119, 3.973), 3)
    yield asked(values, (2, a, c), b, [1.0, *some[:2]], trained=0.5)
    yield asked(values, (c,), b, some[1:])
    yield asked(gradients, (b, c), a, some[1:], trained=-0.25)
    yield asked(graph, (2, c), b, [1.0, *some, 1.0])
    # Sizes are literals in the C++ that Inductor writes, so these are the same in every run.
    if lack := inductor_lacks():
        yield not_run(inductor, f"needs a C++ compiler, and {lack}")
    else:
        yield asked(inductor, (2, 64), 600, some[:2], trained=0.125, inner="inductor")


_make = lab_solution(__name__, "compiled_head")


# What is earned by right numbers from another graph, and by the right graph of other numbers.
NUMBERS, GRAPH = {"values": 1, "gradients": 1}, {"one graph": 1}


def _misconception(name, explanation, earns, *edits):
    compiled_head.misconception(name, explanation, earns=earns)(edited(_make, *edits))


_misconception(
    "the float goes in",
    "there are two graphs, as where the temperature goes in as a number, which is a guard.",
    NUMBERS,
    ("torch.tensor(temperature)", "temperature"),
)
_misconception(
    "torch's softmax",
    "the operator of phase 05 is not in the graph.",
    NUMBERS,
    ("softmax(model.lm_head(x) / temperature)", "torch.softmax(model.lm_head(x) / temperature, -1)"),
)
_misconception(
    "not compiled",
    "the backend that is given is handed no graph: nothing is compiled, or by another.",
    NUMBERS,
    ("@torch.compile(backend=backend)\n    def", "def"),
)
_misconception(
    "the logits outside",
    "the graph begins with the logits: `model.lm_head` is called outside of it.",
    NUMBERS,
    ("softmax(model.lm_head(x) / temperature)", "softmax(x / temperature)"),
    ("probabilities(x, torch.tensor(temperature))", "probabilities(model.lm_head(x), torch.tensor(temperature))"),
)
_misconception(
    "times the temperature",
    "the logits are multiplied by the temperature.",
    GRAPH,
    ("/ temperature", "* temperature"),
)
_misconception(
    "divided too early",
    "the bias is not divided by the temperature: what goes through the layer is x, divided.",
    GRAPH,
    ("model.lm_head(x) / temperature", "model.lm_head(x / temperature)"),
)
_misconception(
    "divided too late",
    "the probabilities are divided by the temperature, so they do not sum to 1.",
    GRAPH,
    ("softmax(model.lm_head(x) / temperature)", "softmax(model.lm_head(x)) / temperature"),
)
_misconception(
    "the first temperature for ever",
    "the temperature of the first call is kept for those that follow.",
    GRAPH,
    ("def head(x, temperature):", "known = []\n\n    def head(x, temperature):\n        known.append(temperature)"),
    ("torch.tensor(temperature)", "torch.tensor(known[0])"),
)  # fmt: skip
_misconception(
    "parameters copied",
    "weight and bias are copies: no gradient reaches the model's, and no change of them reaches the "
    "head.",
    GRAPH,
    ("@torch.compile(backend=backend)",
     "weight, bias = model.lm_head.weight.detach().clone(), model.lm_head.bias.detach().clone()\n\n"
     "    @torch.compile(backend=backend)"),
    ("model.lm_head(x)", "F.linear(x, weight, bias)"),
)  # fmt: skip
_misconception(
    "the bias forgotten",
    "the logits lack the bias.",
    GRAPH,
    ("model.lm_head(x)", "F.linear(x, model.lm_head.weight)"),
)


@compiled_head.alternate("a module of its own")
def _(model, backend):
    class Head(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = model.lm_head

        def forward(self, x, inverse):
            return softmax(self.linear(x) * inverse)

    module = torch.compile(Head(), backend=backend)
    return lambda x, temperature: module(x, torch.full((1,), 1 / temperature))


@compiled_head.alternate("the parameters as arguments")
def _(model: MiniGPT, backend):
    def scaled(x, weight, bias, t):
        return softmax(F.linear(x, weight, bias).div(t))

    fast = torch.compile(scaled, backend=backend, fullgraph=True)

    def head(x, temperature):
        layer = model.lm_head
        return fast(x, layer.weight, layer.bias, torch.as_tensor(temperature, dtype=x.dtype))

    return head


compiled_head.equivalent(
    ("/ temperature)", "/ temperature).float()"),
    ("torch.tensor(temperature))", "torch.tensor(temperature)).float()"),
    ("* inverse)", "* inverse).float()"),
    (".div(t))", ".div(t)).float()"),
    ("dtype=x.dtype))", "dtype=x.dtype)).float()"),
    (", dtype=x.dtype", ""),
    because="the head and its input are of float32",
)
compiled_head.equivalent(
    ("(1,)", "()"),
    (", fullgraph=True", ""),
    ("fullgraph=True", "fullgraph=False"),
    because="one number divides all logits, whatever its shape; without a break there is nothing "
    "that `fullgraph` refuses",
)
