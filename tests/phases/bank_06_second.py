"""A second bank of lab 06, written from the lesson and the released lab alone."""

from __future__ import annotations

from tests.phases.bank import CODE, Bank

RIGHT: dict[str, dict[str, str]] = {}
WRONG: dict[str, list[tuple[str, ...]]] = {}

# ------------------------------------------------------------------ 1, what a backend gets
RIGHT["reporting_backend"] = {
    "plain": """
def reporting_backend(report: list):
    def shape_of(node):
        value = node.meta.get("example_value")
        if not isinstance(value, torch.Tensor):
            return None
        return tuple(value.shape)

    def backend(gm, example_inputs):
        ops, inputs, outputs = [], [], 0
        for node in gm.graph.nodes:
            if node.op == "call_function":
                ops.append((node.target.__name__, shape_of(node)))
            elif node.op == "call_method":
                ops.append((node.target, shape_of(node)))
            elif node.op == "placeholder":
                inputs.append(shape_of(node))
            elif node.op == "output":
                outputs = len(node.args[0])
        report.append({"ops": ops, "inputs": inputs, "outputs": outputs})
        return gm.forward

    return backend
""",
    "a class that can be called, and an interpreter that runs": """
class Reporter:
    NAMES = {"call_function": lambda target: target.__name__, "call_method": str}

    def __init__(self, report):
        self.report = report

    def __call__(self, gm, example_inputs, **options):
        nodes = [*gm.graph.nodes]
        self.report += [
            dict(
                outputs=len(nodes[-1].all_input_nodes),
                inputs=[one.size() for one in example_inputs],
                ops=[
                    (self.NAMES[node.op](node.target), getattr(node.meta["example_value"], "shape", None))
                    for node in nodes
                    if node.op in self.NAMES
                ],
            )
        ]
        return torch.fx.Interpreter(gm).run


def reporting_backend(report: list):
    return Reporter(report)
""",
    "what an interpreter meets on the example inputs": """
class Listener(torch.fx.Interpreter):
    def __init__(self, gm):
        super().__init__(gm)
        self.met = []

    def run_node(self, n):
        value = super().run_node(n)
        if n.op in ("call_function", "call_method"):
            name = n.target if isinstance(n.target, str) else n.target.__name__
            self.met.append((name, list(value.shape) if torch.is_tensor(value) else None))
        return value


def reporting_backend(report: list):
    def backend(gm, example_inputs):
        listener = Listener(gm)
        with torch.no_grad():
            returned = listener.run(*[torch.zeros(one.shape, dtype=one.dtype) for one in example_inputs])
        report.append({
            "ops": listener.met,
            "inputs": [list(one.shape) for one in example_inputs],
            "outputs": len(returned),
        })
        return lambda *inputs: tuple(gm(*inputs))
    return backend
""",
}
WRONG["reporting_backend"] = [
    (
        "a number's shape is empty, so None",
        "Where the result is not a tensor, the shape is None",
        "        return tuple(value.shape)",
        "        return tuple(value.shape) or None",
    ),
    (
        "what it returns runs without gradients",
        "What the backend returns does what the graph says, no more and no less",
        "        return gm.forward",
        "        return torch.no_grad()(gm.forward)",
    ),
    (
        "what it returns runs detached",
        "a compiled function gives the same as before",
        "        return gm.forward",
        "        return lambda *inputs: [one.detach() for one in gm(*inputs)]",
    ),
    (
        "the empty list is no list",
        "the backend appends one dictionary to the list `report`",
        "    def shape_of(node):",
        "    report = report or []\n\n    def shape_of(node):",
    ),
    (
        "a report at each run, too",
        "Each time that Dynamo hands it a graph",
        "        return gm.forward",
        "        def run(*inputs):\n            report[-1] = {'ops': ops, 'inputs': [tuple(one.shape) for one in inputs],"
        " 'outputs': outputs}\n            return gm(*inputs)\n        return run",
    ),
    (
        "the order of the inputs is that of their names",
        "the shapes of what the graph takes, in order",
        "        report.append(",
        "        inputs = [shape_of(node) for node in sorted(gm.graph.find_nodes(op='placeholder'), key=lambda n: n.name)]\n"
        "        report.append(",
    ),
]

