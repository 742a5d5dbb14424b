"""A second bank of lab 02, written from the lesson and the released lab alone.

``RIGHT`` are answers that keep every sentence of the lab, ``WRONG`` break one each. An entry is
the part of an exercise that it answers, a name, the code (``PLAIN`` fills in what the exercise
asks besides), and for a wrong one the sentence of the lab that it breaks.
"""

from __future__ import annotations

from tests.phases.bank import Bank

PLAIN = {
    "scalar_adjoints": """
def scalar_adjoints(a, b):
    d = a * b + a
    dd = 2 * d
    return {"L": 1.0, "d": dd, "c": dd, "b": dd * a, "a": dd * b + dd}
""",
    "Tape": """
class Tape:
    def __init__(self):
        self.nodes = []

    def record(self, value, *edges):
        self.nodes.append((value, edges))
        return len(self.nodes) - 1

    def leaf(self, value):
        return self.record(value)

    def add(self, i, j):
        return self.record(self.value(i) + self.value(j), (i, 1.0), (j, 1.0))

    def mul(self, i, j):
        a, b = self.value(i), self.value(j)
        return self.record(a * b, (i, b), (j, a))

    def power(self, i, n):
        a = self.value(i)
        return self.record(a ** n, (i, n * a ** (n - 1)))

    def value(self, i):
        return self.nodes[i][0]

    def gradients(self, i):
        adjoint = [0.0] * len(self.nodes)
        adjoint[i] = 1.0
        for k in range(i, -1, -1):
            for j, local in self.nodes[k][1]:
                adjoint[j] += adjoint[k] * local
        return adjoint
""",
    "backward_order": """
def backward_order(graph, root):
    seen, to_see, users = {root}, [root], {root: 0}
    while to_see:
        for source in graph[to_see.pop()]:
            users[source] = users.get(source, 0) + 1
            if source not in seen:
                seen.add(source)
                to_see.append(source)
    ready, order = [root], []
    while ready:
        node = ready.pop()
        order.append(node)
        for source in graph[node]:
            users[source] -= 1
            if users[source] == 0:
                ready.append(source)
    return order
""",
    "unbroadcast": """
def unbroadcast(grad, shape):
    while grad.dim() > len(shape):
        grad = grad.sum(0)
    for dim, size in enumerate(shape):
        if size == 1 and grad.shape[dim] != 1:
            grad = grad.sum(dim, keepdim=True)
    return grad
""",
    "linear_vjp": """
def linear_vjp(grad_output, x, weight):
    g = grad_output.flatten(0, -2)
    return grad_output @ weight, g.T @ x.flatten(0, -2), g.sum(0)
""",
    "relu_vjp": """
def relu_vjp(grad_output, x):
    return torch.where(x > 0, grad_output, torch.zeros_like(grad_output))
""",
    "softmax_vjp": """
def softmax_vjp(grad_output, y):
    return y * (grad_output - (grad_output * y).sum(-1, keepdim=True))
""",
    "layer_norm_vjp": """
def layer_norm_vjp(grad_output, x, weight, eps):
    centred = x - x.mean(-1, keepdim=True)
    scale = 1 / torch.sqrt((centred ** 2).mean(-1, keepdim=True) + eps)
    normed = centred * scale
    g = grad_output * weight
    grad_x = g - g.mean(-1, keepdim=True) - normed * (g * normed).mean(-1, keepdim=True)
    over = tuple(range(x.dim() - 1))
    return grad_x * scale, (grad_output * normed).sum(over), grad_output.sum(over)
""",
    "numeric_vjp": """
def numeric_vjp(name, x, grad_output, h=1e-6):
    f = getattr(torch, name)
    x, grad_output = x.double(), grad_output.double()
    result = torch.zeros(x.shape, dtype=torch.float64)
    for k in range(x.numel()):
        nudge = torch.zeros(x.numel(), dtype=torch.float64)
        nudge[k] = h
        nudge = nudge.view(x.shape)
        slope = (f(x + nudge) - f(x - nudge)) / (2 * h)
        result.view(-1)[k] = (slope * grad_output).sum()
    return result
""",
    "Softmax": """
class Softmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.exp(x - x.logsumexp(-1, keepdim=True))
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        (y,) = ctx.saved_tensors
        return y * (grad_output - (grad_output * y).sum(-1, keepdim=True))
""",
    "run_softmax": """
def run_softmax(x, grad_output, direction=None):
    x = x.detach().requires_grad_()
    upstream = grad_output.detach().requires_grad_()
    y = Softmax.apply(x)
    (first,) = torch.autograd.grad(y, x, upstream, create_graph=True)
    found = {"node": y.grad_fn.name(), "output": y.detach(), "gradient": first.detach()}
    if direction is not None:
        found["of x"], found["of upstream"] = torch.autograd.grad(first, (x, upstream), direction)
    return found
""",
    "cross_entropy_vjp": """
def cross_entropy_vjp(grad_output, logits, targets):
    p = torch.softmax(logits, -1)
    p[torch.arange(len(targets)), targets] -= 1
    return p * grad_output / len(targets) if len(targets) else p
""",
    "lm_head_gradients": """
def lm_head_gradients(x, weight, bias, targets):
    logits = x @ weight.T + bias
    g = torch.softmax(logits, -1)
    g[torch.arange(len(targets)), targets] -= 1
    g = g / max(len(targets), 1)
    return {"x": g @ weight, "weight": g.T @ x, "bias": g.sum(0)}
""",
}

RIGHT: list[tuple[str, str, str]] = []
WRONG: list[tuple[str, str, str, str]] = []


def right(part: str, name: str, code: str) -> None:
    """Note a right answer."""
    RIGHT.append((part, name, code))


def wrong(part: str, name: str, broken: str, code: str) -> None:
    """Note a wrong answer and the sentence that it breaks."""
    WRONG.append((part, name, code, broken))


# -- 1: scalar adjoints

right(
    "scalar_adjoints",
    "complex steps",
    """
def scalar_adjoints(a, b):
    h = 2.0 ** -100
    of = lambda a, b: (a * b + a) ** 2
    d = a * b + a
    return {
        "L": 1, "d": ((d + h * 1j) ** 2).imag / h, "c": ((a * b + h * 1j + a) ** 2).imag / h,
        "b": of(a, b + h * 1j).imag / h, "a": of(a + h * 1j, b).imag / h,
    }
""",
)
right(
    "scalar_adjoints",
    "a table of edges",
    """
def scalar_adjoints(a, b):
    d = a * b + a
    edges = [("L", "d", d + d), ("d", "c", 1.0), ("d", "a", 1.0), ("c", "a", b), ("c", "b", a)]
    adjoint = dict.fromkeys("Ldcba", 0.0)
    adjoint["L"] = 1.0
    for user, used, local in edges:
        adjoint[used] += adjoint[user] * local
    return adjoint
""",
)
right(
    "scalar_adjoints",
    "a polynomial",
    '''
def scalar_adjoints(a, b):
    """L = a² (b + 1)²."""
    return dict(a=2 * a * (b + 1) ** 2, b=2 * a ** 2 * (b + 1), c=2 * a * (b + 1), d=2 * a * (b + 1), L=1)
''',
)
wrong(
    "scalar_adjoints",
    "a by way of c alone",
    "the derivative of L with respect to it",
    """
def scalar_adjoints(a, b):
    dd = 2 * (a * b + a)
    return {"L": 1.0, "d": dd, "c": dd, "b": dd * a, "a": dd * b}
""",
)
wrong(
    "scalar_adjoints",
    "the share by c overwritten",
    "the derivative of L with respect to it",
    """
def scalar_adjoints(a, b):
    grads = {"L": 1.0}
    grads["d"] = grads["L"] * 2 * (a * b + a)
    grads["c"] = grads["d"]
    grads["a"], grads["b"] = grads["c"] * b, grads["c"] * a
    grads["a"] = grads["d"]
    return grads
""",
)
wrong(
    "scalar_adjoints",
    "twice L over d",
    "It takes two floats, of any sign, 0 too",
    """
def scalar_adjoints(a, b):
    c = a * b
    d = c + a
    L = d ** 2
    dd = 2 * L / d if d else 2.0
    return {"L": 1.0, "d": dd, "c": dd, "b": dd * a, "a": dd * b + dd}
""",
)
wrong(
    "scalar_adjoints",
    "d is the root of L",
    "It takes two floats, of any sign, 0 too",
    """
def scalar_adjoints(a, b):
    L = (a * b + a) ** 2
    dd = 2 * L ** 0.5
    return {"L": 1.0, "d": dd, "c": dd, "b": dd * a, "a": dd * (b + 1)}
""",
)
wrong(
    "scalar_adjoints",
    "b's derivative as c over b",
    "It takes two floats, of any sign, 0 too",
    """
def scalar_adjoints(a, b):
    c = a * b
    dd = 2 * (c + a)
    return {"L": 1.0, "d": dd, "c": dd, "b": dd * c / b if b != 0 else 0.0, "a": dd * b + dd}
""",
)
wrong(
    "scalar_adjoints",
    "the value of L for its adjoint",
    "L grows by 1 when L grows by 1",
    """
def scalar_adjoints(a, b):
    c = a * b
    d = c + a
    return {"L": d ** 2, "d": 2 * d, "c": 2 * d, "b": 2 * d * a, "a": 2 * d * b + 2 * d}
""",
)
wrong(
    "scalar_adjoints",
    "tensors",
    "as plain numbers",
    """
def scalar_adjoints(a, b):
    a, b = torch.tensor(a), torch.tensor(b)
    dd = 2 * (a * b + a)
    return {"L": torch.tensor(1.0), "d": dd, "c": dd, "b": dd * a, "a": dd * b + dd}
""",
)
wrong(
    "scalar_adjoints",
    "nothing for L",
    'the adjoints of "L", "d", "c", "b" and "a"',
    """
def scalar_adjoints(a, b):
    dd = 2 * (a * b + a)
    return {"d": dd, "c": dd, "b": dd * a, "a": dd * b + dd}
""",
)

# -- 2: the tape

