"""Lab 06, exercise 1: What a backend gets"""

import torch

from utils.checks.exercise import Case, Check, Place, edited
from utils.checks.lab_solution import lab_solution

reporting_backend = Check(
    "reporting_backend",
    parts={"operations": 1, "inputs and outputs": 1, "several graphs": 1},
    reads="A graph is data",
)


@reporting_backend.reference
def _(report):
    class Noted(torch.fx.Interpreter):
        """Runs a graph, and writes down what really comes."""

        def run_node(self, node):
            value = super().run_node(node)
            shape = tuple(value.shape) if isinstance(value, torch.Tensor) else None
            if node.op == "placeholder":
                self.noted["inputs"].append(shape)
            elif node.op == "output":
                self.noted["outputs"] = len(value)
            elif node.op != "get_attr":
                name = node.target if node.op == "call_method" else node.target.__name__
                self.noted["ops"].append((name, shape))
            return value

    def backend(gm, example_inputs):
        noted = Noted(gm)
        noted.noted = {"ops": [], "inputs": []}
        with torch.no_grad():
            noted.run(*map(torch.ones_like, example_inputs))
        report.append(noted.noted)
        return gm

    return backend


@reporting_backend.cases
def _(draw):
    operations, ends, several = reporting_backend.parts

    def asked(part, keys, shown, steps, *tensors):
        def play(subject):
            came = subject.drive("compiling:report", steps, tensors[0], tensors[1:])
            graphs = [{key: graph[key] for key in keys} for graph in came["report"]]
            gradient = came["gradient"] if part == ends else None
            return (graphs if part == several else graphs[0]), came["results"], gradient

        others = {"inputs": "the inputs", "outputs": "the number of outputs"}
        places = {"[0]": "the list of reports", "[1]": "what the graphs return"}
        places["[2]"] = Place("the gradient of x through what the backend returned", returned=False)
        for at in range(1 + steps.count(("break",))):
            where = f"[0][{at}]" if part == several else "[0]"
            graph = f"graph {at + 1}: " if part == several else ""
            places[f"{where}['ops']"] = f"{graph}the list of operations"
            for op in range(len(steps)):
                places[f"{where}['ops'][{op}][0]"] = f"{graph}the name of operation {op + 1}"
                shape = Place(f"{graph}the shape beside operation {op + 1}", returned=False)
                places[f"{where}['ops'][{op}][1]"] = shape
            places |= {f"{where}['{key}']": graph + words for key, words in others.items()}
        words = ", ".join(step[0] for step in steps)
        return Case(part, play, shown=f"{shown}: {words}", places=places)

    a, b, c, d = draw.shape(4)
    x, first, second = draw.tensor((a, b)), draw.tensor((c, b)), draw.tensor((d, c))
    layers = [("linear",), ("gelu",), ("linear",), ("gelu",), ("scale", 0.5)]
    pieces = [("neg",), ("neg",), ("keep",), ("first", 2), ("exp",), ("sum", draw.choice((0, 1)))]
    yield asked(operations, ["ops"], "two layers", layers, x, first, second)
    yield asked(operations, ["ops"], "methods and chunks", pieces, draw.tensor((c, a, b)))
    total = [("neg",), ("sum", 0), ("scale", 2.0)]  # a tensor of no dimensions
    yield asked(operations, ["ops"], "down to one number", total, draw.tensor((a,)))
    yield asked(ends, ["inputs", "outputs"], "two layers", layers, x, first, second)
    kept = [("relu",), ("keep",), ("scale", 3.0), ("keep",), ("linear",)]
    yield asked(ends, ["inputs", "outputs"], "three results", kept, x, first)
    kinds = draw.sample((("relu",), ("neg",), ("exp",), ("gelu",), ("scale", 0.25)), 4)
    broken = [kinds[0], ("linear",), ("break",), kinds[1], ("break",), kinds[2], ("keep",), kinds[3]]
    yield asked(several, ["ops", "inputs", "outputs"], "two breaks, float64", broken, x.double(), first.double())


_backend = lab_solution(__name__, "reporting_backend")


def _misconception(name, explanation, earns, *edits):
    reporting_backend.misconception(name, explanation, earns=earns)(edited(_backend, *edits))


