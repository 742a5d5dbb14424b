"""Answers to lab 06, written blind: from the learner's notebook, lesson and `utils/` alone.

A wrong answer is a right one with an edit (or a cell of its own), and names the sentence of the
lab's text that it breaks.
"""

from tests.phases import bank_06_second
from tests.phases.bank import CODE, Bank

RIGHT: dict[str, dict[str, str]] = {}
WRONG: dict[str, list[tuple]] = {}

# --- 1 · What a backend gets ---------------------------------------------------------------------

RIGHT["reporting_backend"] = {
    "a loop over nodes": """
def reporting_backend(report: list):
    def shape(node):
        value = node.meta.get("example_value")
        return tuple(value.shape) if isinstance(value, torch.Tensor) else None

    def backend(gm, example_inputs):
        nodes = list(gm.graph.nodes)
        ops = []
        for node in nodes:
            if node.op == "call_function":
                ops.append((node.target.__name__, shape(node)))
            elif node.op == "call_method":
                ops.append((node.target, shape(node)))
        inputs = [shape(node) for node in nodes if node.op == "placeholder"]
        report.append({"ops": ops, "inputs": inputs, "outputs": len(nodes[-1].args[0])})
        return gm.forward

    return backend
""",
    "comprehensions, example inputs, torch.Size": """
def reporting_backend(report):
    def name(node):
        return node.target if isinstance(node.target, str) else node.target.__name__

    def backend(gm, example_inputs):
        *nodes, last = gm.graph.nodes
        report.append(dict(
            outputs=len(last.args[0]),
            inputs=[t.shape for t in example_inputs],
            ops=[(name(n), getattr(n.meta["example_value"], "shape", None)) for n in nodes if "call" in n.op],
        ))
        return gm

    return backend
""",
    "a class": """
class Reporter:
    def __init__(self, report):
        self.report = report

    def __call__(self, gm, inputs):
        entry = {"ops": [], "inputs": [], "outputs": 0}
        for node in gm.graph.nodes:
            match node.op:
                case "placeholder":
                    entry["inputs"] += [tuple(node.meta["example_value"].size())]
                case "output":
                    entry["outputs"] += len(node.args[0])
                case "call_function" | "call_method" as how:
                    value = node.meta["example_value"]
                    shape = None if not torch.is_tensor(value) else tuple(value.size())
                    name = node.target.__name__ if how == "call_function" else node.target
                    entry["ops"].append((name, shape))
        self.report.append(entry)
        return gm.forward


def reporting_backend(report: list):
    return Reporter(report)
""",
}
WRONG["reporting_backend"] = [
    (
        "functions alone",
        "or a method, which has its name for a target",
        'elif node.op == "call_method":',
        "elif False:",
    ),
    ("names of nodes", "whose name is its `__name__`", "node.target.__name__", "node.name"),
    (
        "the last graph alone",
        "appends one dictionary to the list",
        "report.append({",
        "report[:] = [{",
        "(nodes[-1].args[0])})",
        "(nodes[-1].args[0])}]",
    ),
    (
        "the output's arguments",
        "how many values the graph returns (a tuple of what is returned)",
        "len(nodes[-1].args[0])",
        "len(nodes[-1].args)",
    ),
    (
        "no tensor, no entry",
        "Where the result is not a tensor, the shape is None",
        "        inputs = [",
        "        ops = [op for op in ops if op[1] is not None]\n        inputs = [",
    ),
    (
        "shapes of a tuple's tensors",
        "Where the result is not a tensor, the shape is None",
        "isinstance(value, torch.Tensor) else None",
        "isinstance(value, torch.Tensor) else tuple(tuple(v.shape) for v in value)",
    ),
    (
        "the shape of what goes in",
        "the shape of its result",
        "ops.append((node.target.__name__, shape(node)))",
        "ops.append((node.target.__name__, shape(node.all_input_nodes[0])))",
    ),
    (
        "each operation once",
        "for each operation of the graph, in order",
        "        inputs = [",
        "        ops = list(dict.fromkeys(ops))\n        inputs = [",
    ),
    (
        "the first value alone comes back",
        "does what the graph says, no more and no less",
        "return gm.forward",
        "return lambda *given: gm(*given)[:1]",
    ),
    (
        "written at each run",
        "Each time that Dynamo hands it a graph",
        "        report.append({",
        "        entry = ({",
        "        return gm.forward",
        "        def run(*given):\n            report.append(entry)\n            return gm(*given)\n\n        return run",
    ),
]

# --- 2 · How many graphs? ------------------------------------------------------------------------

