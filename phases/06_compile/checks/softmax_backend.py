"""Lab 06, exercise 4: Your operator for every softmax"""

import torch
from torch.nn import functional as F

from utils.checks.compare import Tolerance
from utils.checks.exercise import Case, Check, edited
from utils.checks.lab_solution import lab_solution
from utils.drivers.compiling import FORMS, sharper
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
    tolerance=Tolerance(1e-4, 1e-6, "float32 sums in another order"),
)


@softmax_backend.reference
def _(op):
    class Swaps(torch.fx.Transformer):
        """Copies a graph; what it meets on the way tells how many dimensions a tensor has."""

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
            return torch.fx.Proxy(self.new_graph.call_function(op, (self.env[x].node,)), self.tracer)

    return lambda gm, example_inputs: Swaps(gm).transform()


FUNCTIONS = [form for form in FORMS if form.startswith(("torch.softmax", "F.softmax"))]
FUNCTIONS = [form for form in FUNCTIONS if "float64" not in form]
NAMED = [form for form in FUNCTIONS if "input=" in form]
NAMELESS = [form for form in FUNCTIONS if "input=" not in form]
METHODS = ["x.softmax(dim)", "x.softmax(dim=dim)", "nn.Softmax(dim)(x)", "nn.Softmax(dim=dim)(x)"]
OTHERS = [form for form in FORMS if "log_" in form or "cumsum" in form]
TYPED = [form for form in FORMS if "float64" in form]


@softmax_backend.cases
def _(draw):
    functions, methods, fits, several, training = softmax_backend.parts

    def asked(part, shape, forms, dtype=torch.float32, *, gradient=False, words="", **how):
        x = draw.tensor(shape, dtype)
        g = draw.tensor(shape, dtype) if gradient else None

        chained = how.get("chained", False)
        others = [] if chained else [other(form, dim, x / (at + 1)) for at, (form, dim) in enumerate(forms)]

        def play(subject):
            came = subject.drive("compiling:replaced", forms, x, g, **how)
            facts = [not near(value, wrong) for value, wrong in zip(came["values"], others)]  # noqa: B905
            return came["values"] if not facts else {"facts": facts, "values": came["values"]}, came["gradient"]

        value = "[0]" if chained else "[0]['values']"
        places = {f"{value}[{at}]": f"{form}, dim {dim}" for at, (form, dim) in enumerate(forms)}
        for at, (form, dim) in enumerate(forms):
            whose = "torch's own numbers, as where it is not replaced" if fits_in(form, dim, x.dim()) else (
                "the operator's numbers, where the operator doesn't fit"
            )
            places[f"[0]['facts'][{at}]"] = f"{form}, dim {dim}, gives {whose}."
        places["[1]"] = "the gradient of x"
        if how:
            words = "one after the other, " if chained else "the second graph of a backend, "
        return Case(part, play, shown=f"{words}x of shape {shape}", places=places)

    def fits_in(form, dim, rank):
        return form not in (*OTHERS, *TYPED) and dim % rank == rank - 1

    def other(form, dim, x):
        """What comes out if a form stays that is to be replaced, or the other way round."""
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
    yield asked(methods, (a, b), [(form, 1 - 2 * (at % 2)) for at, form in enumerate(METHODS)], torch.float64)
    yield asked(methods, (c,), [(form, -(at % 2)) for at, form in enumerate(METHODS)])
    mixed = [("x.softmax(dim)", 1), ("x[None].softmax(dim + 1)[0]", 1), ("x.softmax(dim=dim)", -1)]
    yield asked(methods, (a, b), mixed)

    untyped, one = [*FUNCTIONS, *METHODS], ("torch.softmax(x, dim=dim)", -1)
    yield asked(fits, (a, b, c), [one, *((draw.choice(untyped), dim) for dim in (0, 1, -2, -3))])
    yield asked(fits, (a, b), [*((form, draw.choice((0, -2))) for form in untyped), one])
    for dtype in (torch.float32, torch.float64):  # the second is the one that it asks for
        yield asked(fits, (a, b), [*((form, 1) for form in TYPED), one], dtype)
    yield asked(fits, (b, a, d), [one, *((form, draw.choice((2, -1))) for form in OTHERS)])

    forms = [
        (draw.choice([form for form in untyped if form.startswith(kind)]), dim)
        for kind, dim in (("x.", 1), ("torch.", -1), ("F.", 1), ("nn.", -1))
    ]
    yield asked(several, (c, d), [*forms[:2], ("x.cumsum(dim)", 1), *forms[2:]], chained=True)
    yield asked(several, (a, c), forms, again=True)
    yield asked(several, (a, c), [(form, at % 2) for at, (form, _) in enumerate(forms * 2)])

    yield asked(training, (b, d), [one, (draw.choice(untyped), 0)], gradient=True)
    tokens = torch.tensor([[draw.integer(0, 6) for _ in range(4)]])
    yield minigpt(MiniGPTConfig(7, 4, 2, 1, 8, 4), draw.integer(0, 2**31), tokens)