_misconception(
    "methods missed",
    "calls of methods, such as `neg` and `sum`, are missing among the operations.",
    1,
    ("elif node.op == 'call_method':", "elif node.op == 'call_module':"),
)
_misconception(
    "names of nodes",
    "the names are those of the nodes, which a graph numbers, and not those of the functions.",
    1,
    ("node.target.__name__", "node.name"),
)
_misconception(
    "the output counted as one",
    "the output node is counted, and not the values that it holds.",
    1,
    ("len(node.args[0])", "len(node.args)"),
)
_misconception(
    "shapes of the arguments",
    "the shape beside an operation is that of its argument, and not of its result.",
    1,
    ("(node.target.__name__, shape_of(node))", "(node.target.__name__, shape_of(node.args[0]))"),
)
_misconception(
    "one report for all graphs",
    "of several graphs the report has the last alone.",
    2,
    ("report.append(found)", "report[:] = [found]"),
)
_misconception(
    "no shape for a single number",
    "beside a tensor of no dimensions stands None, and its shape is ().",
    2,
    ("return tuple(value.shape) if isinstance(value, torch.Tensor) else None",
     "return getattr(value, 'shape', None) or None"),
)  # fmt: skip
_misconception(
    "without a gradient",
    "what the backend returns gives no gradient, which the graph does.",
    2,
    ("return gm.forward", "return torch.no_grad()(gm.forward)"),
)
_misconception(
    "nothing to call",
    "the backend returns nothing that could run in the graph's place.",
    0,
    ("return gm.forward", "pass"),
)
_misconception(
    "the inputs once more",
    "what the graph takes stands among its operations, too.",
    1,
    (
        "found['inputs'].append(shape_of(node))",
        "found['inputs'].append(shape_of(node))\n"
        "                found['ops'].append((node.target, shape_of(node)))",
    ),
)
_misconception(
    "parameters left out",
    "only the first of the inputs is reported, as if weights were a part of the graph.",
    1,
    ("if node.op == 'placeholder':", "if node.op == 'placeholder' and (not found['inputs']):"),
)


@reporting_backend.alternate("by comprehensions")
def _(report):
    def backend(gm, example_inputs):
        nodes = list(gm.graph.nodes)
        calls = [node for node in nodes if node.op.startswith("call")]
        shapes = [getattr(node.meta["example_value"], "shape", None) for node in calls]
        names = [getattr(node.target, "__name__", node.target) for node in calls]
        report.append(
            {
                "ops": [(n, s if s is None else tuple(s)) for n, s in zip(names, shapes)],
                "inputs": [tuple(one.shape) for one in example_inputs],
                "outputs": len(nodes[-1].args[0]),
            }
        )
        return gm

    return backend


@reporting_backend.alternate("as it runs, once")
def _(report):
    def backend(gm, inputs):
        found = {"ops": [], "inputs": [tuple(x.shape) for x in inputs], "outputs": 0}
        report.append(found)

        class Watch(torch.fx.Interpreter):
            def shape(self, value):
                return tuple(value.shape) if torch.is_tensor(value) else None

            def call_function(self, target, args, kwargs):
                value = super().call_function(target, args, kwargs)
                found["ops"].append((target.__name__, self.shape(value)))
                return value

            def call_method(self, target, args, kwargs):
                value = super().call_method(target, args, kwargs)
                found["ops"].append((target, self.shape(value)))
                return value

            def output(self, target, args, kwargs):
                found["outputs"] = len(args[0])
                return super().output(target, args, kwargs)

        return lambda *values: Watch(gm).run(*values)

    return backend


reporting_backend.equivalent(
    (", 'outputs': 0", ""),
    ("'outputs': 0", "'outputs_': 0"),
    ("'outputs': 0", "'outputs': 1"),
    ("'outputs': 0", "'outputs': -1"),
    ("args[0])", "args[-1])"),
    because="what stands there first is written over, and an output has one argument",
)
reporting_backend.equivalent(
    ("== 'placeholder'", ">= 'placeholder'"),
    ("== 'call_function'", "<= 'call_function'"),
    ("== 'call_method'", "<= 'call_method'"),
    ("elif node.op == 'output':", "elif True:"),
    ("== 'output'", "<= 'output'"),
    ("== 'output'", ">= 'output'"),
    ("startswith('call')", "startswith('call_')"),
    ("output(target, args, kwargs)", "output(args, args, kwargs)"),
    ("output(target, args, kwargs)", "output(target, args, args)"),
    because="these graphs have four kinds of nodes, told apart from the first to the last",
)
reporting_backend.equivalent(
    ("s if s is None else tuple(s)", "s"),
    ("return gm", "return gm.float()"),
    because="a torch.Size is a tuple, and these graphs hold no parameters of their own",
)