# ------------------------------------------------------------------ 2, how many graphs
RIGHT["count_graphs"] = {
    "plain": """
OPEN = None


def count_graphs(calls):
    graphs, counts = [], []
    sizes, number, any_rank, first = [], 0, False, True
    for shape, dtype, k in calls:
        if not any(fits(graph, shape, dtype, k) for graph in graphs) and len(graphs) < 8:
            if first:
                sizes, number, first = list(shape), k, False
            elif len(shape) != len(sizes):
                any_rank = True
                sizes = [OPEN] * len(shape)
            else:
                sizes = [OPEN if any_rank or old != new else old for old, new in zip(sizes, shape)]
            if number != k:
                number = OPEN
            guards = [new if new < 2 else old for old, new in zip(sizes, shape)]
            graphs.append((dtype, guards, number))
        counts.append(len(graphs))
    return counts


def fits(graph, shape, dtype, k):
    its_dtype, guards, number = graph
    if dtype != its_dtype or len(shape) != len(guards):
        return False
    for size, guard in zip(shape, guards):
        if guard is OPEN:
            if size < 2:
                return False
        elif size != guard:
            return False
    return number is OPEN or k == number
""",
    "it learns at every call, and cuts off at eight": '''
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
    """All guards that this call satisfies."""
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
''',
    "closures for guards, history for what is open": """
def count_graphs(calls):
    made, tests = [], []

    def compile_for(shape, dtype, k):
        made.append((tuple(shape), k))
        ranks = {len(s) for s, _ in made}

        def size_test(i):
            n = shape[i]
            varied = len(ranks) > 1 or any(s[i] != n for s, _ in made)
            return (lambda m: m >= 2) if varied and n not in (0, 1) else (lambda m: m == n)

        dims = [size_test(i) for i in range(len(shape))]
        fixed = all(other == k for _, other in made)
        tests.append(
            lambda s, d, q: d is dtype
            and len(s) == len(dims)
            and all(test(m) for test, m in zip(dims, s))
            and (not fixed or q == k)
        )

    def step(call):
        if not any(test(*call) for test in tests) and len(tests) < 8:
            compile_for(*call)
        return len(tests)

    return [step(call) for call in calls]
""",
}
WRONG["count_graphs"] = [
    (
        "eight of each dtype",
        "until there are eight",
        "len(graphs) < 8:",
        "sum(g[0] == dtype for g in graphs) < 8:",
    ),
    (
        "a change of dimensions opens the number, too",
        "all of its sizes are open from then on",
        "                any_rank = True\n",
        "                any_rank = True\n                number = OPEN\n",
    ),
    (
        "what is known, is known of one dtype",
        "another number when an earlier graph was made, of whatever dtype",
        CODE,
        """
def count_graphs(calls):
    graphs, counts, seen = [], [], {}
    for shape, dtype, k in calls:
        if not any(fits(g, shape, dtype, k) for g in graphs) and len(graphs) < 8:
            before = seen.setdefault(dtype, [])
            before.append((shape, k))
            guards = []
            for i, size in enumerate(shape):
                same = all(len(s) == len(shape) and s[i] == size for s, _ in before)
                guards.append(size if same or size < 2 else None)
            graphs.append((dtype, guards, k if all(n == k for _, n in before) else None))
        counts.append(len(graphs))
    return counts


def fits(graph, shape, dtype, k):
    d, guards, n = graph
    if d != dtype or len(guards) != len(shape) or n not in (None, k):
        return False
    return all(s >= 2 if g is None else s == g for s, g in zip(shape, guards))
""",
    ),
    (
        "an open size is any from 1 up",
        "An open size is any size from 2 up",
        "            if size < 2:",
        "            if size < 1:",
    ),
    (
        "an open size may be 0",
        "An open size is any size from 2 up. A size of 0 or 1 is exact",
        "            if size < 2:",
        "            if size == 1:",
        "new if new < 2 else old",
        "new if new == 1 else old",
    ),
    (
        "a size of 1 makes all sizes of its graph exact",
        "A size of 0 or 1 is exact in the graph that is made for it",
        "guards = [new if new < 2 else old for old, new in zip(sizes, shape)]",
        "guards = list(shape) if 1 in shape or 0 in shape else list(sizes)",
    ),
    (
        "a float is never open",
        "A size, or `k`, is either one exact number, or it is open",
        "graphs.append((dtype, guards, number))",
        "graphs.append((dtype, guards, k if isinstance(k, float) else number))",
    ),
    (
        "a float is open at once",
        "When a graph is made, a size is exact, unless ... The same holds of `k`",
        "graphs.append((dtype, guards, number))",
        "graphs.append((dtype, guards, OPEN if isinstance(k, float) else number))",
    ),
    (
        "a number of 0 or 1 is exact in its graph",
        "An open `k` is any number, 0 and 1 among them",
        "graphs.append((dtype, guards, number))",
        "graphs.append((dtype, guards, k if k in (0, 1) else number))",
    ),
    (
        "a size of 0 or 1 says nothing of what changes",
        "unless it was another number when an earlier graph was made",
        "[OPEN if any_rank or old != new else old for old, new in zip(sizes, shape)]",
        "[new if old in (0, 1) and not any_rank else OPEN if any_rank or (old != new and new > 1) else old for old, new in zip(sizes, shape)]",
    ),
    (
        "only the graph before it is looked at",
        "unless it was another number when an earlier graph was made",
        CODE,
        """
def count_graphs(calls):
    graphs, last, ranks = [], None, set()
    out = []
    for shape, dtype, k in calls:
        for d, guards, n in graphs:
            if d == dtype and len(guards) == len(shape) and n in ("any", k):
                if all(s >= 2 if g == "any" else s == g for g, s in zip(guards, shape)):
                    break
        else:
            if len(graphs) < 8:
                ranks.add(len(shape))
                old_shape, old_k = last or (shape, k)
                if len(ranks) > 1:
                    guards = [s if s < 2 else "any" for s in shape]
                else:
                    guards = [s if s == o or s < 2 else "any" for s, o in zip(shape, old_shape)]
                graphs.append((dtype, guards, k if k == old_k else "any"))
                last = shape, k
        out.append(len(graphs))
    return out
""",
    ),
    (
        "what opens, opens in all graphs",
        "the graphs that are there keep their guards",
        "            graphs.append((dtype, guards, number))",
        "            for _, old, _ in graphs:\n"
        "                if len(old) == len(sizes):\n"
        "                    old[:] = [OPEN if s is OPEN and o > 1 else o for o, s in zip([9 if o is OPEN else o for o in old], sizes)]\n"
        "            graphs.append((dtype, guards, number))",
    ),
    (
        "no call at all",
        "it returns a list of as many numbers",
        "    graphs, counts = [], []\n",
        "    graphs, counts = [], []\n    calls[0]\n",
    ),
    (
        "a tensor of no dimensions is no graph yet",
        "Once `x` had another number of dimensions than before",
        "            if first:",
        "            if not sizes:",
        "sizes, number, first = list(shape), k, False",
        "sizes = list(shape)\n                number = k if first else number\n                first = False",
    ),
    (
        "a number of 0 is not yet a number",
        "The same holds of `k`",
        "            if number != k:",
        "            if number == 0:\n                number = k\n            if number != k:",
    ),
    (
        "after other dimensions a size of 1 fits, too",
        "A size of 0 or 1 is exact in the graph that is made for it, even where it would be open",
        "guards = [new if new < 2 else old for old, new in zip(sizes, shape)]",
        "guards = [new if new < 2 and not any_rank else old for old, new in zip(sizes, shape)]",
        "            if size < 2:\n                return False",
        "            if size < 2 and not loose:\n                return False",
        "    its_dtype, guards, number = graph",
        "    its_dtype, guards, number, loose = graph",
        "(dtype, guards, number))",
        "(dtype, guards, number, any_rank))",
    ),
    (
        "0 and 1 share a graph",
        "A size of 0 or 1 is exact",
        "        elif size != guard:",
        "        elif max(size, 1) != max(guard, 1):",
    ),
    (
        "torch is asked",
        "It compiles nothing",
        CODE,
        "def count_graphs(calls):\n    return driver.count_as_torch_does(calls)\n",
    ),
    (
        "a size that returns to what it was is exact again",
        "What was open stays open for the graphs that are made later",
        "                sizes = [OPEN if any_rank or old != new else old for old, new in zip(sizes, shape)]",
        "                sizes = [OPEN if any_rank or old != new else old for old, new in zip(sizes, shape)]\n"
        "                sizes = [new if all(g[1][i] in (new, OPEN) for g in graphs) and not any_rank else s for i, (s, new) in enumerate(zip(sizes, shape))]",
    ),
]

