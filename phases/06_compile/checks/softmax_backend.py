"""Lab 06, exercise 4: Your operator for every softmax"""

import torch

from hood.judge.checks.compare import Tolerance
from hood.judge.checks.exercise import Case, Check
from utils.drivers.compiling import FORMS, calling, sharper
from utils.minigpt import MiniGPTConfig

softmax_backend = Check(
    "softmax_backend",
    parts={
        "functions": 1,
        "methods and modules": 1,
        "only where it fits": 2,
        "several in a graph": 1,
        "training": 1,
    },
    reads="A graph is data",
    reads_by_part={"training": "Forward and backward in one graph"},
    tolerance=Tolerance(1e-4, 1e-6, "float32 sums in another order"),
)


@softmax_backend.reference
def _(op):
    class Swaps(torch.fx.Transformer):
        """Copies a graph. A tensor's number of dimensions comes from its node's `meta`."""

        def run_node(self, node):
            if "softmax" in str(node.target) and "log" not in str(node.target):
                names = ["input", "dim"]
                if node.op == "call_method" or node.target is torch.softmax:
                    names.append("dtype")
                given = {**dict(zip(names, node.args, strict=False)), **node.kwargs}
                rank = given["input"].meta["example_value"].dim()
                if given.get("dtype") is None and given["dim"] % rank == rank - 1:
                    return self.new_graph_call(given["input"])
            return super().run_node(node)

        def new_graph_call(self, x):
            return torch.fx.Proxy(
                self.new_graph.call_function(op, (self.env[x].node,)), self.tracer
            )

    return lambda gm, example_inputs: Swaps(gm).transform()


FUNCTIONS = [form for form in FORMS if form.startswith(("torch.softmax", "F.softmax"))]
FUNCTIONS = [form for form in FUNCTIONS if "float64" not in form]
NAMED = [form for form in FUNCTIONS if "input=" in form]
NAMELESS = [form for form in FUNCTIONS if "input=" not in form]
METHODS = ["x.softmax(dim)", "x.softmax(dim=dim)", "nn.Softmax(dim)(x)", "nn.Softmax(dim=dim)(x)"]
NAMES = [f"{a}_{b}" for a in "abcdefgh" for b in "kmnpqrstuv"]
OTHERS = [form for form in FORMS if "log_" in form or "cumsum" in form]
TYPED = [form for form in FORMS if "float64" in form]


@softmax_backend.cases
def _(draw):
    functions, methods, fits, several, training = softmax_backend.parts

    def asked(part, shape, forms, dtype=torch.float32, *, gradient=False, words="", **how):
        x = draw.tensor(shape, dtype)
        g = draw.tensor(shape, dtype) if gradient else None

        chained = how.get("chained", False)
        others = (
            []
            if chained
            else [other(form, dim, x / (at + 1)) for at, (form, dim) in enumerate(forms)]
        )

        # The function comes as a text with random names. The text, or its graph, shows which calls
        # must be replaced, and how each one passes its arguments.
        text = calling(forms, chained, draw.sample(NAMES, len(forms)))
        again = how.get("again", False)

        def play(subject):
            came = subject.drive("compiling:replaced", text, x, g, again=again)
            facts = [not near(value, wrong) for value, wrong in zip(came["values"], others)]  # noqa: B905
            return came["values"] if not facts else {
                "facts": facts,
                "values": came["values"],
            }, came["gradient"]

        value = "[0]" if chained else "[0]['values']"
        places = {f"{value}[{at}]": f"{form}, dim {dim}" for at, (form, dim) in enumerate(forms)}
        for at, (form, dim) in enumerate(forms):
            whose = (
                "torch's own numbers: the call was not replaced"
                if fits_in(form, dim, x.dim())
                else ("the operator's numbers, although the operator can't replace this call")
            )
            places[f"[0]['facts'][{at}]"] = f"{form}, dim {dim}, gives {whose}."
        places["[1]"] = "the gradient of x"
        if how:
            words = "one after the other, " if chained else "the second graph of a backend, "
        return Case(part, play, shown=f"{words}x of shape {shape}", places=places)

    def fits_in(form, dim, rank):
        return form not in (*OTHERS, *TYPED) and dim % rank == rank - 1

    def other(form, dim, x):
        """The wrong result: of a form that must be replaced and is not, or the other way round."""
        stays, new = FORMS[form](x, dim), sharper(x)
        wrong = stays if fits_in(form, dim, x.dim()) else new
        return None if near(stays, new) else wrong

    def near(value, other):
        same = isinstance(value, torch.Tensor) and other is not None and value.shape == other.shape
        return same and torch.allclose(value.double(), other.double(), rtol=1e-4, atol=1e-6)

    def minigpt(config, seed, tokens):
        def play(subject):
            came = subject.drive("compiling:replaced_in_minigpt", config, seed, tokens)
            return came["probabilities"], came["gradients"]

        places = {"[0]": "the probabilities", "[1]": "the gradients"}
        return Case(training, play, shown="MiniGPT", places=places)

    a, b, c, d = draw.shape(4)
    for word, some in (("", NAMELESS), ("the tensor is given as `input`, ", NAMED)):
        forms = [(form, 2 - 3 * (at % 2)) for at, form in enumerate(some)]
        yield asked(functions, (a, b, c), forms, words=word)
    yield asked(
        methods,
        (a, b),
        [(form, 1 - 2 * (at % 2)) for at, form in enumerate(METHODS)],
        torch.float64,
    )
    yield asked(methods, (c,), [(form, -(at % 2)) for at, form in enumerate(METHODS)])
    mixed = [("x.softmax(dim)", 1), ("x[None].softmax(dim + 1)[0]", 1), ("x.softmax(dim=dim)", -1)]
    yield asked(methods, (a, b), mixed)

    untyped, one = [*FUNCTIONS, *METHODS], ("torch.softmax(x, dim=dim)", -1)
    # Only these forms are drawn. A mistake with `input` or `dtype=None` would otherwise cost
    # another part by chance.
    plain = [form for form in untyped if "input=" not in form and "None" not in form]
    yield asked(fits, (a, b, c), [one, *((draw.choice(plain), dim) for dim in (0, 1, -2, -3))])
    yield asked(fits, (a, b), [*((form, draw.choice((0, -2))) for form in untyped), one])
    for dtype in (torch.float32, torch.float64):  # the second is the one that it asks for
        yield asked(fits, (a, b), [*((form, 1) for form in TYPED), one], dtype)
    yield asked(fits, (b, a, d), [one, *((form, draw.choice((2, -1))) for form in OTHERS)])

    # in every run, one dimension is given by position and one by name
    forms = [("x.softmax(dim)", 1), one]
    forms += [
        (draw.choice([form for form in plain if form.startswith(kind)]), dim)
        for kind, dim in (("F.", 1), ("nn.", -1))
    ]
    yield asked(several, (c, d), [*forms[:2], ("x.cumsum(dim)", 1), *forms[2:]], chained=True)
    yield asked(several, (a, c), forms, again=True)
    yield asked(several, (a, c), [(form, at % 2) for at, (form, _) in enumerate(forms * 2)])

    yield asked(training, (b, d), [one, (draw.choice(plain), 0)], gradient=True)
    tokens = torch.tensor([[draw.integer(0, 6) for _ in range(4)]])
    yield minigpt(MiniGPTConfig(7, 4, 2, 1, 8, 4), draw.integer(0, 2**31), tokens)