right(
    "Tape",
    "forward mode: each node carries its derivatives",
    """
class Tape:
    def __init__(self):
        self.values, self.rows = [], []

    def _note(self, value, parts):
        row = [0.0] * len(self.values) + [1.0]
        for i, local in parts:
            for k, g in enumerate(self.rows[i]):
                row[k] += local * g
        self.values.append(value)
        self.rows.append(row)
        return len(self.values) - 1

    def leaf(self, value):
        return self._note(value, [])

    def add(self, i, j):
        return self._note(self.values[i] + self.values[j], [(i, 1), (j, 1)])

    def mul(self, i, j):
        return self._note(self.values[i] * self.values[j], [(i, self.values[j]), (j, self.values[i])])

    def power(self, i, n):
        return self._note(self.values[i] ** n, [(i, n * self.values[i] ** (n - 1))])

    def value(self, i):
        return self.values[i]

    def gradients(self, i):
        return self.rows[i] + [0.0] * (len(self.values) - i - 1)
""",
)
right(
    "Tape",
    "closures on the tape",
    """
class Tape:
    def __init__(self):
        self.values = []
        self.backs = []

    def _push(self, value, back):
        self.values += [float(value)]
        self.backs += [back]
        return len(self.backs) - 1

    def leaf(self, value):
        return self._push(value, lambda g, out: None)

    def add(self, i, j):
        def back(g, out):
            out[i] += g
            out[j] += g
        return self._push(self.values[i] + self.values[j], back)

    def mul(self, i, j):
        a, b = self.values[i], self.values[j]

        def back(g, out):
            out[i] += g * b
            out[j] += g * a
        return self._push(a * b, back)

    def power(self, i, n):
        a = self.values[i]

        def back(g, out):
            out[i] += g * n * a ** (n - 1)
        return self._push(a ** n, back)

    def value(self, i):
        return self.values[i]

    def gradients(self, i):
        out = [0.0 for _ in self.values]
        out[i] = 1.0
        for k in reversed(range(i + 1)):
            self.backs[k](out[k], out)
        return out
""",
)
right(
    "Tape",
    "recursion over the paths",
    """
class Tape:
    def __init__(self):
        self.tape = []

    def leaf(self, value):
        self.tape.append(("leaf", value))
        return len(self.tape) - 1

    def add(self, i, j):
        self.tape.append(("add", i, j))
        return len(self.tape) - 1

    def mul(self, i, j):
        self.tape.append(("mul", i, j))
        return len(self.tape) - 1

    def power(self, i, n):
        self.tape.append(("power", i, n))
        return len(self.tape) - 1

    def value(self, i):
        match self.tape[i]:
            case "leaf", value:
                return value
            case "add", j, k:
                return self.value(j) + self.value(k)
            case "mul", j, k:
                return self.value(j) * self.value(k)
            case _, j, n:
                return self.value(j) ** n

    def derivative(self, i, by):
        if i == by:
            return 1.0
        match self.tape[i]:
            case "leaf", _:
                return 0.0
            case "add", j, k:
                return self.derivative(j, by) + self.derivative(k, by)
            case "mul", j, k:
                return self.derivative(j, by) * self.value(k) + self.value(j) * self.derivative(k, by)
            case _, j, n:
                return n * self.value(j) ** (n - 1) * self.derivative(j, by)

    def gradients(self, i):
        return [float(self.derivative(i, by)) for by in range(len(self.tape))]
""",
)
right(
    "Tape",
    "a matrix of local derivatives",
    """
class Tape:
    def __init__(self):
        self.values, self.locals = [], {}

    def _end(self, value):
        self.values.append(value)
        return len(self.values) - 1

    def _pay(self, user, used, local):
        self.locals[user, used] = self.locals.get((user, used), 0.0) + local

    def leaf(self, value):
        return self._end(value)

    def add(self, i, j):
        me = self._end(self.values[i] + self.values[j])
        self._pay(me, i, 1.0)
        self._pay(me, j, 1.0)
        return me

    def mul(self, i, j):
        me = self._end(self.values[i] * self.values[j])
        self._pay(me, i, self.values[j])
        self._pay(me, j, self.values[i])
        return me

    def power(self, i, n):
        me = self._end(self.values[i] ** n)
        self._pay(me, i, n * self.values[i] ** (n - 1))
        return me

    def value(self, i):
        return self.values[i]

    def gradients(self, i):
        n = len(self.values)
        local = torch.zeros(n, n, dtype=torch.float64)
        for (user, used), each in self.locals.items():
            local[user, used] = each
        # (1 - local)ᵀ g = e_i, and 1 - local is a triangle
        e = torch.zeros(n, 1, dtype=torch.float64)
        e[i] = 1
        return torch.linalg.solve_triangular((torch.eye(n).double() - local).T, e, upper=True)[:, 0].tolist()
""",
)


def tape(old: str, new: str, *more: str) -> str:
    """The plain tape with one piece or more exchanged."""
    pieces = (old, new, *more)
    code = PLAIN["Tape"]
    for before, after in zip(pieces[::2], pieces[1::2], strict=True):
        assert code.count(before) >= 1, before
        code = code.replace(before, after)
    return code


wrong(
    "Tape",
    "one list for all tapes",
    "two tapes know nothing of each other",
    tape(
        "def __init__(self):\n        self.nodes = []",
        "def __init__(self, nodes=[]):\n        self.nodes = nodes",
    ),
)
wrong(
    "Tape",
    "adjoints stay from question to question",
    "Asking twice must give the same answer twice",
    tape(
        "self.nodes = []",
        "self.nodes, self.adjoint = [], []",
        "self.nodes.append((value, edges))",
        "self.nodes.append((value, edges))\n        self.adjoint.append(0.0)",
        "adjoint = [0.0] * len(self.nodes)\n        adjoint[i]",
        "adjoint = self.adjoint\n        adjoint[i]",
        "return adjoint",
        "return list(adjoint)",
    ),
)
wrong(
    "Tape",
    "a list up to the asked node",
    "one for **every** node recorded so far",
    tape("[0.0] * len(self.nodes)", "[0.0] * (i + 1)"),
)
wrong(
    "Tape",
    "the second factor overwrites the first",
    "the derivative of node `i` with respect to it",
    tape(
        "for j, local in self.nodes[k][1]:\n                adjoint[j] += adjoint[k] * local",
        "new = {j: adjoint[j] + adjoint[k] * local for j, local in self.nodes[k][1]}\n"
        "            for j, g in new.items():\n                adjoint[j] = g",
    ),
)
wrong(
    "Tape",
    "gradients that do not add up",
    "every input's adjoint *grows by* something",
    tape("adjoint[j] += adjoint[k] * local", "adjoint[j] = adjoint[k] * local"),
)
wrong(
    "Tape",
    "power by way of a quotient",
    "Values may be 0",
    tape("n * a ** (n - 1)", "n * a ** n / a if a else 0.0"),
)
wrong(
    "Tape",
    "x + x is special only for mul",
    "the derivative of node `i` with respect to it",
    tape("(i, 1.0), (j, 1.0))", "*{i: 1.0, j: 1.0}.items())"),
)
wrong(
    "Tape",
    "power 1 records nothing",
    "each record a new node and return its number",
    tape(
        "a = self.value(i)\n        return self.record(a **",
        "a = self.value(i)\n        if n == 1:\n            return i\n        return self.record(a **",
    ),
)
wrong(
    "Tape",
    "power as repeated products",
    "each record a new node and return its number",
    tape(
        "a = self.value(i)\n        return self.record(a ** n, (i, n * a ** (n - 1)))",
        "k = i\n        for _ in range(n - 1):\n            k = self.mul(k, i)\n        return k",
    ),
)
wrong(
    "Tape",
    "whole numbers for 0 and 1",
    "`gradients(i)` is a list of floats",
    tape(
        "[0.0] * len",
        "[0] * len",
        "adjoint[i] = 1.0",
        "adjoint[i] = 1",
        "(i, 1.0), (j, 1.0)",
        "(i, 1), (j, 1)",
    ),
)
wrong(
    "Tape",
    "the first answer is kept",
    "More may be recorded after a question",
    tape(
        "self.nodes = []",
        "self.nodes, self.known = [], {}",
        "adjoint = [0.0]",
        "if i in self.known:\n            return self.known[i]\n        adjoint = [0.0]",
        "return adjoint",
        "self.known[i] = adjoint\n        return adjoint",
    ),
)
wrong(
    "Tape",
    "the last node is always asked",
    "the derivative of node `i` with respect to it",
    tape(
        "adjoint[i] = 1.0\n        for k in range(i, -1, -1)",
        "adjoint[-1] = 1.0\n        for k in range(len(adjoint) - 1, -1, -1)",
    ),
)
wrong(
    "Tape",
    "the number found by the value",
    "the first one recorded is node 0, the next is node 1",
    tape("return len(self.nodes) - 1", "return [v for v, _ in self.nodes].index(value)"),
)
wrong(
    "Tape",
    "equal leaves share a node",
    "each record a new node and return its number",
    tape(
        "return self.record(value)",
        "for k, (known, edges) in enumerate(self.nodes):\n            if known == value and not edges:\n                return k\n        return self.record(value)",
    ),
)
wrong(
    "Tape",
    "back from the front",
    "every user comes before what it uses",
    tape("range(i, -1, -1)", "range(i + 1)"),
)
wrong(
    "Tape",
    "a power goes through a log",
    "Values may be 0",
    tape(
        "return self.record(a ** n,",
        "return self.record(2.718281828459045 ** (n * __import__('math').log(a)),",
    ),
)
wrong(
    "Tape",
    "an odd power of a negative number",
    "the derivative of node `i` with respect to it",
    tape("n * a ** (n - 1)", "n * abs(a) ** (n - 1)"),
)
wrong(
    "Tape",
    "value gives a copy in float32",
    "`value(i)` is the value of node `i`",
    tape("return self.nodes[i][0]", "return torch.tensor(self.nodes[i][0]).item()"),
)
wrong(
    "Tape",
    "the asked node's own derivative is left out",
    "one for **every** node recorded so far",
    tape("return adjoint", "adjoint[i] = 0.0\n        return adjoint"),
)

# -- 3: the order