RIGHT["count_graphs"] = {
    "sets of what has been": """
def count_graphs(calls):
    graphs, found = [], []
    ranks, sizes, numbers = set(), {}, set()
    for shape, dtype, k in calls:
        fits = False
        for other, guards, number in graphs:
            same = other == dtype and len(guards) == len(shape) and number in (None, k)
            if same and all(s == g or (g is None and s > 1) for g, s in zip(guards, shape)):
                fits = True
        if not fits and len(graphs) < 8:
            ranks.add(len(shape))
            numbers.add(k)
            for i, size in enumerate(shape):
                sizes.setdefault(i, set()).add(size)
            guards = []
            for i, size in enumerate(shape):
                moving = len(ranks) > 1 or len(sizes[i]) > 1
                guards.append(None if moving and size > 1 else size)
            graphs.append((dtype, guards, None if len(numbers) > 1 else k))
        found.append(len(graphs))
    return found
""",
    "classes": """
from dataclasses import dataclass


@dataclass
class Graph:
    dtype: torch.dtype
    sizes: list
    k: object

    def takes(self, shape, dtype, k):
        if dtype != self.dtype or len(shape) != len(self.sizes):
            return False
        if self.k != "open" and self.k != k:
            return False
        for guard, size in zip(self.sizes, shape):
            if guard == "open":
                if size < 2:
                    return False
            elif guard != size:
                return False
        return True


def count_graphs(calls):
    graphs, answer = [], []
    first_shape = first_k = None
    any_rank = k_open = False
    open_sizes = set()
    for shape, dtype, k in calls:
        if len(graphs) < 8 and not any(g.takes(shape, dtype, k) for g in graphs):
            if first_shape is None:
                first_shape, first_k = shape, k
            any_rank |= len(shape) != len(first_shape)
            open_sizes |= {i for i, (a, b) in enumerate(zip(first_shape, shape)) if a != b}
            k_open |= k != first_k
            sizes = ["open" if n >= 2 and (any_rank or i in open_sizes) else n for i, n in enumerate(shape)]
            graphs.append(Graph(dtype, sizes, "open" if k_open else k))
        answer.append(len(graphs))
    return answer
""",
    "functional, and notes every call": """
from itertools import accumulate


def count_graphs(calls):
    def step(state, call):
        seen, graphs = state
        shape, dtype, k = call
        seen = seen + (call,)
        if len(graphs) == 8 or any(graph(*call) for graph in graphs):
            return seen, graphs
        ranks = {len(s) for s, _, _ in seen}
        free = [len(ranks) > 1 or len({s[i] for s, _, _ in seen}) > 1 for i in range(len(shape))]
        any_k = len({n for _, _, n in seen}) > 1

        def graph(s, d, n):
            fit = len(s) == len(shape) and all(
                a >= 2 if f and b >= 2 else a == b for a, b, f in zip(s, shape, free)
            )
            return fit and d == dtype and (any_k or n == k)

        return seen, graphs + (graph,)

    states = list(accumulate(calls, step, initial=((), ())))
    return [len(graphs) for _, graphs in states[1:]]
""",
}
WRONG["count_graphs"] = [
    (
        "open from 1",
        "An open size is any size from 2 up",
        "g is None and s > 1",
        "g is None and s > 0",
    ),
    ("open from 0", "An open size is any size from 2 up", "g is None and s > 1", "g is None"),
    (
        "made for 1, and yet open",
        "A size of 0 or 1 is exact in the graph that is made for it",
        "moving and size > 1",
        "moving",
    ),
    (
        "made for 0, and yet open",
        "A size of 0 or 1 is exact in the graph that is made for it",
        "moving and size > 1",
        "moving and size != 1",
    ),
    (
        "0 and 1 for k, too",
        "An open `k` is any number, 0 and 1 among them",
        "number in (None, k)",
        "(number == k or (number is None and k not in (0, 1)))",
    ),
    ("k is exact", "The same holds of `k`", "None if len(numbers) > 1 else k", "k"),
    ("no limit", "until there are eight", " and len(graphs) < 8", ""),
    ("nine", "until there are eight", "len(graphs) < 8", "len(graphs) <= 8"),
    (
        "sizes by dtype",
        "unless it was another number when an earlier graph was made",
        "setdefault(i,",
        "setdefault((dtype, i),",
        "sizes[i])",
        "sizes[dtype, i])",
    ),
    (
        "dimensions open nothing",
        "all of its sizes are open from then on",
        "len(ranks) > 1 or ",
        "",
        "setdefault(i,",
        "setdefault((len(shape), i),",
        "sizes[i])",
        "sizes[len(shape), i])",
    ),
    (
        "sizes alone, whatever the dimensions",
        "all of its sizes are open from then on",
        "len(ranks) > 1 or ",
        "",
    ),
    (
        "one graph before, no more",
        "when an earlier graph was made",
        "            numbers.add(k)\n",
        "            numbers = {k} if not graphs else {k, last}\n            last = k\n",
    ),
    (
        "all sizes open together",
        "a size is exact, unless it was another number",
        "len(sizes[i]) > 1",
        "any(len(s) > 1 for s in sizes.values())",
    ),
    (
        "k opens sizes",
        "When a graph is made, a size is exact, unless it was another number",
        "len(ranks) > 1 or ",
        "len(ranks) > 1 or len(numbers) > 1 or ",
    ),
    (
        "a dtype opens everything",
        "The same holds of `k`; unless it was another number",
        "None if len(numbers) > 1 else k",
        "None if graphs else k",
    ),
    (
        "older graphs open, too",
        "the graphs that are there keep their guards",
        "            graphs.append((dtype, guards",
        "            for _, old, _ in graphs:\n                for i, g in enumerate(old):\n                    if len(sizes.get(i, ())) > 1 and g and g > 1:\n                        old[i] = None\n            graphs.append((dtype, guards",
    ),
    ("dtypes are no guard", "Each graph has guards: the dtype of `x`", "other == dtype and ", ""),
    (
        "no memory",
        "or it is open",
        CODE,
        "def count_graphs(calls):\n    return [min(8, len(set(calls[:n + 1]))) for n in range(len(calls))]\n",
    ),
    (
        "remembers the last list",
        "A function `f(x, k)` is compiled and called several times: how many graphs there are after each",
        "def count_graphs(calls):\n    graphs, found = [], []\n    ranks, sizes, numbers = set(), {}, set()\n",
        "RANKS, SIZES, NUMBERS = set(), {}, set()\n\n\ndef count_graphs(calls):\n    graphs, found = [], []\n    ranks, sizes, numbers = RANKS, SIZES, NUMBERS\n",
    ),
]

# --- 3 · One graph each --------------------------------------------------------------------------