_make = lab_solution(__name__, "softmax_backend")


def _misconception(name, explanation, earns, *edits):
    softmax_backend.misconception(name, explanation, earns=earns)(edited(_make, *edits))


_misconception(
    "functions alone",
    "a softmax that is called as a method stays.",
    4,
    ("('call_method', 'softmax')", "('call_method', 'no such')"),
)
_misconception(
    "torch.softmax alone",
    "a softmax that is called as F.softmax, as nn.Softmax does, stays.",
    3,
    ("node.target in (torch.softmax, F.softmax)", "node.target is torch.softmax"),
)
_misconception(
    "any dimension",
    "a softmax over another dimension than the last is replaced as well.",
    2,
    (" and values['dim'] in (-1, x.meta['example_value'].dim() - 1)", ""),
)
_misconception(
    "-1 alone",
    "the last dimension is known by -1 alone, and not by its number from the front.",
    3,
    ("in (-1, x.meta['example_value'].dim() - 1)", "== -1"),
)
_misconception(
    "1 taken for the last",
    "dimension 1 is taken for the last, however many there are.",
    2,
    ("x.meta['example_value'].dim() - 1", "1"),
)
_misconception(
    "the dtype overlooked",
    "a softmax that is asked for another dtype is replaced, and the dtype is lost.",
    4,
    ("dtype is None and ", ""),
)
_misconception(
    "a dtype by position overlooked",
    "a dtype that is given by position is lost.",
    4,
    ("dtype = node.args[2]", "dtype = None"),
)
_misconception(
    "its own dtype taken for none",
    "a softmax that is asked for the dtype that the tensor has already is replaced.",
    4,
    ("dtype is None and", "dtype in (None, x.meta['example_value'].dtype) and"),
)
_misconception(
    "the rank of the graph's input",
    "the last dimension is that of what goes into the graph, and not that of the softmax's tensor.",
    5,
    ("x.meta['example_value'].dim()", "example_inputs[0].dim()"),
)
_misconception(
    "the last but one from the end",
    "a negative dimension is taken for the last, whichever it is.",
    4,
    ("values['dim'] in (-1, x.meta['example_value'].dim() - 1)",
     "not 0 <= values['dim'] < x.meta['example_value'].dim() - 1"),
)  # fmt: skip
_misconception(
    "two readers",
    "a softmax whose result is read twice stays.",
    5,
    ("if dtype is None and", "if dtype is None and len(node.users) < 2 and"),
)
_misconception(
    "behind its own node",
    "a softmax of what the operator returned stays: the new node has no note of its dimensions.",
    5,
    ("new.meta = node.meta", "pass"),
    ("x = values['input']", "x = values['input']\n            if 'example_value' not in x.meta:\n                continue"),
)
_misconception(
    "the first of several",
    "one softmax of a graph is replaced, and the others stay.",
    2,
    ("gm.graph.erase_node(node)", "gm.graph.erase_node(node)\n                break"),
)
_misconception(
    "the code not made anew",
    "no softmax is replaced in what runs, as where a graph is changed and its code is not made anew.",
    0,
    ("gm.recompile()", "pass"),
)
_misconception(
    "without a gradient",
    "what comes out has no gradient.",
    5,
    ("return gm.forward", "return torch.no_grad()(gm.forward)"),
)
_misconception(
    "the operator on top",
    "the operator is called on what the softmax returned.",
    0,
    ("gm.graph.call_function(op, (x,))", "gm.graph.call_function(op, (gm.graph.node_copy(node),))"),
)
_misconception(
    "log_softmax, too",
    "a log_softmax is replaced as well, and its logarithm is lost.",
    4,
    ("(node.op, node.target) != ('call_method', 'softmax')",
     "'softmax' not in str(node.target)"),
)  # fmt: skip


