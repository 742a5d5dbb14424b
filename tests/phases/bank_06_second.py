"""A second bank of lab 06, written from the lesson and the released lab alone.

``RIGHT`` are answers in other styles than the first bank has. ``WRONG`` are edits of the lab's own
solution that are right for each visible example; each breaks the sentence beside it.
"""

from __future__ import annotations

from tests.phases.bank import Bank

RIGHT = {
    ("count_graphs", "it learns at every call, and cuts off at eight"): r"""
from dataclasses import dataclass, field


@dataclass
class Seen:
    ranks: set = field(default_factory=set)
    sizes: dict = field(default_factory=dict)
    numbers: set = field(default_factory=set)

    def learn(self, shape, k):
        self.ranks.add(len(shape))
        self.numbers.add(k)
        for place, size in enumerate(shape):
            self.sizes.setdefault(place, set()).add(size)

    def guards(self, shape, dtype, k):
        loose = len(self.ranks) > 1
        sizes = tuple(
            "*" if size > 1 and (loose or len(self.sizes[place]) > 1) else size
            for place, size in enumerate(shape)
        )
        return dtype, sizes, "*" if len(self.numbers) > 1 else k


def possible(shape, dtype, k):
    patterns = [()]
    for size in shape:
        patterns = [(*p, s) for p in patterns for s in ({size, "*"} if size > 1 else {size})]
    return {(dtype, p, n) for p in patterns for n in (k, "*")}


def count_graphs(calls, limit=8):
    seen, graphs, counts = Seen(), set(), []
    for shape, dtype, k in calls:
        seen.learn(shape, k)
        if graphs.isdisjoint(possible(shape, dtype, k)):
            graphs.add(seen.guards(shape, dtype, k))
        counts.append(min(len(graphs), limit))
    return counts
""",
    ("mended", "column by column"): r"""
def gate(x):
    positive = torch.gt(torch.sum(x), 0)
    return torch.stack([x / 2, 2 * x])[positive.long()]


def scale(x):
    flat = x.detach().reshape(-1)
    low, high = flat.aminmax()
    largest = torch.maximum(-low, high)
    return x.div(largest.masked_fill(largest.eq(0), 1.0))


def row_sums(x, lengths):
    total = x.new_zeros(x.size(0))
    for j, column in enumerate(x.unbind(1)):
        total = total + column.masked_fill(lengths <= j, 0)
    return total
""",
    ("softmax_backend", "a graph of its own"): r"""
def softmax_backend(op):
    def softmax_of(node):
        if node.op == "call_method" and node.target == "softmax":
            names = ("input", "dim", "dtype")
        elif node.op == "call_function" and node.target is torch.softmax:
            names = ("input", "dim", "dtype")
        elif node.op == "call_function" and node.target is F.softmax:
            names = ("input", "dim", "_stacklevel", "dtype")
        else:
            return None
        return {"dtype": None, **dict(zip(names, node.args)), **node.kwargs}

    def backend(gm, example_inputs):
        graph, copies = torch.fx.Graph(), {}
        for node in gm.graph.nodes:
            found = softmax_of(node)
            if found and found["dtype"] is None:
                size = len(found["input"].meta["example_value"].shape)
                if found["dim"] - size == -1 or found["dim"] == -1:
                    copies[node] = graph.call_function(op, (copies[found["input"]],))
                    continue
            copies[node] = graph.node_copy(node, lambda old: copies[old])
        return torch.fx.GraphModule(gm, graph)

    return backend
""",
    ("saved", "in one pass from the end, with recursion for the other"): r"""
def saved(joint, outputs):
    *nodes, output = joint.graph.nodes
    needed = {id(node) for node in output.args[0][:outputs]}
    for node in reversed(nodes):
        if id(node) in needed:
            needed |= {id(other) for other in node.all_input_nodes}

    def in_backward(node):
        return node.op == "call_function" and id(node) not in needed

    return [
        node.name
        for node in nodes
        if not in_backward(node)
        and not (node.op == "placeholder" and node.name.startswith("tangents"))
        and any(map(in_backward, node.users))
    ]


def computed_again(joint, wanted, kept):
    marks = {}

    def visit(node):
        if node.name in marks:
            return
        marks[node.name] = there = node.op == "placeholder" or node.name in kept
        if not there:
            for other in node.all_input_nodes:
                visit(other)

    for node in joint.graph.nodes:
        if node.name in wanted:
            visit(node)
    return [node.name for node in joint.graph.nodes if marks.get(node.name) is False]
""",
    ("read_code", "three expressions over the text from `def call`"): r"""
def launches(code):
    code = code[code.index("def call") :]
    return re.findall(r"^[ ]*(?:\w+ = )?((?:cpp|triton)_\w+)(?:\.run)?\(", code, flags=re.M)


def library_calls(code):
    code = code[code.index("def call") :]
    return re.findall(r"^[ ]*(?:\w+ = )?((?:extern_kernels|torch\.ops)(?:\.\w+)+)\(", code, flags=re.M)


def reused(code):
    code = code[code.index("def call") :]
    return len(re.findall(r"# reuse$", code, flags=re.M))
""",
}