RIGHT["mended"] = {
    "where, three times": """
def gate(x: torch.Tensor) -> torch.Tensor:
    return torch.where(x.sum() > 0, 2 * x, x / 2)


def scale(x: torch.Tensor) -> torch.Tensor:
    largest = x.detach().abs().max()
    return x / torch.where(largest == 0, 1, largest)


def row_sums(x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    counts = torch.arange(x.shape[1]) < lengths[:, None]
    return torch.where(counts, x, 0).sum(1)
""",
    "factors and fills": """
def gate(x):
    positive = (x.sum() > 0).to(x.dtype)
    return x * (0.5 + 1.5 * positive)


def scale(x):
    with torch.no_grad():
        largest = x.abs().amax()
        largest = largest + (largest == 0)
    return x / largest


def row_sums(x, lengths):
    columns = torch.arange(x.size(1), device=x.device).expand_as(x)
    return x.masked_fill(columns >= lengths.unsqueeze(1), 0.0).sum(dim=-1)
""",
    "an index, a norm, a loop over rows": """
def gate(x):
    return torch.stack([x / 2, 2 * x])[(x.sum() > 0).long()]


def scale(x):
    largest = torch.linalg.vector_norm(x.detach(), ord=float("inf"))
    return torch.where(largest == 0, x, x / largest.masked_fill(largest == 0, 1))


def row_sums(x, lengths):
    place = torch.arange(x.shape[1])
    return torch.stack([torch.where(place < n, row, torch.zeros_like(row)).sum() for row, n in zip(x, lengths)])
""",
}
WRONG["mended"] = [
    ("each number is asked", "where the sum of all of x is positive", "x.sum() > 0", "x > 0"),
    (
        "zero counts as positive",
        "where the sum of all of x is positive",
        "x.sum() > 0",
        "x.sum() >= 0",
    ),
    (
        "the last dimension's sums",
        "where the sum of all of x is positive",
        "x.sum() > 0",
        "x.sum(-1, keepdim=True) > 0",
    ),
    (
        "a fetched number",
        "each is one graph",
        "x.detach().abs().max()",
        "x.abs().max().item()",
        "torch.where(largest == 0, 1, largest)",
        "(largest or 1)",
    ),
    (
        "the largest has a gradient",
        "the gradient of `x` is the one that the colleague's function gives",
        "x.detach().abs()",
        "x.abs()",
    ),
    (
        "divided before it is chosen",
        "the gradient of `x` ... on both sides of each branch",
        "return x / torch.where(largest == 0, 1, largest)",
        "return torch.where(largest == 0, x, x / largest)",
    ),
    (
        "zeros without a gradient",
        "the gradient of `x` ... on both sides of each branch",
        "return x / torch.where(largest == 0, 1, largest)",
        "return torch.where(largest == 0, torch.zeros_like(x), x / torch.where(largest == 0, 1, largest))",
    ),
    (
        "a small number is added",
        "It gives what the colleague's function gives",
        "torch.where(largest == 0, 1, largest)",
        "(largest + 1e-12)",
    ),
    ("small is zero", "That holds for any numbers", "largest == 0", "largest < 1e-12"),
    (
        "the largest, not of the absolute values",
        "the largest of its absolute values",
        ".abs().max()",
        ".max()",
    ),
    (
        "float32 for all",
        "`x` is of float32 or float64",
        "    largest = x.detach()",
        "    largest = x.detach().float()",
    ),
    (
        "times a mask",
        "What lies behind a row's length may be anything, infinity and NaN included",
        "torch.where(counts, x, 0).sum(1)",
        "(x * counts).sum(1)",
    ),
    (
        "one more",
        "each row's first `lengths[i]` numbers",
        "< lengths[:, None]",
        "<= lengths[:, None]",
    ),
    (
        "infinity is made finite",
        "It gives what the colleague's function gives ... for any numbers",
        "torch.where(counts, x, 0).sum(1)",
        "(torch.nan_to_num(x) * counts).sum(1)",
    ),
    (
        "the first row's length",
        "the first `lengths[i]` numbers of each row",
        "lengths[:, None]",
        "lengths[0]",
    ),
    (
        "sums in float32",
        "`x` is of float32 or float64",
        "torch.where(counts, x, 0).sum(1)",
        "torch.where(counts, x, 0).float().sum(1)",
    ),
]

# --- 4 · Your operator for every softmax ---------------------------------------------------------