# ------------------------------------------------------------------ 3, one graph each
RIGHT["mended"] = {
    "plain": """
def gate(x: torch.Tensor) -> torch.Tensor:
    return torch.where(x.sum() > 0, 2 * x, x / 2)


def scale(x: torch.Tensor) -> torch.Tensor:
    largest = x.detach().abs().max()
    divisor = torch.where(largest == 0, 1, largest)
    return x / divisor


def row_sums(x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    counts = torch.arange(x.shape[1]) < lengths[:, None]
    return torch.where(counts, x, 0).sum(1)
""",
    "factors, no_grad, a sum that runs along": """
def gate(x, up=2.0, down=0.5):
    return x * torch.where(x.sum() > 0, up, down)


def scale(x):
    with torch.no_grad():
        largest = torch.linalg.vector_norm(x, float("inf"))
        largest += largest == 0
    return x / largest


def row_sums(x, lengths):
    totals = F.pad(x.cumsum(dim=1), (1, 0))
    return totals.gather(1, lengths.long().unsqueeze(1)).squeeze(1)
""",
    "column by column": """
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
    "row by row, with tensors for numbers": """
def pick(condition, yes, no):
    return torch.where(condition, yes, no)


def gate(x):
    return pick(x.sum() > 0, x + x, 0.5 * x)


def scale(x):
    largest = x.abs().amax().detach()
    return pick(largest == 0, x, x / pick(largest == 0, torch.ones_like(largest), largest))


def row_sums(x, lengths):
    places = torch.arange(x.shape[-1])
    rows = [pick(places < length, row, torch.zeros_like(row)) for row, length in zip(x, lengths)]
    return torch.einsum("ij->i", torch.stack(rows))
""",
    "an index for each side, sorted sizes": """
def gate(x):
    factors = torch.tensor([0.5, 2.0], dtype=x.dtype)
    return x * factors[(x.sum() > 0).int()]


def scale(x):
    size = x.detach().abs().flatten().sort(descending=True).values[0]
    return torch.div(x, torch.where(size.bool(), size, torch.ones((), dtype=x.dtype)))


def row_sums(x, lengths):
    index = torch.ones_like(x, dtype=torch.long).cumsum(1)
    return x.masked_fill(index > lengths.view(-1, 1), 0.0).sum(dim=-1)
""",
}
WRONG["mended"] = [
    (
        "a sum of 0 is positive",
        "Twice x where the sum of all of x is positive",
        "x.sum() > 0",
        "x.sum() >= 0",
    ),
    (
        "a sum of 0 leaves x",
        "otherwise half of x",
        "torch.where(x.sum() > 0, 2 * x, x / 2)",
        "x * 2 ** torch.sign(x.sum())",
    ),
    ("each row has a gate", "the sum of all of x", "x.sum() > 0", "x.sum(-1, keepdim=True) > 0"),
    (
        "a NaN is not at most 0",
        "That holds for any numbers",
        "torch.where(x.sum() > 0, 2 * x, x / 2)",
        "torch.where(x.sum() <= 0, x / 2, 2 * x)",
    ),
    (
        "both sides are blended",
        "That holds for any numbers, so on both sides of each branch",
        "    return torch.where(x.sum() > 0, 2 * x, x / 2)",
        "    up = (x.sum() > 0).to(x.dtype)\n    return up * (2 * x) + (1 - up) * (x / 2)",
    ),
    (
        "the largest, with its sign",
        "the largest of its absolute values",
        "x.detach().abs().max()",
        "x.detach().max()",
    ),
    (
        "a little is added to the divisor",
        "nothing but zeros stay zeros",
        "torch.where(largest == 0, 1, largest)",
        "torch.where(largest == 0, 1, largest + 1e-12)",
    ),
    (
        "the divisor is at least 1e-8",
        "x, divided by the largest of its absolute values",
        "torch.where(largest == 0, 1, largest)",
        "largest.clamp(min=1e-8)",
    ),
    (
        "next to nothing is nothing",
        "That holds for any numbers",
        "largest == 0, 1",
        "largest < torch.finfo(x.dtype).eps, 1",
    ),
    (
        "a NaN within the length is dropped",
        "It gives what the colleague's function gives",
        "    return torch.where(counts, x, 0).sum(1)",
        "    return (torch.nan_to_num(x) * counts).sum(1)",
    ),
    (
        "nansum",
        "It gives what the colleague's function gives",
        "torch.where(counts, x, 0).sum(1)",
        "torch.where(counts, x, torch.nan).nansum(1)",
    ),
    (
        "a single row's sum has no dimension",
        "It gives what the colleague's function gives",
        "torch.where(counts, x, 0).sum(1)",
        "torch.where(counts, x, 0).sum(1).squeeze()",
    ),
    (
        "sums are float32",
        "`x` is of float32 or float64",
        "    return torch.where(counts, x, 0).sum(1)",
        "    total = torch.zeros(x.shape[0])\n    for j in range(x.shape[1]):\n"
        "        total += torch.where(counts[:, j], x[:, j], 0)\n    return total",
    ),
    (
        "the columns are those of a matrix",
        "In `gate` and `scale` it has any shape",
        "x.detach().abs().max()",
        "x.detach().abs().max(0).values.max(0).values",
    ),
    (
        "as many columns as rows",
        "`lengths` has a whole number for each row",
        "torch.arange(x.shape[1]) < lengths[:, None]",
        "(torch.arange(x.shape[1])[:, None] < lengths).T if x.shape[1] < 9 else torch.arange(len(x)) < lengths[:, None]",
    ),
    (
        "a sum that runs along, over all of it less what lies behind",
        "What lies behind a row's length may be anything",
        "torch.where(counts, x, 0).sum(1)",
        "x.nan_to_num(0, 0, 0).sum(1) - torch.where(counts, 0, x.nan_to_num(0, 0, 0)).sum(1)",
    ),
    (
        "the gate is for where it is positive, and its gradient is one side's",
        "the gradient of `x` is the one that the colleague's function gives",
        "torch.where(x.sum() > 0, 2 * x, x / 2)",
        "x / 2 + torch.where(x.sum() > 0, 1.5 * x, 0 * x).detach()",
    ),
]

# ------------------------------------------------------------------ 4, an operator for every softmax
RIGHT["softmax_backend"] = {
    "plain": """
def softmax_backend(op):
    def wanted(node):
        if node.op == "call_function":
            return node.target in (torch.softmax, F.softmax)
        return node.op == "call_method" and node.target == "softmax"

    def parts(node):
        named = dict(node.kwargs)
        third = "_stacklevel" if node.target is F.softmax else "dtype"
        named.update(zip(("input", "dim", third, "dtype"), node.args))
        return named["input"], named["dim"], named.get("dtype")

    def backend(gm, example_inputs):
        for node in list(gm.graph.nodes):
            if not wanted(node):
                continue
            x, dim, dtype = parts(node)
            rank = x.meta["example_value"].dim()
            if dtype is not None or dim not in (-1, rank - 1):
                continue
            with gm.graph.inserting_before(node):
                new = gm.graph.call_function(op, (x,))
            new.meta = dict(node.meta)
            node.replace_all_uses_with(new)
            gm.graph.erase_node(node)
        gm.recompile()
        return gm

    return backend
""",
    "the node itself is rewritten": """
def softmax_backend(op):
    def signature(input, dim, dtype=None, _stacklevel=3):
        return input, dim, dtype

    def backend(gm, _):
        for node in gm.graph.nodes:
            name = node.target if node.op == "call_method" else getattr(node.target, "__name__", "")
            if not node.op.startswith("call_") or name != "softmax":
                continue
            x, dim, dtype = signature(*node.args, **node.kwargs)
            last = node.meta["example_value"].ndim - 1
            if dtype is None and dim in {-1, last}:
                node.op, node.target, node.args, node.kwargs = "call_function", op, (x,), {}
        gm.graph.lint()
        gm.recompile()
        return gm.forward

    return backend
""",
    "from the last node to the first, and dead code goes": """
class SoftmaxBackend:
    targets = {torch.softmax, torch.nn.functional.softmax, "softmax"}

    def __init__(self, op):
        self.op = op

    @staticmethod
    def get(node, place, name, default=None):
        return node.args[place] if len(node.args) > place else node.kwargs.get(name, default)

    def __call__(self, gm, example_inputs):
        graph = gm.graph
        for node in reversed(list(graph.nodes)):
            if node.op not in ("call_function", "call_method") or node.target not in self.targets:
                continue
            x, dim = self.get(node, 0, "input"), self.get(node, 1, "dim")
            dtype = self.get(node, 3 if node.target is F.softmax else 2, "dtype")
            if dtype is None and dim % x.meta["example_value"].ndim == x.meta["example_value"].ndim - 1:
                with graph.inserting_after(node):
                    node.replace_all_uses_with(graph.call_function(self.op, args=(x,)))
        graph.eliminate_dead_code()
        gm.recompile()
        return lambda *inputs: gm(*inputs)


softmax_backend = SoftmaxBackend
""",
    "a graph of its own": """
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
    "an fx.Transformer": """
class Swap(torch.fx.Transformer):
    def __init__(self, gm, op):
        super().__init__(gm)
        self.op = op

    def run_node(self, n):
        if self.fits(n):
            read = n.args[0] if n.args else n.kwargs["input"]
            return torch.fx.Proxy(
                self.new_graph.call_function(self.op, (self.env[read].node,)), self.tracer
            )
        return super().run_node(n)

    def fits(self, n):
        if n.target not in (torch.softmax, F.softmax, "softmax") or not n.op.startswith("call"):
            return False
        extras = [v for v in (*n.args[2:], n.kwargs.get("dtype")) if isinstance(v, torch.dtype)]
        dim = n.kwargs["dim"] if "dim" in n.kwargs else n.args[1]
        return not extras and dim in (-1, n.meta["example_value"].dim() - 1)


def softmax_backend(op):
    return lambda gm, example_inputs: Swap(gm, op).transform()
""",
}
WRONG["softmax_backend"] = [
    (
        "dtype=None is a dtype",
        "`dtype=None` asks for none",
        '        return named["input"], named["dim"], named.get("dtype")',
        '        return named["input"], named["dim"], "dtype" in named or None',
    ),
    (
        "a dtype is asked for by name",
        "no dtype is asked for",
        'named.get("dtype")',
        'node.kwargs.get("dtype")',
    ),
    (
        "the dtype that it has, too",
        "`op` fits where the dimension is the tensor's last, and no dtype is asked for",
        "            if dtype is not None or",
        '            if dtype not in (None, x.meta["example_value"].dtype) or',
    ),
    ("a matrix's last", "the dimension is the tensor's last", "(-1, rank - 1)", "(-1, 1)"),
    (
        "each negative dimension",
        "from the front or, negative, from the end",
        "dim not in (-1, rank - 1)",
        "0 <= dim < rank - 1",
    ),
    (
        "the rank of what goes into the graph",
        "the dimension is the tensor's last",
        'x.meta["example_value"].dim()',
        "example_inputs[0].dim()",
    ),
    (
        "the tensor stands first",
        "the tensor may be given by its name as well",
        'return named["input"], named["dim"]',
        'return node.args[0], named["dim"]',
    ),
    (
        "a new node without a note",
        "It replaces each softmax in the graph by a call of `op`",
        "            new.meta = dict(node.meta)\n",
        "",
    ),
    (
        "a node without a note is left alone",
        "It replaces each softmax in the graph by a call of `op`",
        "            new.meta = dict(node.meta)\n",
        "",
        '            rank = x.meta["example_value"].dim()',
        '            if "example_value" not in x.meta:\n                continue\n            rank = x.meta["example_value"].dim()',
    ),
    (
        "what two read is left alone",
        "It replaces each softmax in the graph by a call of `op`",
        "            if not wanted(node):",
        "            if not wanted(node) or len(node.users) > 1:",
    ),
    (
        "a method has its dimension by position",
        "The dimension is always given, by position or by its name `dim`",
        '        return named["input"], named["dim"], named.get("dtype")',
        '        dim = node.args[1] if node.op == "call_method" else named["dim"]\n'
        '        return named["input"], dim, named.get("dtype")',
    ),
    (
        "the old one is computed still",
        "It replaces each softmax in the graph by a call of `op`",
        "            gm.graph.erase_node(node)\n",
        "",
    ),
    (
        "the rank of the first is that of all",
        "the dimension is the tensor's last",
        "        for node in list(gm.graph.nodes):",
        '        ranks = [n.meta["example_value"].dim() for n in gm.graph.nodes if wanted(n)]\n'
        "        for node in list(gm.graph.nodes):",
        'x.meta["example_value"].dim()',
        "ranks[0]",
    ),
    (
        "the last but one, from the end",
        "the dimension is the tensor's last",
        "dim not in (-1, rank - 1)",
        "abs(dim) != rank - 1 and dim != -1",
    ),
    (
        "once for all graphs",
        "returns a backend. It replaces each softmax in the graph",
        "    def wanted(node):",
        "    done = set()\n\n    def wanted(node):",
        "            if not wanted(node):\n                continue",
        "            if not wanted(node) or node.name in done:\n                continue\n            done.add(node.name)",
    ),
]