WRONG = (
    (
        "reporting_backend",
        "what it returns runs detached",
        "a compiled function gives the same as before, gradients included",
        ("return gm.forward", "return lambda *inputs: [one.detach() for one in gm(*inputs)]"),
    ),
    (
        "count_graphs",
        "no call at all",
        "it returns a list of as many numbers",
        ("    graphs, found = [], []", "    graphs, found = [], []\n    calls[0]"),
    ),
    (
        "count_graphs",
        "a tensor of no dimensions is no graph yet",
        "Once `x` had another number of dimensions than before, all of its sizes are open",
        ("ranks.add(len(shape))", "ranks |= {len(shape)} if shape else set()"),
    ),
    (
        "mended",
        "a NaN is not at most 0",
        "Twice x where the sum of all of x is positive, otherwise half of x",
        ("torch.where(x.sum() > 0, 2 * x, x / 2)", "torch.where(x.sum() <= 0, x / 2, 2 * x)"),
    ),
    (
        "mended",
        "the columns are those of a matrix",
        "In `gate` and `scale` it has any shape",
        ("x.detach().abs().max()", "x.detach().abs().max(0).values.max(0).values"),
    ),
    (
        "softmax_backend",
        "the rank of the first is that of all",
        "`op` fits where the dimension is the tensor's last",
        (
            "        for node in list(gm.graph.nodes):",
            '        called = [n for n in gm.graph.nodes if "softmax" in str(n.target)]\n'
            "        for node in list(gm.graph.nodes):",
        ),
        ('x.meta["example_value"].dim()', 'called[0].meta["example_value"].dim()'),
    ),
    (
        "softmax_backend",
        "once for all graphs",
        "In each graph that it is handed, it replaces each softmax",
        ("    def backend(gm", "    done = set()\n\n    def backend(gm"),
        (
            '            x = values["input"]',
            '            x = values["input"]\n            dtype = dtype or ("done" if node.name in done else None)\n            done.add(node.name)',
        ),
    ),
    (
        "saved",
        "three steps back",
        "for that, what it reads is wanted, too",
        (
            "    again = needed([node for node in joint.graph.nodes if node.name in wanted], kept)",
            "    again = {node for node in joint.graph.nodes if node.name in {*wanted} - {*kept}}\n"
            "    for _ in range(3):\n"
            "        again |= {m for n in again for m in n.all_input_nodes if m.name not in kept}",
        ),
    ),
    (
        "fuse",
        "an input that is an output is stored",
        "No input is among them, not even one that is an output",
        (
            "return [name for name, _, _ in nodes if name in read or name in outputs]",
            "made = [name for name, _, _ in nodes if name in read or name in outputs]\n"
            "    return [name for name in outputs if name not in place] + made",
        ),
    ),
    (
        "read_code",
        "`call` is a method",
        "from the line that begins with `def call` or, indented, with `def call`",
        ('body = code.partition("def call(")[2]', 'body = code[code.index("    def call(") :]'),
    ),
    (
        "compiled_head",
        "rows that lie one behind another",
        "`x` has the shape (..., width)",
        (
            "softmax(model.lm_head(x) / temperature)",
            "softmax(model.lm_head(x.view(-1, x.shape[-1])) / temperature).view(*x.shape[:-1], -1)",
        ),
    ),
    (
        "compiled_head",
        "a temperature with two decimals",
        "the temperature is a positive float, in every call another",
        ("torch.tensor(temperature)", "torch.tensor(round(temperature, 2))"),
    ),
)


def add_to(bank: Bank) -> None:
    """Add all of them to the bank of the lab."""
    for (exercise, name), code in RIGHT.items():
        bank.right(exercise, name, code=code)
    for exercise, name, breaks, *edits in WRONG:
        bank.wrong(exercise, name, *edits, breaks=breaks)