RIGHT["softmax_backend"] = {
    "insert, replace, erase": """
def softmax_backend(op):
    def backend(gm, example_inputs):
        for node in list(gm.graph.nodes):
            function = node.op == "call_function" and node.target in (torch.softmax, F.softmax)
            method = node.op == "call_method" and node.target == "softmax"
            if not (function or method):
                continue
            args, kwargs = list(node.args), dict(node.kwargs)
            tensor = args[0] if args else kwargs["input"]
            dim = args[1] if len(args) > 1 else kwargs["dim"]
            dtype = args[2] if len(args) > 2 else kwargs.get("dtype")
            last = tensor.meta["example_value"].ndim - 1
            if dim not in (-1, last) or dtype is not None:
                continue
            with gm.graph.inserting_before(node):
                new = gm.graph.call_function(op, (tensor,))
                new.meta = dict(node.meta)
            node.replace_all_uses_with(new)
            gm.graph.erase_node(node)
        gm.recompile()
        return gm

    return backend
""",
    "changes the node itself": """
def _asked(input, dim=None, dtype=None, _stacklevel=3):
    return input, dim, dtype


def softmax_backend(op):
    def is_softmax(node):
        return node.target in ("softmax", torch.softmax, F.softmax) and node.op.startswith("call")

    def backend(gm, _):
        for node in filter(is_softmax, gm.graph.nodes):
            tensor, dim, dtype = _asked(*node.args, **node.kwargs)
            if dtype is None and dim % node.meta["example_value"].dim() == node.meta["example_value"].dim() - 1:
                node.op, node.target = "call_function", op
                node.args, node.kwargs = (tensor,), {}
        gm.graph.lint()
        gm.recompile()
        return gm.forward

    return backend
""",
    "a new graph, node by node": '''
def softmax_backend(op):
    def backend(gm, example_inputs):
        new, made = torch.fx.Graph(), {}
        for node in gm.graph.nodes:
            tensor = fitting(node)
            if tensor is None:
                made[node] = new.node_copy(node, lambda one: made[one])
            else:
                made[node] = new.call_function(op, (made[tensor],))
        return torch.fx.GraphModule(gm, new)

    return backend


def fitting(node):
    """The tensor whose softmax this node is, if the operator fits it."""
    if node.target != "softmax" and node.target is not torch.softmax and node.target is not F.softmax:
        return None
    given = dict(zip(("input", "dim", "dtype"), node.args)) | node.kwargs
    rank = len(given["input"].meta["example_value"].shape)
    if given.get("dtype") is None and given["dim"] in (-1, rank - 1):
        return given["input"]
    return None
''',
}
WRONG["softmax_backend"] = [
    (
        "not recompiled",
        "What the backend returns runs the changed graph (until `gm.recompile()`)",
        "        gm.recompile()\n",
        "",
    ),
    (
        "functions alone",
        "or of the method `softmax` of a tensor",
        "if not (function or method)",
        "if not function",
    ),
    (
        "torch.softmax alone",
        "a call of `torch.softmax`, of `F.softmax`",
        "in (torch.softmax, F.softmax)",
        "is torch.softmax",
    ),
    (
        "whatever has softmax in its name",
        "leaves everything else as it was",
        'node.target == "softmax"',
        '"softmax" in node.target',
    ),
    (
        "the dimension by position alone",
        "by position or by its name `dim`",
        'else kwargs["dim"]',
        "else None",
    ),
    ("-1 alone", "from the front or, negative, from the end", "dim not in (-1, last)", "dim != -1"),
    (
        "of a matrix",
        "where the dimension is the tensor's last",
        "dim not in (-1, last)",
        "dim not in (-1, 1)",
    ),
    (
        "any dimension",
        "`op` fits where the dimension is the tensor's last",
        "dim not in (-1, last) or dtype",
        "dtype",
    ),
    (
        "the first input's dimensions",
        "the dimension is the tensor's last",
        'tensor.meta["example_value"].ndim - 1',
        "example_inputs[0].ndim - 1",
    ),
    ("any dtype", "and no dtype is asked for", " or dtype is not None", ""),
    (
        "a dtype by name alone",
        "and no dtype is asked for",
        'args[2] if len(args) > 2 else kwargs.get("dtype")',
        'kwargs.get("dtype")',
    ),
    (
        "dtype=None is a dtype",
        "`dtype=None` asks for none",
        "or dtype is not None",
        'or len(args) > 2 or "dtype" in kwargs',
    ),
    (
        "the tensor by position alone",
        "the tensor may be given by its name as well",
        'args[0] if args else kwargs["input"]',
        "args[0]",
    ),
    (
        "one softmax",
        "It replaces each softmax in the graph",
        "            gm.graph.erase_node(node)\n",
        "            gm.graph.erase_node(node)\n            break\n",
    ),
    (
        "the first reader alone",
        "It replaces each softmax in the graph by a call of `op`",
        "            node.replace_all_uses_with(new)\n            gm.graph.erase_node(node)\n",
        "            list(node.users)[0].replace_input_with(node, new)\n",
    ),
    (
        "no gradient",
        "the gradient is that of `op`",
        "call_function(op, (tensor,))",
        "call_function(lambda x: op(x.detach()), (tensor,))",
    ),
    (
        "a softmax of a softmax has no notes",
        "It replaces each softmax in the graph (a node that you make has no notes)",
        "                new.meta = dict(node.meta)\n",
        "",
    ),
    (
        "torch's gradient",
        "the gradient is that of `op`",
        "call_function(op, (tensor,))",
        "call_function(lambda x: op(x).detach() + torch.softmax(x, -1) - torch.softmax(x, -1).detach(), (tensor,))",
    ),
]

# --- 5 · What is saved ---------------------------------------------------------------------------