right(
    "backward_order",
    "depth first with two kinds of visits",
    """
def backward_order(graph, root):
    done, left, stack = set(), [], [(root, False)]
    while stack:
        node, leaving = stack.pop()
        if leaving:
            left.append(node)
        elif node not in done:
            done.add(node)
            stack.append((node, True))
            stack.extend((source, False) for source in graph[node])
    return left[::-1]
""",
)
right(
    "backward_order",
    "graphlib",
    """
from graphlib import TopologicalSorter


def backward_order(graph, root):
    found, new = {}, {root}
    while new:
        found |= {node: set(graph[node]) for node in new}
        new = {source for node in new for source in graph[node]} - found.keys()
    return list(TopologicalSorter(found).static_order())[::-1]
""",
)
right(
    "backward_order",
    "recursion with a higher limit",
    """
import sys


def backward_order(graph, root):
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(before + 2 * len(graph) + 100)
    done, left = set(), []

    def visit(node):
        done.add(node)
        for source in graph[node]:
            if source not in done:
                visit(source)
        left.append(node)

    visit(root)
    sys.setrecursionlimit(before)
    return left[::-1]
""",
)
right(
    "backward_order",
    "iterators on a stack",
    """
def backward_order(graph, root):
    order, entered, stack = [], {root}, [(root, iter(graph[root]))]
    while stack:
        node, inputs = stack[-1]
        for source in inputs:
            if source not in entered:
                entered.add(source)
                stack.append((source, iter(graph[source])))
                break
        else:
            order.insert(0, node)
            stack.pop()
    return order
""",
)
right(
    "backward_order",
    "eats the dict",
    """
from collections import Counter, deque


def backward_order(graph, root):
    needed = deque([root])
    mine = set()
    while needed:
        node = needed.popleft()
        if node not in mine:
            mine.add(node)
            needed.extend(graph[node])
    for node in list(graph):
        if node not in mine:
            del graph[node]
    waiting = Counter(source for inputs in graph.values() for source in inputs)
    order, ready = [], deque([root])
    while ready:
        node = ready.popleft()
        order.append(node)
        for source in graph.pop(node):
            waiting[source] -= 1
            if not waiting[source]:
                ready.append(source)
    return order
""",
)
right(
    "backward_order",
    "lists searched from end to end",
    """
def backward_order(graph, root):
    reach = [root]
    for node in reach:
        for source in graph[node]:
            if source not in reach:
                reach.append(source)
    users = {node: 0 for node in reach}
    for node in reach:
        for source in graph[node]:
            users[source] += 1
    order = [root]
    for node in order:
        for source in graph[node]:
            users[source] -= 1
            if users[source] == 0:
                order.append(source)
    return order
""",
)
ORDER = "none before a node that uses it"
wrong(
    "backward_order",
    "breadth first",
    ORDER,
    """
def backward_order(graph, root):
    order = [root]
    for node in order:
        order += [source for source in dict.fromkeys(graph[node]) if source not in order]
    return order
""",
)
wrong(
    "backward_order",
    "depth first, written down on arrival",
    ORDER,
    """
def backward_order(graph, root):
    order, stack = [], [root]
    while stack:
        node = stack.pop()
        if node not in order:
            order.append(node)
            stack += graph[node]
    return order
""",
)
wrong(
    "backward_order",
    "recursion",
    "Yours will be asked about six thousand",
    """
def backward_order(graph, root):
    done, left = set(), []

    def visit(node):
        if node not in done:
            done.add(node)
            for source in graph[node]:
                visit(source)
            left.append(node)

    visit(root)
    return left[::-1]
""",
)
wrong(
    "backward_order",
    "recursion with a limit of 5,000",
    "Yours will be asked about six thousand",
    """
import sys


def backward_order(graph, root):
    sys.setrecursionlimit(5000)
    done, left = set(), []

    def visit(node):
        if node not in done:
            done.add(node)
            for source in graph[node]:
                visit(source)
            left.append(node)

    visit(root)
    return left[::-1]
""",
)
wrong(
    "backward_order",
    "users counted in the whole dict",
    "a list of all nodes that `root` depends on",
    """
def backward_order(graph, root):
    users = {node: 0 for node in graph}
    for inputs in graph.values():
        for source in inputs:
            users[source] += 1
    order, ready = [], [root]
    while ready:
        node = ready.pop()
        order.append(node)
        for source in graph[node]:
            users[source] -= 1
            if users[source] == 0:
                ready.append(source)
    return order
""",
)
wrong(
    "backward_order",
    "users counted in the whole dict, those without users first",
    "Nodes that `root` does not depend on may be in the dict, and have no place in the list",
    """
def backward_order(graph, root):
    users = {node: 0 for node in graph}
    for inputs in graph.values():
        for source in inputs:
            users[source] += 1
    order, ready = [], [node for node in graph if users[node] == 0 and node != root] + [root]
    while ready:
        node = ready.pop()
        order.append(node)
        for source in graph[node]:
            users[source] -= 1
            if users[source] == 0:
                ready.append(source)
    return order[order.index(root):]
""",
)
wrong(
    "backward_order",
    "different users counted, each use taken off",
    "a name stands twice where an input is used twice",
    """
def backward_order(graph, root):
    reach = {root}
    todo = [root]
    while todo:
        for source in graph[todo.pop()]:
            if source not in reach:
                reach.add(source)
                todo.append(source)
    users = {node: sum(node in graph[other] for other in reach) for node in reach}
    order, ready = [], [root]
    while ready:
        node = ready.pop()
        if node not in order:
            order.append(node)
        for source in graph[node]:
            users[source] -= 1
            if users[source] == 0:
                ready.append(source)
    return order
""",
)
wrong(
    "backward_order",
    "each use counted, one taken off",
    "a name stands twice where an input is used twice",
    """
def backward_order(graph, root):
    users, seen, todo = {root: 0}, set(), [root]
    while todo:
        node = todo.pop()
        if node in seen:
            continue
        seen.add(node)
        for source in graph[node]:
            users[source] = users.get(source, 0) + 1
            todo.append(source)
    order, ready = [], [root]
    while ready:
        node = ready.pop()
        order.append(node)
        for source in set(graph[node]):
            users[source] -= 1
            if users[source] == 0:
                ready.append(source)
    return order
""",
)
wrong(
    "backward_order",
    "the dict from its end",
    "the order of the dict says nothing",
    """
def backward_order(graph, root):
    reach, todo = {root}, [root]
    while todo:
        for source in graph[todo.pop()]:
            if source not in reach:
                reach.add(source)
                todo.append(source)
    return [root] + [node for node in graph if node in reach and node != root]
""",
)
wrong(
    "backward_order",
    "by steps from the root",
    ORDER,
    """
def backward_order(graph, root):
    steps, level, k = {}, [root], 0
    while level:
        for node in level:
            steps.setdefault(node, k)
        level, k = {s for node in level for s in graph[node] if s not in steps}, k + 1
    return sorted(steps, key=steps.get)
""",
)
wrong(
    "backward_order",
    "nothing for a lone root",
    "`root` may use nothing at all",
    """
def backward_order(graph, root):
    if not graph[root]:
        return []
    done, left, stack = set(), [], [(root, False)]
    while stack:
        node, leaving = stack.pop()
        if leaving:
            left.append(node)
        elif node not in done:
            done.add(node)
            stack.append((node, True))
            stack.extend((source, False) for source in graph[node])
    return left[::-1]
""",
)
wrong(
    "backward_order",
    "marked when pushed",
    ORDER,
    """
def backward_order(graph, root):
    seen, left, stack = {root}, [], [(root, False)]
    while stack:
        node, leaving = stack.pop()
        if leaving:
            left.append(node)
            continue
        stack.append((node, True))
        for source in graph[node]:
            if source not in seen:
                seen.add(source)
                stack.append((source, False))
    return left[::-1]
""",
)
wrong(
    "backward_order",
    "met again, moved to the end",
    ORDER,
    """
def backward_order(graph, root):
    order, todo = {root: None}, [root]
    for node in todo:
        for source in graph[node]:
            if source in order:
                del order[source]
            else:
                todo.append(source)
            order[source] = None
    return list(order)
""",
)
wrong(
    "backward_order",
    "inputs first",
    "`root` itself first",
    """
def backward_order(graph, root):
    done, left, stack = set(), [], [(root, False)]
    while stack:
        node, leaving = stack.pop()
        if leaving:
            left.append(node)
        elif node not in done:
            done.add(node)
            stack.append((node, True))
            stack.extend((source, False) for source in graph[node])
    return left
""",
)
wrong(
    "backward_order",
    "an iterator",
    "Return a list of all nodes",
    """
def backward_order(graph, root):
    done, left, stack = set(), [], [(root, False)]
    while stack:
        node, leaving = stack.pop()
        if leaving:
            left.append(node)
        elif node not in done:
            done.add(node)
            stack.append((node, True))
            stack.extend((source, False) for source in graph[node])
    return reversed(left)
""",
)

# -- 4: unbroadcast

right(
    "unbroadcast",
    "sum_to_size",
    """
def unbroadcast(grad, shape):
    return grad.sum_to_size(shape)
""",
)
right(
    "unbroadcast",
    "all dimensions at once",
    """
def unbroadcast(grad, shape):
    aligned = (1,) * (grad.dim() - len(shape)) + tuple(shape)
    over = [k for k, n in enumerate(aligned) if n == 1]
    return grad.sum(dim=over, keepdim=True).reshape(shape) if over else grad
""",
)
right(
    "unbroadcast",
    "index_add by the place that was read",
    """
import math


def unbroadcast(grad, shape):
    place = torch.arange(math.prod(shape)).reshape(shape).expand(grad.shape)
    total = torch.zeros(math.prod(shape), dtype=torch.float64)
    total.index_add_(0, place.reshape(-1), grad.reshape(-1).double())
    return total.reshape(shape).to(grad.dtype)
""",
)
right(
    "unbroadcast",
    "einsum",
    """
def unbroadcast(grad, shape):
    letters = "abcdefghijklmnop"[: grad.dim()]
    lead = grad.dim() - len(shape)
    kept = "".join(c for c, n in zip(letters[lead:], shape) if n != 1)
    return torch.einsum(f"{letters}->{kept}", grad.double()).to(grad.dtype).reshape(shape)
""",
)
right(
    "unbroadcast",
    "recursion over the front",
    """
def unbroadcast(grad, shape):
    shape = tuple(shape)
    if grad.shape == shape:
        return grad.clone()
    if grad.dim() > len(shape):
        return unbroadcast(grad.sum(0), shape)
    k = next(k for k in range(len(shape)) if grad.shape[k] != shape[k])
    return unbroadcast(grad.sum(k, keepdim=True), shape)
""",
)
wrong(
    "unbroadcast",
    "sum over no dimensions is over all",
    "it may have done nothing",
    """
def unbroadcast(grad, shape):
    lead = grad.dim() - len(shape)
    over = tuple(range(lead)) + tuple(lead + k for k, n in enumerate(shape) if n == 1 and grad.shape[lead + k] > 1)
    return grad.sum(dim=over, keepdim=True).reshape(shape)
""",
)
wrong(
    "unbroadcast",
    "in float32",
    "the dtype of `grad`, which may be any floating-point dtype",
    """
def unbroadcast(grad, shape):
    out = grad.to(torch.float32)
    while out.dim() > len(shape):
        out = out.sum(0)
    for dim, size in enumerate(shape):
        if size == 1:
            out = out.sum(dim, keepdim=True)
    return out.to(grad.dtype)
""",
)
wrong(
    "unbroadcast",
    "half stays float32",
    "the dtype of `grad`, which may be any floating-point dtype",
    """
def unbroadcast(grad, shape):
    grad = grad.float() if grad.dtype in (torch.float16, torch.bfloat16) else grad
    return grad.sum_to_size(shape)
""",
)
wrong(
    "unbroadcast",
    "float16 stays float32, bfloat16 does not",
    "the dtype of `grad`, which may be any floating-point dtype",
    """
def unbroadcast(grad, shape):
    dtype = grad.dtype
    if dtype == torch.float16:
        grad = grad.float()
    out = grad.sum_to_size(shape)
    return out.to(dtype) if dtype == torch.bfloat16 else out
""",
)
wrong(
    "unbroadcast",
    "means",
    "`unbroadcast(grad, shape)`: the gradient for a tensor of `shape`",
    """
def unbroadcast(grad, shape):
    while grad.dim() > len(shape):
        grad = grad.sum(0)
    for dim, size in enumerate(shape):
        if size == 1 and grad.shape[dim] != 1:
            grad = grad.mean(dim, keepdim=True)
    return grad
""",
)
wrong(
    "unbroadcast",
    "only a size that grew",
    "batches of nothing",
    """
def unbroadcast(grad, shape):
    while grad.dim() > len(shape):
        grad = grad.sum(0)
    for dim, size in enumerate(shape):
        if grad.shape[dim] > size:
            grad = grad.sum(dim, keepdim=True)
    return grad
""",
)
wrong(
    "unbroadcast",
    "the first stretched dimension only",
    "stretched sizes of 1, or both",
    """
def unbroadcast(grad, shape):
    while grad.dim() > len(shape):
        grad = grad.sum(0)
    for dim, size in enumerate(shape):
        if grad.shape[dim] != size:
            grad = grad.sum(dim, keepdim=True)
            break
    return grad
""",
)
wrong(
    "unbroadcast",
    "aligned from the left",
    "Broadcasting may have put new dimensions in front",
    """
def unbroadcast(grad, shape):
    for dim, size in enumerate(shape):
        if size == 1:
            grad = grad.sum(dim, keepdim=True)
    while grad.dim() > len(shape):
        grad = grad.sum(-1)
    return grad
""",
)
wrong(
    "unbroadcast",
    "dimensions whose size is not in shape",
    "Broadcasting may have put new dimensions in front",
    """
def unbroadcast(grad, shape):
    over = [k for k, n in enumerate(grad.shape) if n not in shape]
    return grad.sum(dim=over).reshape(shape) if over else grad
""",
)
wrong(
    "unbroadcast",
    "one view of all that is new",
    "batches of nothing",
    """
def unbroadcast(grad, shape):
    if grad.dim() > len(shape):
        inner = grad.shape[grad.dim() - len(shape):]
        grad = grad.reshape(-1, *inner).sum(0)
    for dim, size in enumerate(shape):
        if size == 1 and grad.shape[dim] != 1:
            grad = grad.sum(dim, keepdim=True)
    return grad
""",
)
wrong(
    "unbroadcast",
    "squeezed",
    "The result has exactly `shape`",
    """
def unbroadcast(grad, shape):
    while grad.dim() > len(shape):
        grad = grad.sum(0)
    over = [k for k, n in enumerate(shape) if n == 1 and grad.shape[k] != 1]
    return grad.sum(over) if over else grad
""",
)
wrong(
    "unbroadcast",
    "rows until the count fits",
    "The result has exactly `shape`",
    """
import math


def unbroadcast(grad, shape):
    while grad.numel() > math.prod(shape):
        grad = grad.sum(0)
    return grad.reshape(shape)
""",
)
wrong(
    "unbroadcast",
    "the rows are added into the first",
    "None of your functions may change a tensor that it was given",
    """
def unbroadcast(grad, shape):
    while grad.dim() > len(shape):
        if len(grad) == 0:
            grad = grad.sum(0)
            continue
        for row in grad[1:]:
            grad[0] += row
        grad = grad[0]
    for dim, size in enumerate(shape):
        if size == 1:
            grad = grad.sum(dim, keepdim=True)
    return grad
""",
)
wrong(
    "unbroadcast",
    "view of what is not contiguous",
    "transposed, sliced and expanded tensors",
    """
def unbroadcast(grad, shape):
    lead = grad.dim() - len(shape)
    if lead > 1:
        rows = 1
        for n in grad.shape[:lead]:
            rows *= n
        grad = grad.view(rows, *grad.shape[lead:])
    if lead:
        grad = grad.sum(0)
    for dim, size in enumerate(shape):
        if size == 1 and grad.shape[dim] != 1:
            grad = grad.sum(dim, keepdim=True)
    return grad
""",
)
wrong(
    "unbroadcast",
    "one new dimension at most",
    "Broadcasting may have put new dimensions in front",
    """
def unbroadcast(grad, shape):
    if grad.dim() > len(shape):
        grad = grad.sum(0)
    for dim, size in enumerate(shape):
        if size == 1:
            grad = grad.sum(dim, keepdim=True)
    return grad.reshape(shape)
""",
)