# ------------------------------------------------------------------ 5, what is saved
RIGHT["saved"] = {
    "plain": """
def saved(joint, outputs):
    nodes = list(joint.graph.nodes)
    forward = {node for node in nodes if node.op == "placeholder" and not node.name.startswith("tangents")}
    todo = list(nodes[-1].args[0][:outputs])
    while todo:
        node = todo.pop()
        forward.add(node)
        todo += node.all_input_nodes
    read = set()
    for node in nodes:
        if node.op == "call_function" and node not in forward:
            read.update(node.all_input_nodes)
    return [node.name for node in nodes if node in forward and node in read]


def computed_again(joint, wanted, kept):
    nodes = {node.name: node for node in joint.graph.nodes}
    again, todo = set(), list(wanted)
    while todo:
        name = todo.pop()
        if nodes[name].op == "placeholder" or name in kept:
            continue
        again.add(name)
        todo += [node.name for node in nodes[name].all_input_nodes]
    return [name for name in nodes if name in again]
""",
    "in one pass from the end, with recursion for the other": """
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
    "in rounds until nothing is new": """
def closure(start, stop=frozenset()):
    found = set(start) - set(stop)
    while True:
        more = found | {other for node in found for other in node.all_input_nodes} - set(stop)
        if more == found:
            return found
        found = more


def names(joint, chosen):
    return [node.name for node in joint.graph.nodes if node in chosen]


def saved(joint, outputs):
    (output,) = joint.graph.find_nodes(op="output")
    forward = closure(output.args[0][:outputs])
    forward |= {n for n in joint.graph.find_nodes(op="placeholder") if "tangents" != n.name[:8]}
    behind = {n for n in joint.graph.nodes if n.op.startswith("call")} - forward
    return names(joint, {other for node in behind for other in node.all_input_nodes} & forward)


def computed_again(joint, wanted, kept):
    there = {n for n in joint.graph.nodes if n.op == "placeholder" or n.name in set(kept)}
    return names(joint, closure((n for n in joint.graph.nodes if n.name in set(wanted)), there))
""",
}
WRONG["saved"] = [
    (
        "what is kept goes only in the end",
        "Each node that is wanted and is not there must be computed again; and for that, what it reads is wanted",
        'if nodes[name].op == "placeholder" or name in kept:',
        'if nodes[name].op == "placeholder":',
        "if name in again]",
        "if name in again and name not in kept]",
    ),
    (
        "as often as it is wanted",
        "each once",
        "    again, todo = set(), list(wanted)",
        "    again, todo, order = [], list(wanted), list(nodes)",
        "        again.add(name)",
        "        again.append(name)",
        "    return [name for name in nodes if name in again]",
        "    return sorted(again, key=order.index)",
    ),
    (
        "as many outputs as tangents",
        "the first `outputs` of which are the forward's",
        "    todo = list(nodes[-1].args[0][:outputs])",
        '    outputs = sum(node.name.startswith("tangents") for node in nodes)\n    todo = list(nodes[-1].args[0][:outputs])',
    ),
    (
        "the backward is what the gradients need",
        "a place that has no gradient holds None",
        "    read = set()\n",
        "    read = set()\n    backward, rest = set(), list(nodes[-1].args[0][outputs:])\n    while rest:\n        node = rest.pop()\n"
        "        backward.add(node)\n        rest += node.all_input_nodes\n",
    ),
    (
        "what is returned is not needed",
        "A node belongs to the forward if the forward returns it",
        "        forward.add(node)\n        todo += node.all_input_nodes",
        "        forward.update(node.all_input_nodes)\n        todo += node.all_input_nodes",
    ),
    (
        "what the forward returns is there anyway",
        "The plain partitioner saves each node of the forward, inputs included, that is read by a node of the backward",
        "if node in forward and node in read]",
        "if node in forward and node in read and node not in nodes[-1].args[0][:outputs]]",
    ),
    (
        "inputs are there anyway, in both",
        "saves each node of the forward, inputs included",
        "if node in forward and node in read]",
        'if node in forward and node in read and (node.op != "placeholder" or len(node.users) > 2)]',
    ),
    (
        "a node that is read by the forward only once",
        "that is read by a node of the backward",
        'if node.op == "call_function" and node not in forward:',
        'if node.op == "call_function" and (node not in forward or any(n not in forward for n in node.users if n.op != "output") and node.target is torch.ops.aten.t.default):',
    ),
    (
        "what is wanted twice, is kept from the second time on",
        "Each node that is wanted and is not there must be computed again",
        "        again.add(name)\n",
        "        if name in again:\n            return [name for name in nodes if name in again]\n        again.add(name)\n",
    ),
    (
        "one step from what is wanted, and another",
        "and for that, what it reads is wanted, too",
        CODE,
        """
def saved(joint, outputs):
    nodes = list(joint.graph.nodes)
    forward = set(nodes[-1].args[0][:outputs])
    for node in reversed(nodes):
        if node in forward:
            forward.update(node.all_input_nodes)
    read = {r for n in nodes if n.op == "call_function" and n not in forward for r in n.all_input_nodes}
    return [n.name for n in nodes if n in forward & read]


def computed_again(joint, wanted, kept):
    again = []
    for node in joint.graph.nodes:
        if node.op != "call_function" or node.name in kept:
            continue
        readers = [u.name for u in node.users]
        readers += [v.name for u in node.users for v in u.users if u.name not in kept]
        if node.name in wanted or any(r in wanted and r not in kept for r in readers):
            again.append(node.name)
    return again
""",
    ),
]

# ------------------------------------------------------------------ 6, a fusion pass
RIGHT["fuse"] = {
    "plain": """
def fuse(nodes):
    groups, place, kinds = [], {}, {}
    for name, kind, reads in nodes:
        makers = [place[read] for read in reads if read in place]
        taken = None
        if makers and kind != "library":
            youngest = max(makers)
            of_group = [read for read in reads if place.get(read) == youngest]
            barred = any(kinds[member] == "library" for member in groups[youngest])
            barred = barred or any(kinds[read] == "reduction" for read in of_group)
            if not barred:
                taken = youngest
        if taken is None:
            groups.append([])
            taken = len(groups) - 1
        groups[taken].append(name)
        place[name], kinds[name] = taken, kind
    return groups


def stored(nodes, groups, outputs):
    place = {name: number for number, group in enumerate(groups) for name in group}
    far = set(outputs)
    for name, kind, reads in nodes:
        for read in reads:
            if read in place and place[read] != place[name]:
                far.add(read)
    return [name for name, kind, reads in nodes if name in far]
""",
    "classes, and the groups from the front": """
class Group:
    def __init__(self, number, name, kind):
        self.number, self.names, self.sums = number, [], set()
        self.closed = kind == "library"
        self.add(name, kind)

    def add(self, name, kind):
        self.names.append(name)
        if kind == "reduction":
            self.sums.add(name)


def fuse(nodes):
    groups = []
    for name, kind, reads in nodes:
        reads = set(reads)
        for group in groups:
            younger = {other for later in groups[group.number + 1 :] for other in later.names}
            if (
                not group.closed
                and kind != "library"
                and reads & set(group.names)
                and not reads & group.sums
                and not reads & younger
            ):
                group.add(name, kind)
                break
        else:
            groups.append(Group(len(groups), name, kind))
    return [group.names for group in groups]


def stored(nodes, groups, outputs):
    readers = {name: [] for name, _, _ in nodes}
    for name, _, reads in nodes:
        for read in reads:
            if read in readers:
                readers[read].append(name)

    def group_of(name):
        return next(i for i, group in enumerate(groups) if name in group)

    return [
        name
        for name, readers_of in readers.items()
        if name in outputs or {group_of(one) for one in readers_of} - {group_of(name)}
    ]
""",
    "a walk from the youngest that stops at what is read": """
from collections import namedtuple

Node = namedtuple("Node", "name kind reads")


def fuse(nodes):
    groups = []
    for node in (Node(*one) for one in nodes):
        for group in reversed(groups):
            read = [one for one in group if one.name in node.reads]
            if read:
                kinds = [node.kind, *(one.kind for one in group)]
                if "library" not in kinds and all(one.kind != "reduction" for one in read):
                    group.append(node)
                else:
                    groups.append([node])
                break
        else:
            groups.append([node])
    return [[node.name for node in group] for group in groups]


def stored(nodes, groups, outputs):
    nodes = [Node(*one) for one in nodes]
    wanted = [*outputs]
    for group in groups:
        for node in nodes:
            if node.name in group:
                wanted += [read for read in node.reads if read not in group]
    return [node.name for node in nodes if node.name in wanted]
""",
}
WRONG["fuse"] = [
    (
        "no reduction at all is read",
        "it reads no reduction of the group",
        "for read in of_group)",
        "for read in reads if read in kinds)",
    ),
    (
        "a reduction closes its group",
        "A group takes a node if all of this holds",
        'barred or any(kinds[read] == "reduction" for read in of_group)',
        'barred or any(kinds[member] == "reduction" for member in groups[youngest])',
    ),
    (
        "younger libraries count, younger sums do not",
        "it reads nothing that a younger group makes",
        "            youngest = max(makers)\n",
        "            youngest = max(makers)\n            while youngest in makers and len(set(makers)) > 1 and any("
        'kinds[r] == "reduction" for r in reads if place.get(r) == youngest):\n'
        "                makers = [m for m in makers if m != youngest]\n                youngest = max(makers)\n",
    ),
    (
        "the last name that it reads decides",
        "the node reads at least one node of the group; it reads nothing that a younger group makes",
        "youngest = max(makers)",
        "youngest = makers[-1]",
    ),
    (
        "a sum may read a sum",
        "it reads no reduction of the group",
        "barred or any(kinds[read]",
        'barred or kind == "pointwise" and any(kinds[read]',
    ),
    (
        "the youngest is the one that was joined last",
        "the *youngest* group that takes it, that is the one that was begun last",
        "    groups, place, kinds = [], {}, {}",
        "    groups, place, kinds, joined = [], {}, {}, []",
        "youngest = max(makers)",
        "youngest = max(makers, key=lambda m: max(i for i, g in enumerate(joined) if g == m))",
        "        groups[taken].append(name)",
        "        groups[taken].append(name)\n        joined.append(taken)",
    ),
    (
        "outputs come last",
        "in the order of the nodes",
        "    far = set(outputs)",
        "    far = set()",
        "    return [name for name, kind, reads in nodes if name in far]",
        "    found = [name for name, kind, reads in nodes if name in far]\n"
        "    return found + [name for name in outputs if name not in far]",
    ),
    (
        "in the order of the groups",
        "in the order of the nodes",
        "[name for name, kind, reads in nodes if name in far]",
        "[name for group in groups for name in group if name in far]",
    ),
    (
        "the groups are its own",
        "The groups are given, not necessarily yours",
        "for number, group in enumerate(groups) for name in group}\n    far",
        "for number, group in enumerate(fuse(nodes)) for name in group}\n    far",
    ),
    (
        "what nobody reads is stored",
        "those that a node of another group reads, and those in the list `outputs`",
        "    far = set(outputs)",
        "    far = set(outputs) | {n for n, _, _ in nodes if not any(n in r for _, _, r in nodes)}",
    ),
    (
        "an output that its own group reads stays there",
        "and those in the list `outputs`",
        "if name in far]",
        "if name in far and (any(name in r and place[n] != place[name] for n, _, r in nodes) or not any(name in r for _, _, r in nodes))]",
    ),
    (
        "an output that is read comes twice",
        "the names of the nodes whose results must be written to memory",
        "    far = set(outputs)",
        "    far = set()",
        "    return [name for name, kind, reads in nodes if name in far]",
        "    found = []\n    for name, kind, reads in nodes:\n        if name in far:\n            found.append(name)\n"
        "        if name in outputs:\n            found.append(name)\n    return found",
    ),
    (
        "only a node of the next groups reads",
        "those that a node of another group reads",
        "place[read] != place[name]",
        "place[read] == place[name] - 1",
    ),
    (
        "only pointwise nodes read",
        "those that a node of another group reads",
        "            if read in place and",
        '            if kind != "library" and read in place and',
    ),
    (
        "an output that is an input is stored",
        "the names of the nodes whose results must be written to memory",
        "    return [name for name, kind, reads in nodes if name in far]",
        "    names = [name for name, kind, reads in nodes]\n"
        "    return [name for name in outputs if name not in names] + [name for name in names if name in far]",
    ),
    (
        "a name read twice is read by two",
        "the node reads at least one node of the group",
        'if makers and kind != "library":',
        'if makers and len(set(reads)) == len(reads) and kind != "library":',
    ),
]

# ------------------------------------------------------------------ 7, what Inductor wrote
RIGHT["read_code"] = {
    "plain": """
def body(code):
    return code[re.search(r"^[ \\t]*def call\\b", code, re.MULTILINE).start() :].splitlines()


def calls(code):
    found = []
    for line in body(code):
        match = re.match(r"\\s*(?:\\w+ = )?([A-Za-z_][\\w.]*)\\(", line)
        if match:
            found.append(match.group(1))
    return found


def launches(code):
    names = [name for name in calls(code) if name.startswith(("cpp_", "triton_"))]
    return [name.removesuffix(".run") for name in names]


def library_calls(code):
    return [name for name in calls(code) if name.startswith(("extern_kernels.", "torch.ops."))]


def reused(code):
    return sum(line.endswith("# reuse") for line in body(code))
""",
    "partition and split, without a regular expression": """
def call_lines(code):
    keep, inside = [], False
    for line in code.split("\\n"):
        inside = inside or line.lstrip().startswith("def call")
        if inside:
            keep.append(line.strip())
    return keep


def called(code):
    for line in call_lines(code):
        if line.startswith("#"):
            continue
        front, bracket, _ = line.partition("(")
        if bracket:
            yield front.rpartition(" = ")[2]


def launches(code: str) -> list[str]:
    return [name.split(".")[0] for name in called(code) if name[:4] == "cpp_" or name[:7] == "triton_"]


def library_calls(code: str) -> list[str]:
    return [name for name in called(code) if name.split(".")[0] == "extern_kernels" or name[:10] == "torch.ops."]


def reused(code: str) -> int:
    return len([line for line in call_lines(code) if line[-7:] == "# reuse"])
""",
    "three expressions over the text from `def call`": """
def launches(code):
    code = code[code.index("def call") :]
    return re.findall(r"^[ ]*(?:\\w+ = )?((?:cpp|triton)_\\w+)(?:\\.run)?\\(", code, flags=re.M)


def library_calls(code):
    code = code[code.index("def call") :]
    return re.findall(r"^[ ]*(?:\\w+ = )?((?:extern_kernels|torch\\.ops)(?:\\.\\w+)+)\\(", code, flags=re.M)


def reused(code):
    code = code[code.index("def call") :]
    return len(re.findall(r"# reuse$", code, flags=re.M))
""",
}
WHOLE = (
    '    return code[re.search(r"^[ \\t]*def call\\b", code, re.MULTILINE).start() :].splitlines()'
)
WRONG["read_code"] = [
    ("the whole text", "which look at its function `call`", WHOLE, "    return code.splitlines()"),
    (
        "the whole text for kernels that run",
        "from the line that begins with `def call`",
        '    names = [name for name in calls(code) if name.startswith(("cpp_", "triton_"))]\n'
        '    return [name.removesuffix(".run") for name in names]',
        '    return re.findall(r"^\\s*(cpp_\\w+|triton_\\w+(?=\\.run))(?:\\.run)?\\(", code, re.M)',
    ),
    (
        "the whole text for buffers",
        "from the line that begins with `def call`",
        "for line in body(code))",
        "for line in code.splitlines())",
    ),
    (
        "each kernel once",
        "the names of the kernels, in the order in which they run, as often as they run",
        '    return [name.removesuffix(".run") for name in names]',
        '    return list(dict.fromkeys(name.removesuffix(".run") for name in names))',
    ),
    (
        "each function of a library once",
        "the names of what is called of libraries, with their dots, in order",
        CODE,
        "",
    ),
    (
        "reuse anywhere in a line",
        "such a line ends in `# reuse`",
        'line.endswith("# reuse")',
        '"reuse" in line',
    ),
    (
        "a call in a comment",
        "Each call begins a line, or stands behind a name and ` = `",
        '    return [name for name in calls(code) if name.startswith(("extern_kernels.", "torch.ops."))]',
        '    return re.findall(r"((?:extern_kernels|torch\\.ops)(?:\\.\\w+)+)\\(", "\\n".join(body(code)))',
    ),
    (
        "the operators of this course",
        "an operator of `torch.ops`",
        '"torch.ops."',
        '"torch.ops.open_the_hood."',
    ),
    (
        "default overloads",
        "an operator of `torch.ops`",
        'if name.startswith(("extern_kernels.", "torch.ops."))]',
        'if name.startswith("extern_kernels.") or name.endswith(".default")]',
    ),
    (
        "pointwise kernels of Triton",
        "a kernel, whose name begins with `cpp_` or `triton_`",
        '("cpp_", "triton_")',
        '("cpp_", "triton_poi")',
    ),
    (
        "fused kernels",
        "a kernel, whose name begins with `cpp_` or `triton_`",
        '("cpp_", "triton_")',
        '("cpp_fused", "triton_")',
    ),
    (
        "a function of extern_kernels begins its line",
        "Each call begins a line, or stands behind a name and ` = `",
        '    return [name for name in calls(code) if name.startswith(("extern_kernels.", "torch.ops."))]',
        "    found = []\n    for line in body(code):\n        line = line.strip()\n"
        '        if line.startswith("extern_kernels."):\n            found.append(line.split("(")[0])\n'
        '        elif " = torch.ops." in line:\n            found.append(line.split(" = ")[1].split("(")[0])\n    return found',
    ),
    (
        "up to the first return",
        "to the end of the text",
        WHOLE,
        '    text = code[re.search(r"^[ \\t]*def call\\b", code, re.MULTILINE).start() :]\n    return text.partition("return")[0].splitlines()',
    ),
    (
        "call is a method",
        "or, indented, with `def call`",
        WHOLE,
        '    return code[code.index("    def call(") :].splitlines()',
    ),
    (
        "a second name is a reuse",
        "how many buffers get the memory of another",
        'line.endswith("# reuse")',
        're.match(r"\\s*buf\\d+ = buf\\d+", line) is not None',
    ),
    (
        "only whole buffers",
        "such a line ends in `# reuse`",
        'line.endswith("# reuse")',
        're.match(r"\\s*buf\\d+ = buf\\d+; del buf\\d+  # reuse", line) is not None',
    ),
    (
        "a kernel that is named in a comment",
        "the names of the kernels, in the order in which they run",
        '    names = [name for name in calls(code) if name.startswith(("cpp_", "triton_"))]\n'
        '    return [name.removesuffix(".run") for name in names]',
        '    return re.findall(r"\\b((?:cpp|triton)_\\w+)(?:\\.run)?\\(", "\\n".join(body(code)))',
    ),
    (
        "the last part of the name",
        "the names of what is called of libraries, with their dots",
        'return [name for name in calls(code) if name.startswith(("extern_kernels.", "torch.ops."))]',
        'return [name.replace(".out", "") for name in calls(code) if name.startswith(("extern_kernels.", "torch.ops."))]',
    ),
    (
        "a kernel of Triton ends where a dot comes",
        "a kernel, whose name begins with `cpp_` or `triton_`",
        '    names = [name for name in calls(code) if name.startswith(("cpp_", "triton_"))]',
        '    names = [name for name in calls(code) if name.startswith("cpp_") or name.startswith("triton_") and name[-5].isdigit()]',
    ),
]
WRONG["read_code"] = [one for one in WRONG["read_code"] if one[-1]]

# ------------------------------------------------------------------ 8, the LM head
RIGHT["compiled_head"] = {
    "plain": """
def compiled_head(model: MiniGPT, backend):
    def probabilities(x, temperature):
        logits = model.lm_head(x)
        return softmax(logits / temperature)

    fast = torch.compile(probabilities, backend=backend)

    def head(x, temperature):
        return fast(x, torch.tensor(temperature))

    return head
""",
    "a module of its own, heat as a factor, parameters as arguments": """
class Head(torch.nn.Module):
    def forward(self, x, weight, bias, heat):
        logits = torch.einsum("...i,oi->...o", x, weight) + bias
        return softmax(logits.mul_(heat))


def compiled_head(model: MiniGPT, backend):
    compiled = torch.compile(Head(), backend=backend, fullgraph=True)
    layer = model.lm_head
    return lambda x, temperature=1.0: compiled(x, layer.weight, layer.bias, x.new_tensor(1 / temperature))
""",
    "a decorator, and a partial": """
import functools


def compiled_head(model: MiniGPT, backend):
    @torch.compile(backend=backend)
    def run(linear, x, temperature):
        return softmax(linear(x).div(temperature), dim=-1)

    bound = functools.partial(run, model.lm_head)

    def head(x, temperature):
        return bound(x, torch.full((1,), temperature, dtype=x.dtype))

    return head
""",
}
WRONG["compiled_head"] = [
    (
        "rows come out as a matrix",
        "`x` has the shape (..., width)",
        "model.lm_head(x)",
        "model.lm_head(x.reshape(-1, x.shape[-1]))",
    ),
    (
        "the weight learns nothing",
        "Gradients flow to `x` and to the weight and bias",
        "model.lm_head(x)",
        "F.linear(x, model.lm_head.weight.detach(), model.lm_head.bias)",
    ),
    (
        "x gets no gradient",
        "Gradients flow to `x`",
        "model.lm_head(x)",
        "model.lm_head(x.detach())",
    ),
    (
        "the second dimension is the last",
        "the softmax of the logits that `model.lm_head` makes of `x`",
        "softmax(logits / temperature)",
        "softmax(logits / temperature, dim=1)",
    ),
    (
        "a product of matrices",
        "`x` has the shape (..., width)",
        "model.lm_head(x)",
        "torch.addmm(model.lm_head.bias, x, model.lm_head.weight.t())",
    ),
    (
        "rows that lie one behind another",
        "`x` has the shape (..., width)",
        "        logits = model.lm_head(x)\n        return softmax(logits / temperature)",
        "        logits = model.lm_head(x.view(-1, x.shape[-1]))\n"
        "        return softmax(logits / temperature).view(*x.shape[:-1], -1)",
    ),
    (
        "a temperature with two decimals",
        "the temperature is a positive float, in every call another",
        "torch.tensor(temperature)",
        "torch.tensor(round(temperature, 2))",
    ),
    (
        "the bias stays as warm as it was",
        "the softmax of the logits that `model.lm_head` makes of `x`, divided by the temperature",
        "        logits = model.lm_head(x)\n        return softmax(logits / temperature)",
        "        layer = model.lm_head\n        return softmax(F.linear(x, layer.weight) / temperature + layer.bias)",
    ),
]

BANK = Bank("06")
BANK.fill(RIGHT, WRONG)