RIGHT["saved"] = {
    "sets, and a walk": """
def reach(start, there):
    found, todo = set(), list(start)
    while todo:
        node = todo.pop()
        if node is not None and node not in found and node not in there:
            found.add(node)
            todo.extend(node.all_input_nodes)
    return found


def saved(joint: torch.fx.GraphModule, outputs: int) -> list[str]:
    nodes = list(joint.graph.nodes)
    results = nodes[-1].args[0]
    forward = reach(results[:outputs], set())
    inputs = {n for n in nodes if n.op == "placeholder" and not n.name.startswith("tangents")}
    backward = [n for n in nodes if n.op == "call_function" and n not in forward]
    read = {m for n in backward for m in n.all_input_nodes}
    read |= {n for n in results[outputs:] if n is not None}
    return [n.name for n in nodes if n in (forward | inputs) and n in read]


def computed_again(joint: torch.fx.GraphModule, wanted: list[str], kept: list[str]) -> list[str]:
    nodes = list(joint.graph.nodes)
    there = {n for n in nodes if n.op == "placeholder" or n.name in kept}
    again = reach([n for n in nodes if n.name in wanted], there)
    return [n.name for n in nodes if n in again]
""",
    "one sweep backwards": """
def sweep(graph, needed, stop=()):
    needed, out = set(needed), []
    for node in reversed(graph.nodes):
        if node.name in needed and node.name not in stop:
            out.insert(0, node)
            needed.update(one.name for one in node.all_input_nodes)
    return out


def saved(joint, outputs):
    last = next(iter(reversed(joint.graph.nodes)))
    forward = sweep(joint.graph, {n.name for n in last.args[0][:outputs] if n is not None})
    names = [n.name for n in forward]
    gradients = [n.name for n in last.args[0][outputs:] if n is not None]

    def counts(node):
        behind = any(u.op == "call_function" and u.name not in names for u in node.users)
        ours = node.name in names or (node.op == "placeholder" and "tangents" not in node.name)
        return ours and (behind or node.name in gradients)

    return [node.name for node in joint.graph.nodes if counts(node)]


def computed_again(joint, wanted, kept):
    found = sweep(joint.graph, wanted, kept)
    return [node.name for node in found if node.op != "placeholder"]
""",
    "recursion with names": """
def computed_again(joint, wanted, kept):
    by_name = {node.name: node for node in joint.graph.nodes}
    again = {}

    def want(name):
        node = by_name[name]
        if name in kept or name in again or node.op == "placeholder":
            return
        again[name] = True
        for source in node.all_input_nodes:
            want(source.name)

    for name in wanted:
        want(name)
    return sorted(again, key=list(by_name).index)


def saved(joint, outputs):
    (output,) = (node for node in joint.graph.nodes if node.op == "output")
    ends = output.args[0]
    forward = set(computed_again(joint, [end.name for end in ends[:outputs]], []))
    forward |= {n.name for n in joint.graph.nodes if n.op == "placeholder" and not n.name.startswith("tangents")}
    chosen = []
    for node in joint.graph.nodes:
        if node.name not in forward:
            continue
        if node in ends[outputs:] or any(r is not output and r.name not in forward for r in node.users):
            chosen.append(node.name)
    return chosen
""",
}
WRONG["saved"] = [
    (
        "tangents, too",
        "each node of the forward, inputs included (what is left are the inputs of the forward)",
        ' and not n.name.startswith("tangents")',
        "",
    ),
    (
        "no inputs",
        "each node of the forward, inputs included",
        "n in (forward | inputs) and n in read",
        'n in forward and n.op != "placeholder" and n in read',
    ),
    (
        "backward is what a tangent reaches",
        "A node belongs to the forward if something that the forward returns needs it",
        "    forward = reach(results[:outputs], set())\n",
        '    late = set()\n    for n in nodes:\n        if n.name.startswith("tangents") or late & set(n.all_input_nodes):\n            late.add(n)\n    forward = set(nodes) - late\n',
    ),
    (
        "what is returned is saved",
        "that is read by a node of the backward, or is one of the gradients",
        "n in read]",
        "(n in read or n in results[:outputs])]",
    ),
    (
        "the first output alone",
        "the first `outputs` of which are the forward's",
        "results[:outputs]",
        "results[:1]",
    ),
    (
        "the last output alone",
        "the first `outputs` of which are the forward's",
        "results[:outputs]",
        "results[outputs - 1 : outputs]",
    ),
    (
        "whoever reads it",
        "that is read by a node of the backward",
        'n.op == "call_function" and n not in forward]',
        'n.op == "call_function"]',
    ),
    (
        "alphabetical",
        "in the graph's order",
        "    return [n.name for n in nodes if n in (forward | inputs) and n in read]",
        "    return sorted(n.name for n in nodes if n in (forward | inputs) and n in read)",
    ),
    (
        "once for each reader",
        "each once",
        "    return [n.name for n in nodes if n in (forward | inputs) and n in read]",
        "    return [n.name for n in nodes if n in (forward | inputs) and n in read for m in backward if n in m.all_input_nodes]",
    ),
    (
        "kept ones are walked through",
        "and is not there must be computed again; what it reads is wanted, too",
        'there = {n for n in nodes if n.op == "placeholder" or n.name in kept}',
        'there = {n for n in nodes if n.op == "placeholder"}',
        "for n in nodes if n in again]",
        "for n in nodes if n in again and n.name not in kept]",
    ),
    (
        "inputs again",
        "besides the inputs, which are there anyway",
        'n.op == "placeholder" or n.name in kept',
        "n.name in kept",
    ),
    (
        "wanted ones alone",
        "and for that, what it reads is wanted, too",
        "    again = reach([n for n in nodes if n.name in wanted], there)\n",
        "    again = {n for n in nodes if n.name in wanted} - there\n",
    ),
    (
        "one step back",
        "what it reads is wanted, too",
        "    again = reach([n for n in nodes if n.name in wanted], there)\n",
        "    again = {n for n in nodes if n.name in wanted} - there\n    again |= {m for n in again for m in n.all_input_nodes} - there\n",
    ),
    (
        "wanted ones, though kept",
        "Each node that is wanted and is not there",
        "    return [n.name for n in nodes if n in again]",
        '    return [n.name for n in nodes if n in again or (n.name in wanted and n.op != "placeholder")]',
    ),
    (
        "in the order in which they are asked for",
        "in the graph's order",
        CODE,
        """
def saved(joint, outputs):
    nodes = list(joint.graph.nodes)
    results = nodes[-1].args[0]
    forward = set(computed_again(joint, [n.name for n in results[:outputs]], []))
    forward |= {n.name for n in nodes if n.op == "placeholder" and not n.name.startswith("tangents")}
    read = {m.name for n in nodes if n.op == "call_function" and n.name not in forward for m in n.all_input_nodes}
    read |= {n.name for n in results[outputs:] if n is not None}
    return [n.name for n in nodes if n.name in forward & read]


def computed_again(joint, wanted, kept):
    nodes, again = {n.name: n for n in joint.graph.nodes}, []

    def want(name):
        if name in kept or name in again or nodes[name].op == "placeholder":
            return
        for source in nodes[name].all_input_nodes:
            want(source.name)
        again.append(name)

    for name in wanted:
        want(name)
    return again
""",
    ),
]

# --- 6 · A fusion pass ---------------------------------------------------------------------------