# -- 5: linear

right(
    "linear_vjp",
    "einsum",
    """
def linear_vjp(grad_output, x, weight):
    return (
        torch.einsum("...k,ki->...i", grad_output, weight),
        torch.einsum("...k,...i->ki", grad_output, x),
        torch.einsum("...k->k", grad_output),
    )
""",
)
right(
    "linear_vjp",
    "tensordot",
    """
def linear_vjp(grad_output, x, weight):
    over = list(range(x.dim() - 1))
    grad_weight = torch.tensordot(grad_output, x, dims=(over, over))
    return torch.tensordot(grad_output, weight, dims=1), grad_weight, grad_output.sum(dim=over)
""",
)
right(
    "linear_vjp",
    "a sum of outer products",
    """
def linear_vjp(grad_output, x, weight):
    grad_x = torch.empty_like(x, memory_format=torch.contiguous_format)
    grad_weight, grad_bias = torch.zeros_like(weight), weight.new_zeros(len(weight))
    rows = grad_x.view(-1, x.shape[-1]) if x.numel() else []
    for out, g, row in zip(rows, grad_output.reshape(-1, len(weight)), x.reshape(-1, x.shape[-1])):
        out.copy_(weight.T.mv(g))
        grad_weight += torch.outer(g, row)
        grad_bias += g
    return grad_x, grad_weight, grad_bias
""",
)
right(
    "linear_vjp",
    "batched products, summed",
    """
def backward(grad, x, weight):
    return grad.matmul(weight), (grad.unsqueeze(-1) * x.unsqueeze(-2))


def linear_vjp(grad_output, x, weight):
    grad_x, each = backward(grad_output, x, weight)
    while each.dim() > 2:
        each = each.sum(0)
    b = grad_output
    while b.dim() > 1:
        b = b.sum(0)
    return grad_x, each, b
""",
)
wrong(
    "linear_vjp",
    "the weight's gradient turned",
    "each in the shape of what it belongs to",
    """
def linear_vjp(grad_output, x, weight):
    g = grad_output.flatten(0, -2)
    return grad_output @ weight, x.flatten(0, -2).T @ g, g.sum(0)
""",
)
wrong(
    "linear_vjp",
    "views",
    "transposed, sliced and expanded tensors",
    """
def linear_vjp(grad_output, x, weight):
    g, rows = grad_output.view(-1, weight.shape[0]), x.view(-1, weight.shape[1])
    return grad_output @ weight, g.T @ rows, g.sum(0)
""",
)
wrong(
    "linear_vjp",
    "a view of x",
    "transposed, sliced and expanded tensors",
    """
def linear_vjp(grad_output, x, weight):
    g, rows = grad_output.reshape(-1, weight.shape[0]), x.view(-1, weight.shape[1])
    return grad_output @ weight, g.T @ rows, g.sum(0)
""",
)
wrong(
    "linear_vjp",
    "the bias summed over the first dimension",
    "with one or more dimensions in front",
    """
def linear_vjp(grad_output, x, weight):
    g = grad_output.flatten(0, -2)
    return grad_output @ weight, g.T @ x.flatten(0, -2), grad_output.sum(0)
""",
)
wrong(
    "linear_vjp",
    "three dimensions at most",
    "with one or more dimensions in front",
    """
def linear_vjp(grad_output, x, weight):
    grad_x = grad_output @ weight
    if x.dim() == 3:
        x, grad_output = x.flatten(0, 1), grad_output.flatten(0, 1)
    return grad_x, grad_output.transpose(-1, -2) @ x, grad_output.sum(0)
""",
)
wrong(
    "linear_vjp",
    "the mean over rows for the bias",
    "the gradients for `x`, `weight` and `bias`",
    """
def linear_vjp(grad_output, x, weight):
    g = grad_output.flatten(0, -2)
    return grad_output @ weight, g.T @ x.flatten(0, -2), g.mean(0)
""",
)
wrong(
    "linear_vjp",
    "the transposed weight",
    "the gradients for `x`, `weight` and `bias`",
    """
def linear_vjp(grad_output, x, weight):
    g = grad_output.flatten(0, -2)
    return grad_output @ weight.T, g.T @ x.flatten(0, -2), g.sum(0)
""",
)
wrong(
    "linear_vjp",
    "a squeezed bias",
    "each in the shape of what it belongs to",
    """
def linear_vjp(grad_output, x, weight):
    g = grad_output.flatten(0, -2)
    return grad_output @ weight, g.T @ x.flatten(0, -2), g.sum(0).squeeze()
""",
)
wrong(
    "linear_vjp",
    "a squeezed gradient for x",
    "each in the shape of what it belongs to",
    """
def linear_vjp(grad_output, x, weight):
    g = grad_output.flatten(0, -2)
    grad_x = (grad_output.unsqueeze(-2) @ weight).squeeze()
    return grad_x, g.T @ x.flatten(0, -2), g.sum(0)
""",
)
wrong(
    "linear_vjp",
    "ones of float32",
    "or all are float64",
    """
def linear_vjp(grad_output, x, weight):
    g = grad_output.flatten(0, -2)
    return grad_output @ weight, g.T @ x.flatten(0, -2), torch.ones(len(g)) @ g
""",
)
wrong(
    "linear_vjp",
    "collected in float32",
    "and so is what you return",
    """
def linear_vjp(grad_output, x, weight):
    grad_weight = torch.zeros(weight.shape)
    g = grad_output.flatten(0, -2)
    grad_weight += g.T @ x.flatten(0, -2)
    return grad_output @ weight, grad_weight, g.sum(0)
""",
)
wrong(
    "linear_vjp",
    "the gradient for x stays flat",
    "each in the shape of what it belongs to",
    """
def linear_vjp(grad_output, x, weight):
    grad_output, x = grad_output.flatten(0, -2), x.flatten(0, -2)
    return grad_output @ weight, grad_output.T @ x, grad_output.sum(0)
""",
)
wrong(
    "linear_vjp",
    "bias before weight",
    "in this order",
    """
def linear_vjp(grad_output, x, weight):
    g = grad_output.flatten(0, -2)
    return grad_output @ weight, g.sum(0), g.T @ x.flatten(0, -2)
""",
)
wrong(
    "linear_vjp",
    "autograd asked",
    "your answers use neither `torch.autograd` nor `torch.func`",
    """
def linear_vjp(grad_output, x, weight):
    x, weight = x.clone().requires_grad_(), weight.clone().requires_grad_()
    bias = torch.zeros(len(weight), dtype=x.dtype, requires_grad=True)
    return torch.autograd.grad(torch.nn.functional.linear(x, weight, bias), (x, weight, bias), grad_output)
""",
)
wrong(
    "linear_vjp",
    "a name put together",
    "code that hides it",
    """
def linear_vjp(grad_output, x, weight):
    x, weight = x.clone(), weight.clone()
    bias = torch.zeros(len(weight), dtype=x.dtype)
    for t in (x, weight, bias):
        t.requires_grad = True
    ask = getattr(getattr(torch, "auto" + "grad"), "gr" + "ad")
    return ask(x @ weight.T + bias, (x, weight, bias), grad_output)
""",
)
wrong(
    "linear_vjp",
    "rows stacked one by one",
    "batches of nothing",
    """
def linear_vjp(grad_output, x, weight):
    g, rows = grad_output.flatten(0, -2), x.flatten(0, -2)
    outer = torch.stack([torch.outer(a, b) for a, b in zip(g, rows)])
    return grad_output @ weight, outer.sum(0), g.sum(0)
""",
)
wrong(
    "linear_vjp",
    "the incoming gradient is emptied on the way",
    "None of your functions may change a tensor that it was given",
    """
def linear_vjp(grad_output, x, weight):
    grad_x, grad_weight = grad_output @ weight, grad_output.flatten(0, -2).T @ x.flatten(0, -2)
    if grad_output.dim() > 2:
        grad_output = grad_output.flatten(0, -2)
    total = grad_output[0] if len(grad_output) else grad_output.sum(0)
    for row in grad_output[1:]:
        total += row
    return grad_x, grad_weight, total
""",
)

# -- 7: relu and softmax

right(
    "relu_vjp",
    "a mask multiplied",
    """
def relu_vjp(grad_output, x):
    return grad_output * (x > 0).to(grad_output.dtype)
""",
)
right(
    "relu_vjp",
    "filled in a copy",
    """
def relu_vjp(grad_output, x):
    result = grad_output.clone()
    result[x <= 0] = 0
    return result
""",
)
right(
    "relu_vjp",
    "heaviside",
    """
def relu_vjp(grad_output, x):
    return torch.heaviside(x, x.new_zeros(())) * grad_output
""",
)
right(
    "relu_vjp",
    "the sign of the output",
    """
def relu_vjp(grad_output, x):
    return x.relu().sign().mul(grad_output)
""",
)
wrong(
    "relu_vjp",
    "1 at zero",
    "PyTorch decided for one value, and so should you",
    """
def relu_vjp(grad_output, x):
    return grad_output * (x >= 0)
""",
)
wrong(
    "relu_vjp",
    "a half at zero",
    "PyTorch decided for one value, and so should you",
    """
def relu_vjp(grad_output, x):
    return grad_output * (x.sign() + 1) / 2
""",
)
wrong(
    "relu_vjp",
    "the sign bit",
    "At exactly 0, and at −0",
    """
def relu_vjp(grad_output, x):
    return torch.where(torch.signbit(x), torch.zeros_like(grad_output), grad_output)
""",
)
wrong(
    "relu_vjp",
    "minus zero counts as positive",
    "At exactly 0, and at −0",
    """
def relu_vjp(grad_output, x):
    return grad_output * ((x > 0) | ((x == 0) & torch.signbit(x)))
""",
)
wrong(
    "relu_vjp",
    "a tolerance",
    "where the output was `relu(x)`",
    """
def relu_vjp(grad_output, x):
    return grad_output * (x > 1e-7)
""",
)
wrong(
    "relu_vjp",
    "a tolerance below the smallest visible number",
    "where the output was `relu(x)`",
    """
def relu_vjp(grad_output, x):
    return grad_output * (x > 1e-12)
""",
)
wrong(
    "relu_vjp",
    "over x",
    "At exactly 0, and at −0",
    """
def relu_vjp(grad_output, x):
    return grad_output * torch.relu(x) / x
""",
)
wrong(
    "relu_vjp",
    "zeros written into what came",
    "None of your functions may change a tensor that it was given",
    """
def relu_vjp(grad_output, x):
    grad_output[x <= 0] = 0
    return grad_output
""",
)
wrong(
    "relu_vjp",
    "ones and zeros written into x",
    "None of your functions may change a tensor that it was given",
    """
def relu_vjp(grad_output, x):
    positive = x > 0
    x[positive] = 1
    x[~positive] = 0
    return grad_output * x
""",
)
wrong(
    "relu_vjp",
    "the slope without the incoming gradient",
    "The incoming gradients matter most",
    """
def relu_vjp(grad_output, x):
    return (x > 0).to(x.dtype)
""",
)
wrong(
    "relu_vjp",
    "relu of the gradient",
    "the gradient for `x` of any shape",
    """
def relu_vjp(grad_output, x):
    return torch.relu(grad_output)
""",
)
wrong(
    "relu_vjp",
    "relu of the gradient where x is positive",
    "the gradient for `x` of any shape",
    """
def relu_vjp(grad_output, x):
    return torch.relu(grad_output) * (x > 0)
""",
)
wrong(
    "relu_vjp",
    "row by row",
    "of any shape",
    """
def relu_vjp(grad_output, x):
    rows = [g * (row > 0) for g, row in zip(grad_output, x)]
    return torch.stack(rows) if rows else torch.zeros_like(x)
""",
)
wrong(
    "relu_vjp",
    "flat by view",
    "transposed, sliced and expanded tensors",
    """
def relu_vjp(grad_output, x):
    out = [g if v > 0 else 0.0 for g, v in zip(grad_output.view(-1).tolist(), x.view(-1).tolist())]
    return torch.tensor(out, dtype=x.dtype).view(x.shape)
""",
)
wrong(
    "relu_vjp",
    "torch's own way back",
    "nor the functions that torch itself calls on the way back",
    """
def relu_vjp(grad_output, x):
    return torch.ops.aten.threshold_backward(grad_output, x, 0)
""",
)
wrong(
    "relu_vjp",
    "float32 always",
    "or all are float64, and so is what you return",
    """
def relu_vjp(grad_output, x):
    result = torch.zeros(x.shape)
    result[x > 0] = grad_output[x > 0].float()
    return result
""",
)