@softmax_backend.alternate("each node's target exchanged where it stands")
def _(op):
    def dims(node):
        return node.meta["example_value"].dim()

    def at_last(input, dim, dtype=None, **_):
        return dtype is None and (dim == -1 or dim == dims(input) - 1)

    def backend(gm, inputs):
        for node in gm.graph.nodes:
            names = ("input", "dim", "dtype")
            if node.op == "call_function" and node.target is F.softmax:
                names = ("input", "dim", "_stacklevel", "dtype")
            elif not (
                node.op == "call_function"
                and node.target is torch.softmax
                or node.op == "call_method"
                and node.target == "softmax"
            ):
                continue
            given = dict(zip(names, node.args)) | dict(node.kwargs)
            if at_last(**given):
                node.op, node.target, node.args, node.kwargs = "call_function", op, (given["input"],), {}
        gm.recompile()
        return gm

    return backend


@softmax_backend.alternate("an interpreter that decides as it runs")
def _(op):
    class Run(torch.fx.Interpreter):
        def call_function(self, target, args, kwargs):
            if target is torch.softmax or target is F.softmax:
                return self.one(target, *args, **kwargs)
            return super().call_function(target, args, kwargs)

        def call_method(self, target, args, kwargs):
            if target == "softmax":
                return self.one(torch.softmax, *args, **kwargs)
            return super().call_method(target, args, kwargs)

        def one(self, target, input, dim, *more, **kwargs):
            dtypes = [value for value in (*more, *kwargs.values()) if isinstance(value, torch.dtype)]
            if not dtypes and dim in (-1, input.dim() - 1):
                return op(input)
            return target(input, dim, *more, **kwargs)

    return lambda gm, inputs: Run(gm).run


softmax_backend.equivalent(
    ("list(gm.graph.nodes)", "gm.graph.nodes"),
    ("node.op == 'call_function' and node.target", "node.target"),
    ("node.op == 'call_function' and node.target", "node.op <= 'call_function' and node.target"),
    ("node.op == 'call_function' and node.target", "node.op >= 'call_function' and node.target"),
    ("(torch.softmax, F.softmax)", "(F.softmax, torch.softmax)"),
    ("dim == dims(input)", "dim >= dims(input)"),
    because="no other kind of node has such a target, and torch's graphs may be walked while nodes "
    "are erased",
)
softmax_backend.equivalent(
    ("gm.graph.erase_node(node)", "pass"),
    ("gm.graph.erase_node(node)", "gm.graph"),
    ("gm.graph.erase_node(node)", "node"),
    because="what nobody reads any more costs time and changes no number",
)
softmax_backend.equivalent(
    ("node.target is not F.softmax and len(node.args) > 2", "len(node.args) > 2"),
    ("dtype = node.args[2]", "dtype = node.args[1]"),
    ("names = ('input', 'dim', '_stacklevel', 'dtype')", "pass"),
    ("'_stacklevel', 'dtype')", "'dtype')"),
    ("'_stacklevel', 'dtype')", "'_stacklevel')"),
    ("'_stacklevel', 'dtype')", "'dtype', '_stacklevel')"),
    ("'_stacklevel'", "'_stacklevel_'"),
    ("'_stacklevel', 'dtype'", "'_stacklevel', 'dtype_'"),
    because="F.softmax takes a dtype by position only behind an argument that nobody gives; and "
    "whatever is no None keeps the softmax",
)
softmax_backend.equivalent(
    ("(-1, x.meta['example_value'].dim() - 1)", "(x.meta['example_value'].dim() - 1, -1)"),
    ("(-1, input.dim() - 1)", "(input.dim() - 1, -1)"),
    ("(*more, *kwargs.values())", "(*kwargs.values(), *more)"),
    ("(node.op == 'call_method' and node.target == 'softmax')", "node.target == 'softmax'"),
    ("node.op == 'call_method' and", "node.op <= 'call_method' and"),
    ("node.op == 'call_method' and", "node.op >= 'call_method' and"),
    ("dict(node.kwargs)", "node.kwargs"),
    ("return gm", "return gm.float()"),
    because="an order that nothing depends on; a function is never a string; the graphs hold no "
    "parameters",
)