RIGHT["fuse"] = {
    "the youngest maker": """
def fuse(nodes):
    kind = {name: what for name, what, _ in nodes}
    place, groups = {}, []
    for name, what, reads in nodes:
        makers = [place[r] for r in reads if r in place]
        at = max(makers, default=None)
        if at is not None:
            sums = [r for r in reads if place.get(r) == at and kind[r] == "reduction"]
            alone = what == "library" or kind[groups[at][0]] == "library"
            if sums or alone:
                at = None
        if at is None:
            at = len(groups)
            groups.append([])
        groups[at].append(name)
        place[name] = at
    return groups


def stored(nodes, groups, outputs):
    place = {name: number for number, group in enumerate(groups) for name in group}
    wanted = set(outputs)
    for name, _, reads in nodes:
        wanted |= {r for r in reads if r in place and place[r] != place[name]}
    return [name for name, _, _ in nodes if name in wanted]
""",
    "each group is asked, by the book": """
def fuse(nodes):
    kinds = {n[0]: n[1] for n in nodes}
    groups = []
    for name, kind, reads in nodes:
        for number in reversed(range(len(groups))):
            group = groups[number]
            younger = [member for later in groups[number + 1:] for member in later]
            if "library" in [kind] + [kinds[member] for member in group]:
                continue
            if not set(reads) & set(group):
                continue
            if any(member in reads and kinds[member] == "reduction" for member in group):
                continue
            if set(reads) & set(younger):
                continue
            group.append(name)
            break
        else:
            groups.append([name])
    return groups


def stored(nodes, groups, outputs):
    written = []
    for name, _, _ in nodes:
        (home,) = [group for group in groups if name in group]
        strangers = [other for other, _, reads in nodes if name in reads and other not in home]
        if strangers or name in outputs:
            written.append(name)
    return written
""",
}
WRONG["fuse"] = [
    (
        "past a younger maker",
        "it reads nothing that a younger group makes",
        CODE,
        """
def fuse(nodes):
    kinds = {n[0]: n[1] for n in nodes}
    groups = []
    for name, kind, reads in nodes:
        for group in reversed(groups):
            alone = "library" in [kind] + [kinds[member] for member in group]
            mine = [member for member in group if member in reads]
            if not alone and mine and not any(kinds[member] == "reduction" for member in mine):
                group.append(name)
                break
        else:
            groups.append([name])
    return groups


def stored(nodes, groups, outputs):
    place = {name: number for number, group in enumerate(groups) for name in group}
    wanted = set(outputs)
    for name, _, reads in nodes:
        wanted |= {r for r in reads if r in place and place[r] != place[name]}
    return [name for name, _, _ in nodes if name in wanted]
""",
    ),
    ("the oldest maker", "joins the youngest group that takes it", "max(makers", "min(makers"),
    (
        "the last group alone",
        "joins the youngest group that takes it",
        "        if at is not None:\n",
        "        if at is not None and at != len(groups) - 1:\n            at = None\n        if at is not None:\n",
    ),
    ("sums are known", "it reads no reduction of the group", "if sums or alone", "if alone"),
    (
        "no reduction is read at all",
        "it reads no reduction of the group",
        "place.get(r) == at and kind[r]",
        "kind.get(r)",
    ),
    (
        "a reduction closes its group",
        "a group takes a node if all of this holds: it reads no reduction of the group",
        "if sums or alone",
        'if alone or any(kind[n] == "reduction" for n in groups[at])',
    ),
    (
        "reductions begin groups",
        "the node is pointwise or a reduction",
        'what == "library" or',
        'what != "pointwise" or',
    ),
    (
        "a call of a library joins",
        "a call of a library is alone",
        'what == "library" or kind',
        "kind",
    ),
    (
        "joins a call of a library",
        "a call of a library is alone",
        ' or kind[groups[at][0]] == "library"',
        "",
    ),
    (
        "kinds by first letter: reduction in front",
        "and so are all in the group; it reads at least one node of the group",
        "makers = [place[r] for r in reads if r in place]",
        "makers = [place[r] for r in reads[:1] if r in place]",
    ),
    (
        "who reads the same input joins",
        "the node reads at least one node of the group",
        "        place[name] = at\n",
        "        place[name] = at\n        for r in reads:\n            if r not in kind:\n                place.setdefault(r, at)\n",
        "kind[r] ==",
        "kind.get(r) ==",
    ),
    (
        "outputs in their own order",
        "in the order of the nodes",
        "    return [name for name, _, _ in nodes if name in wanted]",
        "    return [name for name, _, _ in nodes if name in wanted and name not in outputs] + [n for n in outputs]",
    ),
    (
        "its own groups",
        "The groups are given, not necessarily yours",
        "enumerate(groups) for",
        "enumerate(fuse(nodes)) for",
    ),
    (
        "outputs are forgotten",
        "and those in the list `outputs`",
        "wanted = set(outputs)",
        "wanted = set()",
    ),
    (
        "whoever reads it",
        "those that a node of another group reads",
        "r in place and place[r] != place[name]",
        "r in place",
    ),
    (
        "only what a later group reads next",
        "those that a node of another group reads",
        "place[r] != place[name]",
        "place[r] + 1 == place[name]",
    ),
]

# --- 7 · Read what Inductor wrote ----------------------------------------------------------------