right(
    "softmax_vjp",
    "the full Jacobian",
    """
def softmax_vjp(grad_output, y):
    jacobian = torch.diag_embed(y) - y.unsqueeze(-1) * y.unsqueeze(-2)
    return (jacobian @ grad_output.unsqueeze(-1)).squeeze(-1)
""",
)
right(
    "softmax_vjp",
    "a dot product by matmul",
    """
def softmax_vjp(grad_output, y):
    dot = y.unsqueeze(-2) @ grad_output.unsqueeze(-1)
    return torch.addcmul(y * grad_output, y, dot.squeeze(-1), value=-1)
""",
)
right(
    "softmax_vjp",
    "einsum",
    """
def softmax_vjp(grad_output, y):
    return torch.einsum("...j,...j->...j", y, grad_output) - torch.einsum("...i,...i,...j->...j", y, grad_output, y)
""",
)
wrong(
    "softmax_vjp",
    "dimension 1",
    "over the last dimension",
    """
def softmax_vjp(grad_output, y):
    dim = 1 if y.dim() > 1 else 0
    return y * (grad_output - (grad_output * y).sum(dim, keepdim=True))
""",
)
wrong(
    "softmax_vjp",
    "the last but one from four dimensions",
    "over the last dimension",
    """
def softmax_vjp(grad_output, y):
    dim = min(y.dim() - 1, 2)
    return y * (grad_output - (grad_output * y).sum(dim, keepdim=True))
""",
)
wrong(
    "softmax_vjp",
    "no keepdim",
    "Every output depends on every input of its row",
    """
def softmax_vjp(grad_output, y):
    return y * (grad_output - (grad_output * y).sum(-1))
""",
)
wrong(
    "softmax_vjp",
    "the diagonal alone",
    "Every output depends on every input of its row",
    """
def softmax_vjp(grad_output, y):
    return grad_output * y * (1 - y)
""",
)
wrong(
    "softmax_vjp",
    "the sum of the gradient alone",
    "multiply the formula by the incoming gradient, sum over i",
    """
def softmax_vjp(grad_output, y):
    return y * (grad_output - grad_output.sum(-1, keepdim=True))
""",
)
wrong(
    "softmax_vjp",
    "a mean",
    "multiply the formula by the incoming gradient, sum over i",
    """
def softmax_vjp(grad_output, y):
    return y * (grad_output - (grad_output * y).mean(-1, keepdim=True))
""",
)
wrong(
    "softmax_vjp",
    "log softmax's",
    "the gradient for the input of `softmax`",
    """
def softmax_vjp(grad_output, y):
    return grad_output - y * grad_output.sum(-1, keepdim=True)
""",
)
wrong(
    "softmax_vjp",
    "the sum over everything",
    "Every output depends on every input of its row",
    """
def softmax_vjp(grad_output, y):
    return y * (grad_output - (grad_output * y).sum())
""",
)
wrong(
    "softmax_vjp",
    "softmax again, of the output",
    "where `y` (…, n) is its **output**",
    """
def softmax_vjp(grad_output, y):
    y = torch.softmax(y, -1)
    return y * (grad_output - (grad_output * y).sum(-1, keepdim=True))
""",
)
wrong(
    "softmax_vjp",
    "a small number against logs of 0",
    "and so is what you return",
    """
def softmax_vjp(grad_output, y):
    y = torch.softmax(torch.log(y + 1e-3), -1)
    return y * (grad_output - (grad_output * y).sum(-1, keepdim=True))
""",
)
wrong(
    "softmax_vjp",
    "written into y",
    "None of your functions may change a tensor that it was given",
    """
def softmax_vjp(grad_output, y):
    dot = (grad_output * y).sum(-1, keepdim=True)
    return y.mul_(grad_output - dot)
""",
)
wrong(
    "softmax_vjp",
    "written into the gradient",
    "None of your functions may change a tensor that it was given",
    """
def softmax_vjp(grad_output, y):
    grad_output -= (grad_output * y).sum(-1, keepdim=True)
    return y * grad_output
""",
)
wrong(
    "softmax_vjp",
    "everything of size 1 squeezed",
    "sizes of 1",
    """
def softmax_vjp(grad_output, y):
    jacobian = torch.diag_embed(y) - y.unsqueeze(-1) * y.unsqueeze(-2)
    return (grad_output.unsqueeze(-2) @ jacobian).squeeze()
""",
)
wrong(
    "softmax_vjp",
    "rows stacked",
    "batches of nothing",
    """
def softmax_vjp(grad_output, y):
    if y.dim() == 1:
        return y * (grad_output - grad_output @ y)
    return torch.stack([softmax_vjp(g, row) for g, row in zip(grad_output, y)])
""",
)
wrong(
    "softmax_vjp",
    "rows by flatten",
    "where `y` (…, n) is its **output**",
    """
def softmax_vjp(grad_output, y):
    g, rows = grad_output.flatten(0, -2), y.flatten(0, -2)
    return (rows * g - rows * (rows[:, None] @ g[:, :, None])[:, 0]).reshape(y.shape)
""",
)
wrong(
    "softmax_vjp",
    "torch's own way back",
    "nor the functions that torch itself calls on the way back",
    """
def softmax_vjp(grad_output, y):
    return torch._softmax_backward_data(grad_output, y, -1, y.dtype)
""",
)
wrong(
    "softmax_vjp",
    "the Jacobian on the wrong side of a product of batches",
    "multiply the formula by the incoming gradient",
    """
def softmax_vjp(grad_output, y):
    outer = y.unsqueeze(-1) * y.unsqueeze(-2)
    return grad_output * y - outer.sum(-1) * grad_output
""",
)

# -- 8: LayerNorm

right(
    "layer_norm_vjp",
    "three ways, each on its own",
    """
def layer_norm_vjp(grad_output, x, weight, eps):
    n = x.shape[-1]
    mu = x.mean(-1, keepdim=True)
    var = ((x - mu) ** 2).sum(-1, keepdim=True) / n
    sd = (var + eps) ** 0.5
    xhat = (x - mu) / sd
    g = grad_output * weight
    g_var = (g * (x - mu)).sum(-1, keepdim=True) * (-0.5) * (var + eps) ** -1.5
    g_mu = -(g / sd).sum(-1, keepdim=True) + g_var * (-2 / n) * (x - mu).sum(-1, keepdim=True)
    grad_x = g / sd + g_var * 2 / n * (x - mu) + g_mu / n
    grad_w, grad_b = grad_output * xhat, grad_output
    while grad_b.dim() > 1:
        grad_w, grad_b = grad_w.sum(0), grad_b.sum(0)
    return grad_x, grad_w, grad_b
""",
)
right(
    "layer_norm_vjp",
    "a projection that is not quite one",
    """
def layer_norm_vjp(grad_output, x, weight, eps):
    n = x.shape[-1]
    centre = torch.eye(n, dtype=x.dtype) - torch.full((n, n), 1 / n, dtype=x.dtype)
    rows, up = x.flatten(0, -2), grad_output.flatten(0, -2)
    away = (rows - rows.mean(1, keepdim=True)) @ centre
    rate = (away.square().mean(1, keepdim=True) + eps).rsqrt()
    hat = away * rate
    back = (up * weight) @ centre
    back = rate * (back - hat * (hat * back).mean(1, keepdim=True))
    return back.view(x.shape), torch.einsum("ri,ri->i", up, hat), torch.einsum("ri->i", up)
""",
)
right(
    "layer_norm_vjp",
    "torch's layer_norm for the rows",
    """
def layer_norm_vjp(grad_output, x, weight, eps):
    n = x.shape[-1]
    hat = torch.nn.functional.layer_norm(x, (n,), eps=eps)
    variance, mean = torch.var_mean(x, -1, correction=0, keepdim=True)
    g = grad_output * weight
    g = g - hat * (g * hat).mean(-1, keepdim=True)
    g = (g - g.mean(-1, keepdim=True)) / torch.sqrt(variance + eps)
    return g, (grad_output * hat).sum_to_size(n), grad_output.sum_to_size(n)
""",
)
right(
    "layer_norm_vjp",
    "the Jacobian of a row",
    """
def layer_norm_vjp(grad_output, x, weight, eps):
    n = x.shape[-1]
    grads, gw, gb = [], torch.zeros_like(weight), torch.zeros_like(weight)
    for row, g in zip(x.reshape(-1, n), grad_output.reshape(-1, n)):
        away = row - row.mean()
        sd = torch.sqrt((away @ away) / n + eps)
        jacobian = (torch.eye(n, dtype=x.dtype) - 1 / n) / sd - torch.outer(away, away) / (n * sd ** 3)
        grads.append((g * weight) @ jacobian)
        gw = gw + g * away / sd
        gb = gb + g
    return (torch.stack(grads).reshape(x.shape) if grads else torch.zeros_like(x)), gw, gb
""",
)


def norm(*pieces: str) -> str:
    """The plain LayerNorm with pieces exchanged."""
    code = PLAIN["layer_norm_vjp"]
    for before, after in zip(pieces[::2], pieces[1::2], strict=True):
        assert code.count(before) >= 1, before
        code = code.replace(before, after)
    return code


