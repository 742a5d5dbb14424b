"""Lab 06, exercise 9: The LM head, compiled"""

import torch

from hood.judge.checks.compare import Tolerance
from hood.judge.checks.exercise import Case, Check, Place, not_run
from utils.instruments.toolchain import inductor_lacks
from utils.softmax import softmax

compiled_head = Check(
    "compiled_head",
    parts={"values": 1, "gradients": 1, "one graph": 1, "Inductor": 1},
    reads="Guards: what a graph believes",
    reads_by_part={
        "gradients": "Forward and backward in one graph",
        "one graph": "When it breaks, and who says so",
        "Inductor": "Fusion, and the code",
    },
    tolerance=Tolerance(1e-5, 1e-5, "float32 sums in another order"),
)


@compiled_head.reference
def _(model, backend):
    """Traces with Dynamo and runs eagerly: Inductor's values are compared with the eager values."""

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
        # x is stored with its dimensions reversed, because the exercise does not say that x is
        # contiguous
        calls = [
            (draw.tensor(shape[::-1]).permute(*range(len(shape))[::-1]), one)
            for one in temperatures
        ]
        g = draw.tensor((*shape[:-1], words))
        how = {"inner": inner, "trained": trained}

        def play(subject):
            came = subject.drive("compiling:run_head", width, words, seed, calls, g, **how)
            if part == graph:
                return came["graphs"], came["operator"], came["hidden"]
            if part == inductor:
                subject.claim("which backend compiled it")
            both = came["values"], came["gradients"]
            return {values: both[:1], gradients: both[1:], inductor: both}[part]

        places = {
            "[0]": "There should be exactly one graph for all temperatures.",
            "[1]": "Phase 05's operator is in no graph.",
            "[2]": "No graph has the hidden states as an input.",
        }
        if part != graph:
            places = {}
            for at in range(len(calls)):
                if part != gradients:
                    places[f"[0][{at}]"] = f"the probabilities of call {at + 1}"
                if part != values:
                    for place, name in enumerate(("x", "the weight", "the bias")):
                        where = f"[{0 if part == gradients else 1}][{at}][{place}]"
                        places[where] = Place(
                            f"the gradient of {name} in call {at + 1}", returned=False
                        )
        shown = (
            f"x of shape {shape}, {words} words, temperatures {', '.join(map(str, temperatures))}"
        )
        shown += ", parameters that change in between" if trained else ""
        return Case(part, play, shown=shown, places=places)

    a, b, c = draw.shape(3)
    some = draw.sample((0.513, 0.837, 1.441, 2.119, 3.973), 3)
    yield asked(values, (2, a, c), b, [1.0, *some[:2]], trained=0.5)
    yield asked(values, (c,), b, some[1:])
    yield asked(gradients, (b, c), a, some[1:], trained=-0.25)
    yield asked(graph, (2, c), b, [1.0, *some, 1.0])
    # Inductor writes sizes as literals into its C++, so these sizes are the same in every run.
    if lack := inductor_lacks():
        yield not_run(inductor, f"needs a C++ compiler, and {lack}")
    else:
        yield asked(inductor, (2, 64), 600, some[:2], trained=0.125, inner="inductor")


# Points for right numbers from a wrong graph, and points for a right graph with wrong numbers.
NUMBERS, GRAPH = {"values": 1, "gradients": 1}, {"one graph": 1}