RIGHT["read_code"] = {
    "three patterns": """
def called(code, pattern):
    body = code.partition("def call(")[2]
    return re.findall(r"^\\s*(?:\\w+ = )?(" + pattern + r")\\(", body, re.M)


def launches(code: str) -> list[str]:
    return [name.removesuffix(".run") for name in called(code, r"(?:cpp_|triton_)\\w+(?:\\.run)?")]


def library_calls(code: str) -> list[str]:
    return called(code, r"(?:extern_kernels|torch\\.ops)[.\\w]+")


def reused(code: str) -> int:
    body = code.partition("def call(")[2]
    return len(re.findall(r"^\\s*\\w+ = .*# reuse\\s*$", body, re.M))
""",
    "lines, without patterns": """
def statements(code):
    lines = code[code.index("def call("):].splitlines()[1:]
    for line in lines:
        line = line.strip()
        if line.startswith("#"):
            continue
        head, middle, tail = line.partition(" = ")
        yield tail if middle and head.isidentifier() else line


def names(code):
    return [line.split("(")[0] for line in statements(code) if "(" in line]


def launches(code):
    found = [name[:-4] if name.endswith(".run") else name for name in names(code)]
    return [name for name in found if name.startswith(("cpp_", "triton_")) and name.isidentifier()]


def library_calls(code):
    return [name for name in names(code) if name.startswith(("extern_kernels.", "torch.ops."))]


def reused(code):
    return sum(line.endswith("# reuse") for line in statements(code))
""",
    "tuples of names": """
def called(code, *beginnings):
    body = code.partition("def call(")[2]
    found = (re.match(r"\\s*(?:\\w+ = )?([\\w.]+)\\(", line) for line in body.splitlines())
    return tuple(one[1] for one in found if one and one[1].startswith(beginnings))


def launches(code):
    return tuple(name.removesuffix(".run") for name in called(code, "cpp_", "triton_"))


def library_calls(code):
    return called(code, "extern_kernels.", "torch.ops.")


def reused(code):
    return sum(line.endswith("# reuse") for line in code.partition("def call(")[2].splitlines())
""",
}
WRONG["read_code"] = [
    (
        "the whole text",
        "which look at its function `call`",
        '    body = code.partition("def call(")[2]\n    return re.findall',
        "    body = code\n    return re.findall",
    ),
    (
        "a whole text's buffers",
        "which look at its function `call`",
        '    body = code.partition("def call(")[2]\n    return len',
        "    body = code\n    return len",
    ),
    (
        "each kernel once",
        "as often as they run",
        '    return [name.removesuffix(".run") for name in called(code, r"(?:cpp_|triton_)\\w+(?:\\.run)?")]',
        '    return list(dict.fromkeys(name.removesuffix(".run") for name in called(code, r"(?:cpp_|triton_)\\w+(?:\\.run)?")))',
    ),
    (
        "C++ first",
        "in the order in which they run",
        '    return [name.removesuffix(".run") for name in called(code, r"(?:cpp_|triton_)\\w+(?:\\.run)?")]',
        '    return called(code, r"cpp_\\w+") + [name.removesuffix(".run") for name in called(code, r"triton_\\w+\\.run")]',
    ),
    ("Triton's alone", "begins with `cpp_` or `triton_`", "(?:cpp_|triton_)", "triton_"),
    ("with .run", "the names of the kernels", 'name.removesuffix(".run")', "name"),
    (
        "fused ones alone",
        "whose name begins with `cpp_` or `triton_`",
        "(?:cpp_|triton_)\\w+",
        "(?:cpp|triton)\\w*_fused_\\w+",
    ),
    (
        "comments and names count",
        "the line after them says a name and calls nothing",
        '    return called(code, r"(?:extern_kernels|torch\\.ops)[.\\w]+")',
        '    return re.findall(r"(?:extern_kernels|torch\\.ops)[.\\w]+", code.partition("def call(")[2])',
    ),
    ("only at a line's beginning", "or stands behind a name and ` = `", "(?:\\w+ = )?", ""),
    (
        "mm and addmm",
        "a function of `extern_kernels`, or an operator",
        "(?:extern_kernels|torch\\.ops)[.\\w]+",
        "extern_kernels\\.(?:add)?mm|torch\\.ops[.\\w]+",
    ),
    (
        "extern_kernels alone",
        "or an operator of `torch.ops`",
        "(?:extern_kernels|torch\\.ops)",
        "extern_kernels",
    ),
    (
        "without default",
        "with their dots",
        '    return called(code, r"(?:extern_kernels|torch\\.ops)[.\\w]+")',
        '    return [name.removesuffix(".default") for name in called(code, r"(?:extern_kernels|torch\\.ops)[.\\w]+")]',
    ),
    (
        "the last part of the name",
        "with their dots",
        '    return called(code, r"(?:extern_kernels|torch\\.ops)[.\\w]+")',
        '    return [name.split(".")[1] for name in called(code, r"(?:extern_kernels|torch\\.ops)[.\\w]+")]',
    ),
    (
        "whether, not how many",
        "how many buffers get the memory of another",
        'return len(re.findall(r"^\\s*\\w+ = .*# reuse\\s*$", body, re.M))',
        'return int("# reuse" in body)',
    ),
    (
        "deleted ones",
        "how many buffers get the memory of another",
        "^\\s*\\w+ = .*# reuse\\s*$",
        "del buf\\w+",
    ),
    (
        "a function in the first column alone",
        "or, indented, with `def call`",
        'code.partition("def call(")[2]\n    return re.findall',
        'code.partition("\\ndef call(")[2]\n    return re.findall',
    ),
]

# --- 8 · The LM head, compiled -------------------------------------------------------------------