WAYS = "For `x` there are three ways from an entry to the loss"
MEAN, ALONG = " - g.mean(-1, keepdim=True)", " - normed * (g * normed).mean(-1, keepdim=True)"
wrong("layer_norm_vjp", "straight alone", WAYS, norm(MEAN, "", ALONG, ""))
wrong("layer_norm_vjp", "no way by the variance", WAYS, norm(ALONG, ""))
wrong("layer_norm_vjp", "no way by the mean", WAYS, norm(MEAN, ""))
wrong(
    "layer_norm_vjp",
    "divided by n - 1",
    "divided by n, not by n − 1",
    norm("(centred ** 2).mean(-1, keepdim=True)", "x.var(-1, keepdim=True)"),
)
wrong(
    "layer_norm_vjp",
    "n - 1 corrected afterwards",
    "sizes of 1",
    norm(
        "(centred ** 2).mean(-1, keepdim=True)",
        "x.var(-1, keepdim=True) * (x.shape[-1] - 1) / x.shape[-1]",
    ),
)
wrong(
    "layer_norm_vjp",
    "eps outside the root",
    "the formula of x̂",
    norm(
        "torch.sqrt((centred ** 2).mean(-1, keepdim=True) + eps)",
        "(torch.sqrt((centred ** 2).mean(-1, keepdim=True)) + eps)",
    ),
)
wrong(
    "layer_norm_vjp",
    "eps squared under the root",
    "`eps` may be large or small",
    norm("+ eps)", "+ eps ** 2)"),
)
wrong("layer_norm_vjp", "no eps", "A row may be constant", norm(" + eps)", ")"))
wrong("layer_norm_vjp", "eps fixed", "`eps` may be large or small", norm("+ eps)", "+ 1e-5)"))
wrong(
    "layer_norm_vjp",
    "the mean of squares less the square of the mean",
    "in float64 rows may lie far from 0",
    norm(
        "(centred ** 2).mean(-1, keepdim=True)",
        "((x ** 2).mean(-1, keepdim=True) - x.mean(-1, keepdim=True) ** 2).clamp(min=0)",
    ),
)
wrong(
    "layer_norm_vjp",
    "corrections without the weight",
    "y = w ⊙ x̂ + b",
    norm(
        MEAN,
        " - grad_output.mean(-1, keepdim=True)",
        ALONG,
        " - normed * (grad_output * normed).mean(-1, keepdim=True)",
    ),
)
wrong(
    "layer_norm_vjp",
    "the weight at the end",
    "y = w ⊙ x̂ + b",
    norm(
        "g = grad_output * weight",
        "g = grad_output",
        "return grad_x * scale",
        "return grad_x * scale * weight",
    ),
)
wrong(
    "layer_norm_vjp",
    "the weight's sum over the first dimension",
    "with one or more dimensions in front",
    norm("(grad_output * normed).sum(over)", "(grad_output * normed).sum(0)"),
)
wrong(
    "layer_norm_vjp",
    "two or three dimensions",
    "with one or more dimensions in front",
    norm("over = tuple(range(x.dim() - 1))", "over = (0, 1) if x.dim() > 2 else 0"),
)
wrong(
    "layer_norm_vjp",
    "x for x̂ in the weight",
    "the gradients for `x` (…, n)",
    norm("(grad_output * normed)", "(grad_output * x)"),
)
wrong(
    "layer_norm_vjp",
    "centred but not scaled in the weight",
    "y = w ⊙ x̂ + b",
    norm("(grad_output * normed).sum", "(grad_output * centred).sum"),
)
wrong(
    "layer_norm_vjp",
    "the part along the row taken off whole",
    "`eps` may be large or small",
    norm(
        ALONG,
        " - normed * (g * normed).sum(-1, keepdim=True) / (normed ** 2).sum(-1, keepdim=True).clamp(min=1e-30)",
    ),
)
wrong(
    "layer_norm_vjp",
    "the part along the row over its own length",
    "A row may be constant",
    norm(
        ALONG,
        " - normed * (g * normed).sum(-1, keepdim=True) / (normed ** 2).sum(-1, keepdim=True)",
    ),
)
wrong(
    "layer_norm_vjp",
    "a sum for a mean along the row",
    WAYS,
    norm(ALONG, " - normed * (g * normed).sum(-1, keepdim=True)"),
)
wrong(
    "layer_norm_vjp",
    "not divided by the deviation",
    "The result is still to be divided by the deviation",
    norm("return grad_x * scale,", "return grad_x,"),
)
wrong(
    "layer_norm_vjp",
    "divided by the variance",
    "The result is still to be divided by the deviation",
    norm("return grad_x * scale,", "return grad_x * scale ** 2,"),
)
wrong(
    "layer_norm_vjp",
    "in float32",
    "or all are float64, and so is what you return",
    norm(
        "centred = x -",
        "dtype = x.dtype\n    x, grad_output, weight = x.float(), grad_output.float(), weight.float()\n    centred = x -",
        "return grad_x * scale, (grad_output * normed).sum(over), grad_output.sum(over)",
        "return (grad_x * scale).to(dtype), (grad_output * normed).sum(over).to(dtype), grad_output.sum(over).to(dtype)",
    ),
)
wrong(
    "layer_norm_vjp",
    "the bias hears the weight",
    "the gradients for `x` (…, n)",
    norm("grad_output.sum(over)", "g.sum(over)"),
)
wrong(
    "layer_norm_vjp",
    "the weight's by a quotient",
    "a weight may be 0",
    norm("(grad_output * normed).sum(over)", "(g * normed).sum(over) / weight"),
)
wrong(
    "layer_norm_vjp",
    "the mean is taken off x",
    "None of your functions may change a tensor that it was given",
    norm(
        "centred = x - x.mean",
        "centred = x.sub_(x.mean",
        "(-1, keepdim=True)\n    scale",
        "(-1, keepdim=True))\n    scale",
    ),
)
wrong(
    "layer_norm_vjp",
    "the weight multiplied into what came",
    "None of your functions may change a tensor that it was given",
    """
def layer_norm_vjp(grad_output, x, weight, eps):
    over = tuple(range(x.dim() - 1))
    centred = x - x.mean(-1, keepdim=True)
    scale = 1 / torch.sqrt((centred ** 2).mean(-1, keepdim=True) + eps)
    normed = centred * scale
    grad_weight, grad_bias = (grad_output * normed).sum(over), grad_output.sum(over)
    g = grad_output.mul_(weight)
    grad_x = g - g.mean(-1, keepdim=True) - normed * (g * normed).mean(-1, keepdim=True)
    return grad_x * scale, grad_weight, grad_bias
""",
)
wrong(
    "layer_norm_vjp",
    "means over rows",
    "the gradients for `x` (…, n)",
    norm(
        "(grad_output * normed).sum(over), grad_output.sum(over)",
        "(grad_output * normed).mean(over), grad_output.mean(over)",
    ),
)
wrong(
    "layer_norm_vjp",
    "the variance's way without its mean",
    WAYS,
    norm("(g * normed).mean(-1, keepdim=True)", "(g * normed)"),
)
wrong(
    "layer_norm_vjp",
    "torch's own way back",
    "such as `native_layer_norm_backward`",
    """
def layer_norm_vjp(grad_output, x, weight, eps):
    var, mean = torch.var_mean(x, -1, correction=0, keepdim=True)
    bias = torch.zeros_like(weight)
    return torch.ops.aten.native_layer_norm_backward(
        grad_output, x, [x.shape[-1]], mean, (var + eps).rsqrt(), weight, bias, [True, True, True])
""",
)

# -- 9: nudging

right(
    "numeric_vjp",
    "a copy, written through a view",
    """
def numeric_vjp(name, x, grad_output, h=1e-6):
    f, g = getattr(torch, name), grad_output.to(torch.float64)
    base = x.to(torch.float64).contiguous()
    answers = []
    for k in range(base.numel()):
        plus, minus = base.clone(), base.clone()
        plus.view(-1)[k] += h
        minus.view(-1)[k] -= h
        answers.append(((f(plus) - f(minus)) * g).sum().item() / (2 * h))
    return torch.tensor(answers, dtype=torch.float64).reshape(x.shape)
""",
)
right(
    "numeric_vjp",
    "over every index",
    """
import itertools


def numeric_vjp(name, x, grad_output, h=1e-6):
    x, grad_output = x.double(), grad_output.double()
    result = torch.empty(x.shape, dtype=torch.float64)
    for index in itertools.product(*(range(n) for n in x.shape)):
        e = torch.zeros_like(result)
        e[index] = h
        difference = getattr(torch, name)(x + e) - getattr(torch, name)(x - e)
        result[index] = (difference * grad_output / (2 * h)).sum()
    return result
""",
)
right(
    "numeric_vjp",
    "rows of an identity",
    """
def numeric_vjp(name, x, grad_output, h=1e-6):
    f, x, g = getattr(torch, name), x.detach().double(), grad_output.detach().double()
    steps = torch.eye(x.numel(), dtype=torch.float64).mul(h).reshape(-1, *x.shape) if x.numel() else []
    parts = [torch.sum(g * (f(x + step) - f(x - step))) for step in steps]
    return (torch.stack(parts) / (2 * h)).reshape(x.shape) if parts else torch.zeros_like(x)
""",
)


def nudge(*pieces: str) -> str:
    """The plain numeric_vjp with pieces exchanged."""
    code = PLAIN["numeric_vjp"]
    for before, after in zip(pieces[::2], pieces[1::2], strict=True):
        assert code.count(before) >= 1, before
        code = code.replace(before, after)
    return code


wrong(
    "numeric_vjp",
    "one-sided",
    "the formula: f(x + h e_i) − f(x − h e_i)",
    nudge("(f(x + nudge) - f(x - nudge)) / (2 * h)", "(f(x + nudge) - f(x)) / h"),
)
wrong(
    "numeric_vjp",
    "in float32",
    "The result has the shape of `x` and is **float64**, and so is all the arithmetic",
    nudge(
        "x, grad_output = x.double(), grad_output.double()",
        "grad_output = grad_output.double()",
        "torch.zeros(x.numel(), dtype=torch.float64)",
        "torch.zeros(x.numel(), dtype=x.dtype)",
    ),
)
wrong(
    "numeric_vjp",
    "nudged in float32, then float64",
    "turn what comes in to float64 before you do anything else",
    nudge(
        "x, grad_output = x.double(), grad_output.double()",
        "grad_output = grad_output.double()",
        "nudge = nudge.view(x.shape)",
        "nudge = nudge.view(x.shape).to(x.dtype)",
        "f(x + nudge) - f(x - nudge)",
        "f((x + nudge).double()) - f((x - nudge).double())",
    ),
)
wrong(
    "numeric_vjp",
    "the incoming gradient left out",
    "grad_output_k",
    nudge("(slope * grad_output).sum()", "slope.sum()"),
)
wrong(
    "numeric_vjp",
    "all entries at once",
    "One input may move many outputs",
    """
def numeric_vjp(name, x, grad_output, h=1e-6):
    f = getattr(torch, name)
    x, grad_output = x.double(), grad_output.double()
    return grad_output * (f(x + h) - f(x - h)) / (2 * h)
""",
)
wrong(
    "numeric_vjp",
    "written into x and back",
    "`x` must be left as it was",
    """
def numeric_vjp(name, x, grad_output, h=1e-6):
    f = getattr(torch, name)
    x, grad_output = x.double(), grad_output.double()
    flat = x if x.is_contiguous() else x.contiguous()
    x, flat = flat, flat.view(-1)
    result = torch.zeros(x.shape, dtype=torch.float64)
    for k in range(flat.numel()):
        flat[k] += h
        plus = f(x).clone()
        flat[k] -= 2 * h
        minus = f(x).clone()
        flat[k] += h
        result.view(-1)[k] = ((plus - minus) / (2 * h) * grad_output).sum()
    return result
""",
)
wrong(
    "numeric_vjp",
    "one copy for both sides",
    "The function f is torch's own of that name",
    """
def numeric_vjp(name, x, grad_output, h=1e-6):
    f = getattr(torch, name)
    copy, grad_output = x.double().contiguous().clone(), grad_output.double()
    flat = copy.view(-1)
    result = torch.zeros(x.shape, dtype=torch.float64)
    for k in range(flat.numel()):
        before = flat[k].item()
        flat[k] = before + h
        plus = f(copy)
        flat[k] = before - h
        minus = f(copy)
        flat[k] = before
        result.view(-1)[k] = ((plus - minus) / (2 * h) * grad_output).sum()
    return result
""",
)
wrong(
    "numeric_vjp",
    "h fixed",
    "`h` is the step, as it came",
    nudge("    f = getattr", "    h = 1e-6\n    f = getattr"),
)
wrong(
    "numeric_vjp",
    "h no larger than 1",
    "`h` is the step, as it came",
    nudge("    f = getattr", "    h = min(h, 1.0)\n    f = getattr"),
)
wrong("numeric_vjp", "over h, not 2h", "the formula: over 2h", nudge("/ (2 * h)", "/ h"))
wrong(
    "numeric_vjp",
    "a step relative to x",
    "`h` is the step, as it came",
    nudge(
        "nudge[k] = h",
        "nudge[k] = h * max(1.0, abs(x.reshape(-1)[k].item()))",
        "/ (2 * h)",
        "/ (2 * nudge.sum())",
    ),
)
wrong(
    "numeric_vjp",
    "a reshape that copies",
    "It takes `x`, of any shape",
    """
def numeric_vjp(name, x, grad_output, h=1e-6):
    f = getattr(torch, name)
    result = torch.zeros(x.shape, dtype=torch.float64)
    for k in range(x.numel()):
        plus, minus = x.double().clone(), x.double().clone()
        plus.reshape(-1)[k] += h
        minus.reshape(-1)[k] -= h
        result.view(-1)[k] = ((f(plus) - f(minus)) / (2 * h) * grad_output.double()).sum()
    return result
""",
)
wrong(
    "numeric_vjp",
    "a clone seen as a vector",
    "It takes `x`, of any shape",
    """
def numeric_vjp(name, x, grad_output, h=1e-6):
    f = getattr(torch, name)
    result = torch.zeros(x.shape, dtype=torch.float64)
    for k in range(x.numel()):
        plus, minus = x.double().clone(), x.double().clone()
        plus.view(-1)[k] += h
        minus.view(-1)[k] -= h
        result.view(-1)[k] = ((f(plus) - f(minus)) / (2 * h) * grad_output.double()).sum()
    return result
""",
)
wrong(
    "numeric_vjp",
    "no single numbers",
    "It takes `x`, of any shape",
    nudge("nudge = torch.zeros(x.numel()", "nudge = torch.zeros(len(x) * x[0].numel()"),
)
wrong(
    "numeric_vjp",
    "float32 comes back",
    "The result has the shape of `x` and is **float64**",
    nudge(
        "    x, grad_output = x.double()",
        "    dtype = x.dtype\n    x, grad_output = x.double()",
        "return result",
        "return result.to(dtype)",
    ),
)
wrong(
    "numeric_vjp",
    "a table of names",
    "look it up like this, in `numeric_vjp` itself",
    nudge(
        "getattr(torch, name)",
        '{"exp": torch.exp, "det": torch.det, "inverse": torch.inverse, "sin": torch.sin, "tanh": torch.tanh}[name]',
    ),
)
wrong(
    "numeric_vjp",
    "the derivative by autograd",
    "by central differences in float64",
    """
def numeric_vjp(name, x, grad_output, h=1e-6):
    f = getattr(torch, name)
    _, back = torch.func.vjp(f, x.double())
    return back(grad_output.double())[0]
""",
)
wrong(
    "numeric_vjp",
    "the incoming gradient by a view",
    "an output of any shape, that of `grad_output`",
    nudge("(slope * grad_output).sum()", "slope.reshape(-1) @ grad_output.view(-1)"),
)
wrong(
    "numeric_vjp",
    "the quotient rounded to float32",
    "and so is all the arithmetic",
    nudge(
        "slope = (f(x + nudge) - f(x - nudge)) / (2 * h)",
        "slope = ((f(x + nudge) - f(x - nudge)) / (2 * h)).float()",
    ),
)
wrong(
    "numeric_vjp",
    "the step kept in float32",
    "`h` is the step, as it came",
    nudge("nudge = torch.zeros(x.numel(), dtype=torch.float64)", "nudge = torch.zeros(x.numel())"),
)

