"""Lab 06, exercise 1: What a backend gets"""

import torch

from hood.judge.checks.exercise import Case, Check, Place

reporting_backend = Check(
    "reporting_backend",
    parts={"operations": 1, "inputs and outputs": 1, "several graphs": 1},
    reads="A graph is data",
    reads_by_part={"several graphs": "When it breaks, and who says so"},
)


@reporting_backend.reference
def _(report):
    class Noted(torch.fx.Interpreter):
        """Runs a graph, and records the shapes of its values."""

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
    broken = [
        kinds[0],
        ("linear",),
        ("break",),
        kinds[1],
        ("break",),
        kinds[2],
        ("keep",),
        kinds[3],
    ]
    yield asked(
        several,
        ["ops", "inputs", "outputs"],
        "two breaks, float64",
        broken,
        x.double(),
        first.double(),
    )