RIGHT["compiled_head"] = {
    "a function around it": """
def compiled_head(model: MiniGPT, backend):
    @torch.compile(backend=backend)
    def run(x, temperature):
        return softmax(model.lm_head(x) / temperature)

    def head(x, temperature):
        return run(x, torch.tensor(temperature))

    return head
""",
    "a module, and one number": """
class Head(torch.nn.Module):
    def __init__(self, linear):
        super().__init__()
        self.linear = linear

    def forward(self, x, cold):
        return softmax(self.linear(x) * cold)


def compiled_head(model, backend):
    inner = torch.compile(Head(model.lm_head), backend=backend, fullgraph=True)
    return lambda x, temperature: inner(x, torch.full((1,), 1 / temperature))
""",
    "parameters handed in": """
def compiled_head(model, backend):
    def probabilities(x, weight, bias, temperature):
        logits = F.linear(x, weight, bias)
        return softmax(torch.div(logits, temperature))

    quick = torch.compile(probabilities, backend=backend)

    def head(x, temperature):
        return quick(x, model.lm_head.weight, model.lm_head.bias, x.new_tensor(temperature))

    return head
""",
}
WRONG["compiled_head"] = [
    (
        "the float goes in",
        "the temperature is in every call another. Still there is one graph",
        "torch.tensor(temperature)",
        "temperature",
    ),
    (
        "a tensor inside",
        "Still there is one graph",
        "/ temperature)",
        "/ torch.tensor(temperature))",
        "run(x, torch.tensor(temperature))",
        "run(x, temperature)",
    ),
    (
        "torch's softmax",
        "The softmax is phase 05's operator",
        "return softmax(model.lm_head(x) / temperature)",
        "return torch.softmax(model.lm_head(x) / temperature, -1)",
    ),
    (
        "the operator outside",
        "and the operator is in it",
        "return softmax(model.lm_head(x) / temperature)",
        "return model.lm_head(x) / temperature",
        "return run(x, torch.tensor(temperature))",
        "return softmax(run(x, torch.tensor(temperature)))",
    ),
    (
        "copies",
        "the parameters that the model holds, and not copies",
        "    @torch.compile",
        "    w, b = (p.detach().clone().requires_grad_() for p in (model.lm_head.weight, model.lm_head.bias))\n\n    @torch.compile",
        "model.lm_head(x)",
        "F.linear(x, w, b)",
    ),
    (
        "multiplied",
        "divided by the temperature",
        "model.lm_head(x) / temperature",
        "model.lm_head(x) * temperature",
    ),
    (
        "x divided",
        "the logits that `model.lm_head` makes of `x`, divided by the temperature",
        "model.lm_head(x) / temperature",
        "model.lm_head(x / temperature)",
    ),
    ("another backend", "the `backend` that is given", "backend=backend", 'backend="eager"'),
    (
        "the first temperature",
        "in every call another",
        "    def head(x, temperature):\n        return run(x, torch.tensor(temperature))",
        "    first = []\n\n    def head(x, temperature):\n        first.append(torch.tensor(temperature))\n        return run(x, first[0])",
    ),
    (
        "not compiled",
        "the function is compiled with `torch.compile`",
        "    @torch.compile(backend=backend)\n",
        "",
    ),
    (
        "no gradients",
        "Gradients flow to `x` and to the weight and bias",
        "        return run(x",
        "        with torch.no_grad():\n            return run(x",
    ),
    (
        "a whole number of degrees",
        "the temperature is a positive float",
        "torch.tensor(temperature)",
        "torch.tensor(temperature, dtype=torch.int64)",
    ),
]

# One that was meant to be wrong and is right: what torch.compile is given, it compiles all the same.
RIGHT["mended"]["the gate is switched off, and torch.compile switches it on"] = next(
    iter(RIGHT["mended"].values())
).replace("def gate(", "@torch.compiler.disable\ndef gate(")

# Another: a gradient depends on what comes in, so none is a node of the forward.
_looks = "    read |= {n for n in results[outputs:] if n is not None}\n"
RIGHT["saved"]["gradients are not looked at"] = RIGHT["saved"]["sets, and a walk"].replace(_looks, "")

# --- Answers to what the table of rules, rules_06.py, found nothing for ---------------------------

WRONG["reporting_backend"] += [
    (
        "functions in front of methods",
        "for each operation of the graph, in order",
        "        report.append(",
        "        ops.sort(key=lambda op: hasattr(torch.Tensor, op[0]))\n        report.append(",
    ),
    (
        "inputs the other way round",
        "the shapes of what the graph takes, in order",
        '"inputs": inputs',
        '"inputs": inputs[::-1]',
    ),
]
RIGHT["reporting_backend"]["shapes are lists"] = RIGHT["reporting_backend"]["a loop over nodes"].replace(
    "tuple(value.shape)", "list(value.shape)"
)
WRONG["count_graphs"] += [
    (
        "a float is exact",
        "The same holds of `k`",
        "None if len(numbers) > 1 else k",
        "None if len(numbers) > 1 and isinstance(k, int) else k",
    ),
    (
        "the last number alone",
        "returns a list of as many numbers",
        "return found",
        "return found[-1:]",
    ),
]
WRONG["mended"] += [
    (
        "matrices alone",
        "In `gate` and `scale` it has any shape",
        "x.sum() > 0",
        "x.sum((0, 1)) > 0",
    ),
    (
        "small integers alone",
        "`lengths` has a whole number for each row, from 0 to the number of columns",
        "lengths[:, None]",
        "lengths.clamp(max=2)[:, None]",
    ),
]
WRONG["saved"] += [
    (
        "no place for None",
        "a place that has no gradient holds None",
        "if n is not None}",
        "if n.name}",
    ),
]
WRONG["compiled_head"] += [
    (
        "the logits outside",
        "one graph: `x` goes into it",
        "softmax(model.lm_head(x) / temperature)",
        "softmax(x)",
        "run(x, torch.tensor(temperature))",
        "run(model.lm_head(x) / temperature, None)",
    ),
    (
        "rows alone",
        "`x` has the shape (..., width)",
        "model.lm_head(x)",
        "torch.addmm(model.lm_head.bias, x, model.lm_head.weight.T)",
    ),
    (
        "a batch there must be",
        "`x` has the shape (..., width)",
        "softmax(model.lm_head(x) / temperature)",
        "softmax(model.lm_head(x.flatten(0, -2)) / temperature).unflatten(0, x.shape[:-1])",
    ),
    (
        "in half",
        "equal those of the same head without a compiler",
        "model.lm_head(x)",
        "model.lm_head(x).bfloat16().float()",
    ),
]

# What the check can't tell, or the tools refuse, and why. They are not judged.
OPEN: dict[tuple[str, str], str] = {}

BANK = Bank("06")
BANK.fill(RIGHT, WRONG, OPEN)
bank_06_second.add_to(BANK)