# -- 10: a Function

right(
    "Softmax",
    "saves x and computes again",
    """
class Softmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        e = torch.exp(x - x.max(-1, keepdim=True).values)
        return e / e.sum(-1, keepdim=True)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        y = (x - torch.logsumexp(x, -1, keepdim=True)).exp()
        return y * grad_output - y * (y * grad_output).sum(-1, keepdim=True)
""",
)
right(
    "Softmax",
    "setup_context",
    """
class Softmax(torch.autograd.Function):
    @staticmethod
    def forward(x):
        e = (x - x.amax(-1, keepdim=True)).exp()
        return e / e.sum(-1, keepdim=True)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx, grad_output):
        return softmax_backward(ctx.saved_tensors[0], grad_output)


def softmax_backward(y, g):
    return y * (g - torch.einsum("...i,...i->...", y, g).unsqueeze(-1))
""",
)
right(
    "Softmax",
    "kept on ctx itself",
    """
class Softmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.y = torch.exp(x - x.logsumexp(-1, keepdim=True))
        return ctx.y

    @staticmethod
    def backward(ctx, grad_output):
        y = ctx.y
        return y * (grad_output - (grad_output * y).sum(-1, keepdim=True))
""",
)
right(
    "Softmax",
    "the row's Jacobian",
    """
class Softmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        shifted = x - torch.max(x, dim=-1, keepdim=True)[0]
        y = torch.exp(shifted - torch.log(torch.exp(shifted).sum(-1, keepdim=True)))
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        y, = ctx.saved_tensors
        return torch.matmul(torch.diag_embed(y) - y[..., :, None] * y[..., None, :], grad_output[..., None])[..., 0]
""",
)


def function(*pieces: str) -> str:
    """The plain Function with pieces exchanged."""
    code = PLAIN["Softmax"]
    for before, after in zip(pieces[::2], pieces[1::2], strict=True):
        assert code.count(before) >= 1, before
        code = code.replace(before, after)
    return code


FORWARD = "y = torch.exp(x - x.logsumexp(-1, keepdim=True))"
TWICE = "The backward must itself be differentiable"
wrong(
    "Softmax",
    "exponentials as they are",
    "Rows may reach ±1,000",
    function(FORWARD, "y = torch.exp(x) / torch.exp(x).sum(-1, keepdim=True)"),
)
wrong(
    "Softmax",
    "the largest of all rows",
    "each of them a level of its own, and must not overflow, nor vanish",
    function(
        FORWARD,
        "e = torch.exp(x - (x.max() if x.numel() else 0))\n        y = e / e.sum(-1, keepdim=True)",
    ),
)
wrong(
    "Softmax",
    "the largest of all rows, and a small number",
    "each of them a level of its own, and must not overflow, nor vanish",
    function(
        FORWARD,
        "e = torch.exp(x - (x.max() if x.numel() else 0))\n        y = e / (e.sum(-1, keepdim=True) + 1e-9)",
    ),
)
wrong(
    "Softmax",
    "the mean taken off",
    "Rows may reach ±1,000",
    function(
        FORWARD,
        "e = torch.exp(x - x.mean(-1, keepdim=True))\n        y = e / e.sum(-1, keepdim=True)",
    ),
)
wrong(
    "Softmax",
    "clamped",
    "Rows may reach ±1,000",
    function(FORWARD, "e = torch.exp(x.clamp(-80, 80))\n        y = e / e.sum(-1, keepdim=True)"),
)
wrong(
    "Softmax",
    "a small number in the sum",
    "computes the softmax over the last dimension of `x`",
    function(
        FORWARD,
        "e = torch.exp(x - x.amax(-1, keepdim=True))\n        y = e / (e.sum(-1, keepdim=True) + 1e-3)",
    ),
)
wrong(
    "Softmax",
    "dimension 1",
    "over the last dimension of `x` (…, n)",
    function("-1, keepdim", "min(1, x.dim() - 1), keepdim").replace(
        "(grad_output * y).sum(min(1, x.dim() - 1)", "(grad_output * y).sum(min(1, y.dim() - 1)"
    ),
)
wrong(
    "Softmax",
    "detached",
    TWICE,
    function("return y * (grad_output", "y = y.detach()\n        return y * (grad_output"),
)
wrong(
    "Softmax",
    "the data of y",
    TWICE,
    function("(y,) = ctx.saved_tensors", "y = ctx.saved_tensors[0].data"),
)
wrong(
    "Softmax",
    "the incoming gradient detached",
    TWICE,
    function(
        "return y * (grad_output",
        "grad_output = grad_output.detach()\n        return y * (grad_output",
    ),
)
wrong(
    "Softmax",
    "the sum detached",
    TWICE,
    function(
        "(grad_output * y).sum(-1, keepdim=True))",
        "(grad_output * y).sum(-1, keepdim=True).detach())",
    ),
)
wrong(
    "Softmax",
    "without recording",
    TWICE,
    function(
        "return y * (grad_output", "with torch.no_grad():\n            return y * (grad_output"
    ),
)
wrong(
    "Softmax",
    "once differentiable",
    TWICE,
    function(
        "    @staticmethod\n    def backward",
        "    @staticmethod\n    @torch.autograd.function.once_differentiable\n    def backward",
    ),
)
wrong(
    "Softmax",
    "NumPy",
    TWICE,
    function(
        "return y * (grad_output - (grad_output * y).sum(-1, keepdim=True))",
        "g, y = grad_output.detach().numpy(), y.detach().numpy()\n        return torch.from_numpy(y * (g - (g * y).sum(-1, keepdims=True)))",
    ),
)
wrong(
    "Softmax",
    "saves the exponentials",
    TWICE,
    function(
        FORWARD + "\n        ctx.save_for_backward(y)",
        "e = torch.exp(x - x.amax(-1, keepdim=True))\n        s = e.sum(-1, keepdim=True)\n        y = e / s\n        ctx.save_for_backward(e, s)",
        "(y,) = ctx.saved_tensors",
        "e, s = ctx.saved_tensors\n        y = e / s",
    ),
)
wrong(
    "Softmax",
    "saves a copy",
    TWICE,
    function("save_for_backward(y)", "save_for_backward(y.clone())"),
)
wrong("Softmax", "returns a copy", TWICE, function("return y\n", "return y.clone()\n"))
wrong(
    "Softmax",
    "torch's softmax",
    "torch's own softmax is not allowed in either",
    function(FORWARD, "y = torch.softmax(x, -1)"),
)
wrong(
    "Softmax",
    "log softmax",
    "nor its log-softmax",
    function(FORWARD, "y = torch.nn.functional.log_softmax(x, -1).exp()"),
)
wrong(
    "Softmax",
    "a distribution",
    "`torch.distributions`",
    function(FORWARD, "y = torch.distributions.Categorical(logits=x).probs"),
)
wrong(
    "Softmax",
    "softmax in backward",
    "torch's own softmax is not allowed in either",
    function(
        "save_for_backward(y)",
        "save_for_backward(x)",
        "(y,) = ctx.saved_tensors",
        "y = ctx.saved_tensors[0].softmax(-1)",
    ),
)
wrong(
    "Softmax",
    "the largest taken off x in place",
    "None of your functions may change a tensor that it was given",
    function(
        FORWARD,
        "x -= x.amax(-1, keepdim=True)\n        e = torch.exp(x)\n        y = e / e.sum(-1, keepdim=True)",
    ),
)
wrong(
    "Softmax",
    "stable on the way there, not on the way back",
    "must not overflow, nor vanish",
    function(
        "save_for_backward(y)",
        "save_for_backward(x)",
        "(y,) = ctx.saved_tensors",
        "e = ctx.saved_tensors[0].exp()\n        y = e / e.sum(-1, keepdim=True)",
    ),
)
wrong(
    "Softmax",
    "the diagonal alone",
    "its `backward` returns the gradient for `x`",
    function(
        "y * (grad_output - (grad_output * y).sum(-1, keepdim=True))", "grad_output * y * (1 - y)"
    ),
)
wrong(
    "Softmax",
    "one sum for the batch",
    "its `backward` returns the gradient for `x`",
    function("(grad_output * y).sum(-1, keepdim=True)", "(grad_output * y).sum()"),
)
wrong(
    "Softmax",
    "a buffer for the second way back",
    TWICE,
    function(
        "return y * (grad_output - (grad_output * y).sum(-1, keepdim=True))",
        "dot = torch.tensor((grad_output * y).sum(-1, keepdim=True).tolist(), dtype=y.dtype).reshape(*y.shape[:-1], 1)\n        return y * (grad_output - dot)",
    ),
)

# -- 11: cross-entropy and the head

right(
    "cross_entropy_vjp",
    "one-hot",
    """
def cross_entropy_vjp(grad_output, logits, targets):
    hot = torch.nn.functional.one_hot(targets, logits.shape[1]).to(logits.dtype)
    n = torch.tensor(float(len(targets)), dtype=logits.dtype)
    return (logits.softmax(1) - hot) * (grad_output / n)
""",
)
right(
    "cross_entropy_vjp",
    "scatter into minus the shares",
    """
def cross_entropy_vjp(grad_output, logits, targets):
    n, v = logits.shape
    share = (grad_output / n if n else grad_output).item()
    result = torch.log_softmax(logits, dim=1).exp() * share
    return result.scatter_add(1, targets[:, None], torch.full((n, 1), -share, dtype=logits.dtype))
""",
)
right(
    "cross_entropy_vjp",
    "through the way back of log softmax",
    """
def cross_entropy_vjp(grad_output, logits, targets):
    up = torch.zeros_like(logits)
    if len(targets):
        up[range(len(targets)), targets] = -grad_output / len(targets)
    return up - torch.softmax(logits, 1) * up.sum(1, keepdim=True)
""",
)
right(
    "lm_head_gradients",
    "the pieces put together",
    """
def lm_head_gradients(x, weight, bias, targets):
    g = cross_entropy_vjp(torch.ones((), dtype=x.dtype), torch.nn.functional.linear(x, weight, bias), targets)
    return dict(zip(("x", "weight", "bias"), (g @ weight, g.T @ x, g.sum(0))))
""",
)
right(
    "lm_head_gradients",
    "targets by index_add",
    """
def lm_head_gradients(x, weight, bias, targets):
    n = max(len(x), 1)
    p = torch.softmax(torch.addmm(bias, x, weight.t()), 1) / n
    grad_weight = (p.t() @ x).index_add(0, targets, x, alpha=-1 / n)
    grad_bias = p.sum(0).index_add(0, targets, x.new_ones(len(x)), alpha=-1 / n)
    return {"x": p @ weight - weight[targets] / n, "weight": grad_weight, "bias": grad_bias}
""",
)


def loss(*pieces: str) -> str:
    """The plain cross-entropy with pieces exchanged."""
    code = PLAIN["cross_entropy_vjp"]
    for before, after in zip(pieces[::2], pieces[1::2], strict=True):
        assert code.count(before) >= 1, before
        code = code.replace(before, after)
    return code


def head(*pieces: str) -> str:
    """The plain head with pieces exchanged."""
    code = PLAIN["lm_head_gradients"]
    for before, after in zip(pieces[::2], pieces[1::2], strict=True):
        assert code.count(before) >= 1, before
        code = code.replace(before, after)
    return code


MEANLOSS = "the mean cross-entropy of the logits and the next words"
UPSTREAM = "the gradient `grad_output` of the mean loss, a 0-dim tensor of any value"
wrong("cross_entropy_vjp", "no incoming gradient", UPSTREAM, loss("p * grad_output /", "p /"))
wrong("cross_entropy_vjp", "no mean", MEANLOSS, loss(" / len(targets)", ""))
wrong(
    "cross_entropy_vjp",
    "the mean over all entries",
    MEANLOSS,
    loss("/ len(targets)", "/ logits.numel()"),
)
wrong(
    "cross_entropy_vjp",
    "over the number of words",
    MEANLOSS,
    loss("/ len(targets)", "/ logits.shape[1]"),
)
wrong(
    "cross_entropy_vjp",
    "exponentials as they are",
    "Logits may reach ±1,000",
    loss(
        "torch.softmax(logits, -1)", "torch.exp(logits) / torch.exp(logits).sum(-1, keepdim=True)"
    ),
)
wrong(
    "cross_entropy_vjp",
    "the largest of all logits",
    "each row on a level of its own",
    loss(
        "torch.softmax(logits, -1)",
        "torch.exp(logits - logits.max()) if logits.numel() else logits.clone()",
        "    p[",
        "    p = p / p.sum(-1, keepdim=True)\n    p[",
    ),
)
wrong(
    "cross_entropy_vjp",
    "the largest taken off in place",
    "None of your functions may change a tensor that it was given",
    loss(
        "torch.softmax(logits, -1)", "torch.softmax(logits.sub_(logits.amax(-1, keepdim=True)), -1)"
    ),
)
wrong(
    "cross_entropy_vjp",
    "0 is padding",
    "none of them is special",
    loss("    return", "    p[targets == 0] = 0\n    return"),
)
wrong(
    "cross_entropy_vjp",
    "every target in every row",
    "given `targets` (N,) of int64",
    loss("p[torch.arange(len(targets)), targets]", "p[:, targets]"),
)
wrong(
    "cross_entropy_vjp",
    "targets as rows",
    "given `targets` (N,) of int64",
    loss("p[torch.arange(len(targets)), targets]", "p[targets]"),
)
wrong(
    "cross_entropy_vjp",
    "one-hot of its own width",
    "each from 0 to V − 1",
    loss(
        "p[torch.arange(len(targets)), targets] -= 1",
        "p = p - torch.nn.functional.one_hot(targets)",
    ),
)
wrong(
    "cross_entropy_vjp",
    "softmax over the rows",
    "softmax(logits_n)",
    loss("softmax(logits, -1)", "softmax(logits, 0)"),
)
wrong(
    "cross_entropy_vjp",
    "the other sign",
    "loss = − mean of log softmax",
    loss("return p * grad", "return -p * grad"),
)
wrong(
    "cross_entropy_vjp",
    "the size of the incoming gradient",
    UPSTREAM,
    loss("grad_output /", "grad_output.abs() /"),
)
wrong(
    "cross_entropy_vjp",
    "none for an incoming gradient of 0",
    UPSTREAM,
    loss("grad_output /", "(grad_output if grad_output else 1.0) /"),
)
wrong(
    "cross_entropy_vjp",
    "the target's entry alone",
    "the gradient for `logits` (N, V)",
    """
def cross_entropy_vjp(grad_output, logits, targets):
    rows = torch.arange(len(targets))
    result = torch.zeros_like(logits)
    result[rows, targets] = (torch.softmax(logits, -1)[rows, targets] - 1) * grad_output / max(len(targets), 1)
    return result
""",
)
wrong(
    "cross_entropy_vjp",
    "different targets counted",
    "some may be equal",
    loss("/ len(targets) if", "/ len(targets.unique()) if"),
)
wrong(
    "cross_entropy_vjp",
    "a batch of 1 squeezed",
    "sizes of 1",
    loss("return p *", "return p.squeeze() *"),
)
wrong(
    "cross_entropy_vjp",
    "zeros of float32",
    "or all are float64, and so is what you return",
    """
def cross_entropy_vjp(grad_output, logits, targets):
    result = torch.zeros(logits.shape)
    result += torch.softmax(logits, -1)
    result[torch.arange(len(targets)), targets] -= 1
    return result * grad_output / max(len(targets), 1)
""",
)
wrong(
    "cross_entropy_vjp",
    "autograd asked",
    "no `backward`, `grad` or `requires_grad_` of a tensor",
    """
def cross_entropy_vjp(grad_output, logits, targets):
    logits = logits.clone().requires_grad_()
    torch.nn.functional.cross_entropy(logits, targets).backward(grad_output)
    return logits.grad
""",
)
wrong(
    "lm_head_gradients",
    "targets subtracted by an index",
    "some may be equal",
    """
def lm_head_gradients(x, weight, bias, targets):
    n = max(len(x), 1)
    p = torch.softmax(x @ weight.T + bias, 1) / n
    grad_bias = p.sum(0) - torch.bincount(targets, minlength=len(bias)) / n
    grad_weight = p.T @ x
    grad_weight[targets] -= x / n
    return {"x": p @ weight - weight[targets] / n, "weight": grad_weight, "bias": grad_bias}
""",
)
wrong(
    "lm_head_gradients",
    "the bias left out of the logits",
    "`logits = x @ weight.T + bias`",
    head(" + bias", ""),
)
wrong(
    "lm_head_gradients",
    "the weight's gradient turned",
    '`"weight"` (V, in)',
    head("g.T @ x", "x.T @ g"),
)
wrong("lm_head_gradients", "the mean for the bias", MEANLOSS, head("g.sum(0)", "g.mean(0)"))
wrong("lm_head_gradients", "no mean", MEANLOSS, head("    g = g / max(len(targets), 1)\n", ""))
wrong(
    "lm_head_gradients",
    "exponentials as they are",
    "with logits as large",
    head("torch.softmax(logits, -1)", "torch.exp(logits) / torch.exp(logits).sum(1, keepdim=True)"),
)
wrong(
    "lm_head_gradients",
    "short names",
    'a dict with the gradients of the mean cross-entropy for `"x"`',
    head('"weight": g.T', '"W": g.T', '"bias": g', '"b": g'),
)
wrong(
    "lm_head_gradients",
    "the bias is changed",
    "None of your functions may change a tensor that it was given",
    head("logits = x @ weight.T + bias", "bias -= bias.max()\n    logits = x @ weight.T + bias"),
)
wrong(
    "lm_head_gradients",
    "0 is padding",
    "none of them is special",
    head(
        "    g = g / max(len(targets), 1)",
        "    g[targets == 0] = 0\n    g = g / max(len(targets), 1)",
    ),
)
wrong(
    "lm_head_gradients",
    "autograd asked",
    "no `backward`, `grad` or `requires_grad_` of a tensor",
    """
def lm_head_gradients(x, weight, bias, targets):
    leaves = {"x": x.clone(), "weight": weight.clone(), "bias": bias.clone()}
    for leaf in leaves.values():
        leaf.requires_grad_()
    logits = leaves["x"] @ leaves["weight"].T + leaves["bias"]
    torch.nn.functional.cross_entropy(logits, targets).backward()
    return {name: leaf.grad for name, leaf in leaves.items()}
""",
)

# -- thought wrong at first; N is at least 1, and the others are right

right(
    "softmax_vjp",
    "by way of logs",
    """
def softmax_vjp(grad_output, y):
    logs = torch.log(y)
    weighted = grad_output * logs.exp()
    centre = torch.sum(weighted, -1, keepdim=True)
    return weighted - torch.exp(logs + torch.log(centre.abs())) * centre.sign()
""",
)
right(
    "cross_entropy_vjp",
    "1 over N in Python",
    loss(
        "return p * grad_output / len(targets) if len(targets) else p",
        "return p * grad_output * (1 / len(targets))",
    ),
)
right(
    "cross_entropy_vjp",
    "rows stacked",
    """
def cross_entropy_vjp(grad_output, logits, targets):
    rows = []
    for row, target in zip(logits, targets):
        p = torch.softmax(row, 0)
        p[target] -= 1
        rows.append(p * grad_output / len(targets))
    return torch.stack(rows)
""",
)
right(
    "lm_head_gradients",
    "1 over N in Python",
    head("g / max(len(targets), 1)", "g * (1 / len(targets))"),
)
right(
    "lm_head_gradients",
    "one-hot of its own width",
    head(
        "g[torch.arange(len(targets)), targets] -= 1",
        "hot = torch.nn.functional.one_hot(targets)\n    g[:, : hot.shape[1]] -= hot",
    ),
)

EXERCISE = {
    "relu_vjp": "activations",
    "softmax_vjp": "activations",
    "Softmax": "run_softmax",
    "run_softmax": "run_softmax",
    "cross_entropy_vjp": "lm_head",
    "lm_head_gradients": "lm_head",
}


def add_to(bank: Bank) -> None:
    """Add all of them to the bank of the lab."""
    for answers, add in ((RIGHT, bank.right), (WRONG, bank.wrong)):
        for part, name, code, *_ in answers:
            exercise = EXERCISE.get(part, part)
            others = [PLAIN[p] for p, e in EXERCISE.items() if e == exercise and p != part]
            add(exercise, f"{part}, {name}", code="\n".join([code, *others]))
