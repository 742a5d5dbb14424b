"""What the hidden cells of lab 02 check.

Every reference leans on autograd itself; the lab's own solutions, derived by hand, are proven
against them. Incoming gradients are random everywhere, so that what is right only for ones shows.
"""

from functools import cache

import torch

from utils.checks import ByHand, Case, Check, case
from utils.compare import Tolerance
from utils.minigpt import load_minigpt, load_tokenizer

AUTOGRAD = frozenset(
    {
        "autograd", "backward", "grad", "vjp", "jvp", "jacrev", "jacfwd", "jacobian",
        "requires_grad_", "grad_fn", "native_layer_norm_backward", "_softmax_backward_data",
        "threshold_backward",
    }
)  # fmt: skip
BY_HAND = ByHand(
    "the exercise is to derive the gradient; autograd may check you, but not answer for you",
    forbid_names=AUTOGRAD,
)
FLOATS = (torch.float32, torch.float64)
LAYOUTS = ("contiguous", "transposed", "sliced")
SUMS = Tolerance(1e-4, 1e-5, "sums of a few products, each in an order of its own")


# ------------------------------------------------------------------------------- scalar_adjoints
scalar_adjoints = Check(
    "scalar_adjoints",
    parts={"down to the fork": 1, "where two paths meet": 1},
    reads="Three lines, by hand",
    by_hand=BY_HAND,
)


@scalar_adjoints.reference
def _(a, b):
    a, b = (torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in (a, b))
    c = a * b
    d = c + a
    loss = d**2
    nodes = {"L": loss, "d": d, "c": c, "b": b, "a": a}
    found = torch.autograd.grad(loss, list(nodes.values()))
    return {name: grad.item() for name, grad in zip(nodes, found, strict=True)}


@scalar_adjoints.cases
def _(draw):
    def adjoints(part, a, b, names):
        def play(subject):
            found = subject(a, b)
            return [float(found[name]) for name in names]

        places = {f"[{k}]": f"the adjoint of `{name}`" for k, name in enumerate(names)}
        return Case(part, play, places=places)

    for _ in range(3):
        a, b = draw.integer(3, 30) / 4, -draw.integer(3, 30) / 8
        yield adjoints("down to the fork", a, b, "Ldcb")
        yield adjoints("where two paths meet", a, b, "a")


@scalar_adjoints.misconception(
    "one path only", "`a` was reached by way of c alone; d uses it as well.", earns=1
)
def _(a, b):
    d = a * b + a
    return {"L": 1.0, "d": 2 * d, "c": 2 * d, "b": 2 * d * a, "a": 2 * d * b}


@scalar_adjoints.misconception(
    "the last path overwrites",
    "`a` kept only what came straight from d; what came by way of c was overwritten.",
    earns=1,
)
def _(a, b):
    d = a * b + a
    return {"L": 1.0, "d": 2 * d, "c": 2 * d, "b": 2 * d * a, "a": 2 * d}


@scalar_adjoints.misconception(
    "paths multiplied", "what came to `a` along its two paths was multiplied.", earns=1
)
def _(a, b):
    d = a * b + a
    return {"L": 1.0, "d": 2 * d, "c": 2 * d, "b": 2 * d * a, "a": 2 * d * b * 2 * d}


@scalar_adjoints.misconception(
    "local derivatives",
    "each number is the derivative of the next node alone; what arrived there was not multiplied in.",
    earns=0,
)
def _(a, b):
    d = a * b + a
    return {"L": 1.0, "d": 2 * d, "c": 1.0, "b": a, "a": b + 1}


@scalar_adjoints.misconception(
    "a factor times itself",
    "in the product, `a` and `b` each got itself as the local derivative, not the other factor.",
    earns=0,
)
def _(a, b):
    d = a * b + a
    return {"L": 1.0, "d": 2 * d, "c": 2 * d, "b": 2 * d * b, "a": 2 * d * a + 2 * d}


@scalar_adjoints.misconception(
    "b and c exchanged",
    "the factor `a` lies on the way from c to b; here it went into the adjoint of c.",
    earns=1,
)
def _(a, b):
    d = a * b + a
    return {"L": 1.0, "d": 2 * d, "c": 2 * d * a, "b": 2 * d, "a": 2 * d * b + 2 * d}


@scalar_adjoints.misconception(
    "a square without its two", "the adjoint of d is d itself, as if L were d times a constant.",
    earns=0,
)  # fmt: skip
def _(a, b):
    d = a * b + a
    return {"L": 1.0, "d": d, "c": d, "b": d * a, "a": d * b + d}


@scalar_adjoints.alternate("the closed formula")
def _(a, b):
    return {
        "a": 2 * a * (b + 1) ** 2,
        "b": 2 * a * a * (b + 1),
        "c": 2 * a * (b + 1),
        "d": 2 * a * (b + 1),
        "L": 1.0,
    }


# ------------------------------------------------------------------------------------------ Tape
tape = Check(
    "Tape",
    parts={"values": 1, "chains": 1, "forks": 2, "asked again": 1},
    reads="An engine in twenty lines",
    by_hand=BY_HAND,
)


@tape.reference
class ReferenceTape:
    def __init__(self):
        self.nodes = []

    def leaf(self, value):
        return self.record(torch.tensor(float(value), dtype=torch.float64, requires_grad=True))

    def add(self, i, j):
        return self.record(self.nodes[i] + self.nodes[j])

    def mul(self, i, j):
        return self.record(self.nodes[i] * self.nodes[j])

    def power(self, i, n):
        return self.record(self.nodes[i] ** n)

    def value(self, i):
        return self.nodes[i].item()

    def gradients(self, i):
        found = torch.autograd.grad(
            self.nodes[i], self.nodes, retain_graph=True, allow_unused=True
        )
        return [0.0 if grad is None else grad.item() for grad in found]

    def record(self, tensor):
        self.nodes.append(tensor)
        return len(self.nodes) - 1


@tape.cases
def _(draw):
    def number():
        return draw.choice((-1, 1)) * draw.integer(5, 16) / 8

    def recorded(subject, program):
        made = subject()
        return made, [made.call(method, *rest) for method, *rest in program]

    def run(part, program, *asked):
        def play(subject):
            made, _ = recorded(subject, program)
            return [[float(g) for g in made.call("gradients", i)] for i in asked]

        places = {}
        for k, i in enumerate(asked):
            again = ", asked as the second question" if k else ""
            places[f"[{k}]"] = f"the gradients of node {i}{again}"
            for j, (method, *_) in enumerate(program):
                of = f"its entry {j} (a `{method}`)"
                places[f"[{k}][{j}]"] = f"the gradients of node {i}{again}, {of}"
        return Case(part, play, places=places)

    def values(program):
        def play(subject):
            made, numbers = recorded(subject, program)
            return numbers, [float(made.call("value", i)) for i in numbers]

        places = {"[0]": "the numbers of the nodes, as recording returned them"}
        for j, (method, *_) in enumerate(program):
            places[f"[0][{j}]"] = f"what `{method}` returned for node {j}"
            places[f"[1][{j}]"] = f"the value of node {j}, a `{method}`"
        return Case("values", play, places=places)

    for _ in range(2):
        leaves = [("leaf", number()) for _ in range(3)]
        chain = [*leaves, ("mul", 0, 1), ("power", 3, 3), ("add", 4, 2), ("power", 5, 2)]
        lesson = [*leaves[:2], ("mul", 0, 1), ("add", 2, 0), ("power", 3, 2)]
        square = [leaves[0], ("mul", 0, 0), ("mul", 1, 1), ("add", 2, 2), ("power", 3, 2)]
        yield values(chain)
        yield values(square)
        yield run("chains", chain, 6)
        yield run("chains", [*chain, ("mul", 1, 2)], 5)
        yield run("forks", lesson, 4)
        yield run("forks", square, 4)
        yield run("asked again", chain, 6, 6)
        yield run("asked again", chain, 4, 6)


@tape.misconception(
    "the last user overwrites",
    "an input's adjoint was set at each user, so that only one of them counts.",
    earns=3,
)
class _OverwritingTape:
    def __init__(self):
        self.nodes = []

    def leaf(self, value):
        self.nodes.append((value, []))
        return len(self.nodes) - 1

    def add(self, i, j):
        self.nodes.append((self.value(i) + self.value(j), [(i, 1.0), (j, 1.0)]))
        return len(self.nodes) - 1

    def mul(self, i, j):
        self.nodes.append((self.value(i) * self.value(j), [(i, self.value(j)), (j, self.value(i))]))
        return len(self.nodes) - 1

    def power(self, i, n):
        self.nodes.append((self.value(i) ** n, [(i, n * self.value(i) ** (n - 1))]))
        return len(self.nodes) - 1

    def value(self, i):
        return self.nodes[i][0]

    def gradients(self, i):
        adjoints = [0.0] * len(self.nodes)
        adjoints[i] = 1.0
        for node in range(i, -1, -1):
            for source, local in self.nodes[node][1]:
                adjoints[source] = adjoints[node] * local
        return adjoints


@tape.misconception(
    "adjoints kept between two questions",
    "the second call went on adding to the adjoints of the first.",
    earns=4,
)
class _NeverClearedTape:
    def __init__(self):
        self.nodes = []
        self.adjoints = []

    def note(self, value, inputs):
        self.nodes.append((value, inputs))
        self.adjoints.append(0.0)
        return len(self.nodes) - 1

    def leaf(self, value):
        return self.note(value, [])

    def add(self, i, j):
        return self.note(self.value(i) + self.value(j), [(i, 1.0), (j, 1.0)])

    def mul(self, i, j):
        return self.note(self.value(i) * self.value(j), [(i, self.value(j)), (j, self.value(i))])

    def power(self, i, n):
        return self.note(self.value(i) ** n, [(i, n * self.value(i) ** (n - 1))])

    def value(self, i):
        return self.nodes[i][0]

    def gradients(self, i):
        self.adjoints[i] = 1.0
        for node in range(i, -1, -1):
            for source, local in self.nodes[node][1]:
                self.adjoints[source] += self.adjoints[node] * local
        return list(self.adjoints)


@tape.misconception(
    "read forwards",
    "the tape was read in the order of recording, when no adjoint had arrived yet.",
    earns=1,
)
class _ForwardTape:
    def __init__(self):
        self.nodes = []

    def note(self, value, inputs):
        self.nodes.append((value, inputs))
        return len(self.nodes) - 1

    def leaf(self, value):
        return self.note(value, [])

    def add(self, i, j):
        return self.note(self.value(i) + self.value(j), [(i, 1.0), (j, 1.0)])

    def mul(self, i, j):
        return self.note(self.value(i) * self.value(j), [(i, self.value(j)), (j, self.value(i))])

    def power(self, i, n):
        return self.note(self.value(i) ** n, [(i, n * self.value(i) ** (n - 1))])

    def value(self, i):
        return self.nodes[i][0]

    def gradients(self, i):
        adjoints = [0.0] * len(self.nodes)
        adjoints[i] = 1.0
        for node in range(i + 1):
            for source, local in self.nodes[node][1]:
                adjoints[source] += adjoints[node] * local
        return adjoints


@tape.misconception(
    "upstream dropped",
    "each input got the local derivative; the adjoint that had arrived was not multiplied in.",
    earns=1,
)
class _LocalTape:
    def __init__(self):
        self.nodes = []

    def note(self, value, inputs):
        self.nodes.append((value, inputs))
        return len(self.nodes) - 1

    def leaf(self, value):
        return self.note(value, [])

    def add(self, i, j):
        return self.note(self.value(i) + self.value(j), [(i, 1.0), (j, 1.0)])

    def mul(self, i, j):
        return self.note(self.value(i) * self.value(j), [(i, self.value(j)), (j, self.value(i))])

    def power(self, i, n):
        return self.note(self.value(i) ** n, [(i, n * self.value(i) ** (n - 1))])

    def value(self, i):
        return self.nodes[i][0]

    def gradients(self, i):
        adjoints = [0.0] * len(self.nodes)
        adjoints[i] = 1.0
        for node in range(i, -1, -1):
            for source, local in self.nodes[node][1]:
                if adjoints[node]:
                    adjoints[source] += local
        return adjoints


@tape.misconception(
    "power without its exponent",
    "the local derivative of a power lacks the exponent as a factor.",
    earns=1,
)
class _BarePowerTape:
    def __init__(self):
        self.nodes = []

    def note(self, value, inputs):
        self.nodes.append((value, inputs))
        return len(self.nodes) - 1

    def leaf(self, value):
        return self.note(value, [])

    def add(self, i, j):
        return self.note(self.value(i) + self.value(j), [(i, 1.0), (j, 1.0)])

    def mul(self, i, j):
        return self.note(self.value(i) * self.value(j), [(i, self.value(j)), (j, self.value(i))])

    def power(self, i, n):
        return self.note(self.value(i) ** n, [(i, self.value(i) ** (n - 1))])

    def value(self, i):
        return self.nodes[i][0]

    def gradients(self, i):
        adjoints = [0.0] * len(self.nodes)
        adjoints[i] = 1.0
        for node in range(i, -1, -1):
            for source, local in self.nodes[node][1]:
                adjoints[source] += adjoints[node] * local
        return adjoints


@tape.misconception(
    "each power a square",
    "the local derivative of a power is n times the value, which holds for squares alone.",
    earns=3,
)
class _SquareTape:
    def __init__(self):
        self.nodes = []

    def note(self, value, inputs):
        self.nodes.append((value, inputs))
        return len(self.nodes) - 1

    def leaf(self, value):
        return self.note(value, [])

    def add(self, i, j):
        return self.note(self.value(i) + self.value(j), [(i, 1.0), (j, 1.0)])

    def mul(self, i, j):
        return self.note(self.value(i) * self.value(j), [(i, self.value(j)), (j, self.value(i))])

    def power(self, i, n):
        return self.note(self.value(i) ** n, [(i, n * self.value(i))])

    def value(self, i):
        return self.nodes[i][0]

    def gradients(self, i):
        adjoints = [0.0] * len(self.nodes)
        adjoints[i] = 1.0
        for node in range(i, -1, -1):
            for source, local in self.nodes[node][1]:
                adjoints[source] += adjoints[node] * local
        return adjoints


@tape.misconception(
    "no entry for later nodes",
    "the list stops at the node that was asked for; those recorded after it have an entry, too.",
    earns=3,
)
class _ShortTape:
    def __init__(self):
        self.nodes = []

    def note(self, value, inputs):
        self.nodes.append((value, inputs))
        return len(self.nodes) - 1

    def leaf(self, value):
        return self.note(value, [])

    def add(self, i, j):
        return self.note(self.value(i) + self.value(j), [(i, 1.0), (j, 1.0)])

    def mul(self, i, j):
        return self.note(self.value(i) * self.value(j), [(i, self.value(j)), (j, self.value(i))])

    def power(self, i, n):
        return self.note(self.value(i) ** n, [(i, n * self.value(i) ** (n - 1))])

    def value(self, i):
        return self.nodes[i][0]

    def gradients(self, i):
        adjoints = [0.0] * (i + 1)
        adjoints[i] = 1.0
        for node in range(i, -1, -1):
            for source, local in self.nodes[node][1]:
                adjoints[source] += adjoints[node] * local
        return adjoints


@tape.alternate("a closure for each node")
class _ClosureTape:
    def __init__(self):
        self.values, self.steps = [], []

    def note(self, value, step):
        self.values.append(value)
        self.steps.append(step)
        return len(self.values) - 1

    def leaf(self, value):
        return self.note(value, lambda g, out: None)

    def add(self, i, j):
        def step(g, out):
            out[i] += g
            out[j] += g

        return self.note(self.values[i] + self.values[j], step)

    def mul(self, i, j):
        def step(g, out):
            out[i] += g * self.values[j]
            out[j] += g * self.values[i]

        return self.note(self.values[i] * self.values[j], step)

    def power(self, i, n):
        def step(g, out):
            out[i] += g * n * self.values[i] ** (n - 1)

        return self.note(self.values[i] ** n, step)

    def value(self, i):
        return self.values[i]

    def gradients(self, i):
        out = [0.0 for _ in self.values]
        out[i] += 1
        for node in reversed(range(i + 1)):
            self.steps[node](out[node], out)
        return out


# -------------------------------------------------------------------------------- backward_order
backward_order = Check(
    "backward_order",
    parts={"chains and trees": 1, "forks": 1, "thousands of nodes": 1},
    reads="Who may go first",
)


@backward_order.reference
def _(graph, root):
    uses = {root: 0}
    seen = [root]
    for node in seen:
        for source in graph[node]:
            if source not in uses:
                seen.append(source)
            uses[source] = uses.get(source, 0) + 1
    order = [root]
    for node in order:
        for source in graph[node]:
            uses[source] -= 1
            if not uses[source]:
                order.append(source)
    return order


@backward_order.cases
def _(draw):
    places = {
        "['nodes']": "the list does not hold each node that the root depends on exactly once.",
        "['too soon']": "a node stands in the list before one that uses it.",
    }

    def order(part, graph, root):
        """Any right order is as good as another: compare what is in it, and what came too soon."""
        names = draw.sample(sorted(graph), len(graph))  # the dict's order must not help
        shuffled = {name: graph[name] for name in names}

        def play(subject):
            found = subject(shuffled, root)
            place = {name: k for k, name in reversed(list(enumerate(found)))}
            soon = sorted(
                f"{source} before {user}"
                for user in place
                for source in graph[user]
                if source in place and place[source] <= place[user]
            )
            return {"nodes": sorted(found), "too soon": soon}

        return Case(part, play, places=places)

    def letters(count):
        return draw.sample("abcdefghijklmnopqrstuvw", count)

    for _ in range(2):
        a, b, c, d, e, f, other, alone = letters(8)
        chain = {a: [b], b: [c], c: [], other: [b, alone], alone: []}
        yield order("chains and trees", chain, a)
        tree = {a: [b, c], b: [d, e], c: [f], d: [], e: [], f: [], other: [a]}
        yield order("chains and trees", tree, a)
        a, b, c, d, e, f, g = letters(7)
        for inputs in ([c, e], [e, c]):
            fork = {a: [b], b: inputs, c: [d], d: [e, f], e: [g], f: [], g: []}
            yield order("forks", fork, a)
        mirrored = {a: [b, c, g], b: [d], c: [e], d: [f], e: [f], f: [g], g: []}
        yield order("forks", mirrored, a)
        other_way = {a: [g, c, b], b: [d], c: [e], d: [f], e: [f], f: [g], g: []}
        yield order("forks", other_way, a)
        a, b, c, d = letters(4)
        for inputs in ([b, b, c], [c, b, b]):
            yield order("forks", {a: inputs, b: [], c: [d], d: [b]}, a)
        yield order("forks", {a: [b, c], b: [], c: [d, b], d: [b]}, a)
    deep = {f"n{k}": [f"n{k - 1}"] * draw.integer(1, 2) for k in range(1, 6000)} | {"n0": []}
    yield order("thousands of nodes", deep, "n5999")


@backward_order.misconception(
    "breadth first",
    "nodes were visited by their distance from the root, so that a far user of a near node came "
    "too late.",
    earns=2,
)
def _(graph, root):
    order, seen = [root], {root}
    for node in order:
        for source in graph[node]:
            if source not in seen:
                seen.add(source)
                order.append(source)
    return order


@backward_order.misconception(
    "depth first",
    "each node was visited as soon as it was met, though another user of it was still to come.",
    earns=2,
)
def _(graph, root):
    order, seen, to_see = [], set(), [root]
    while to_see:
        node = to_see.pop()
        if node not in seen:
            seen.add(node)
            order.append(node)
            to_see += reversed(graph[node])
    return order


@backward_order.misconception(
    "depth first, last input first",
    "each node was visited as soon as it was met, the last inputs first, though another user of it "
    "was still to come.",
    earns=2,
)
def _(graph, root):
    order, seen, to_see = [], set(), [root]
    while to_see:
        node = to_see.pop()
        if node not in seen:
            seen.add(node)
            order.append(node)
            to_see += graph[node]
    return order


@backward_order.misconception(
    "ready at its first user",
    "a node was taken for ready when the first of its users had been visited, not the last.",
    earns=2,
)
def _(graph, root):
    order, known, ready = [], {root}, [root]
    while ready:
        node = ready.pop()
        order.append(node)
        for source in graph[node]:
            if source not in known:
                known.add(source)
                ready.append(source)
    return order


@backward_order.misconception(
    "a double use counted once",
    "a node that stands twice among another's inputs was counted once and taken off twice.",
    earns=2,
)
def _(graph, root):
    users, to_see = {root: set()}, [root]
    while to_see:
        node = to_see.pop()
        for source in graph[node]:
            if source not in users:
                users[source] = set()
                to_see.append(source)
            users[source].add(node)
    left = {node: len(those) for node, those in users.items()}
    order, ready = [], [root]
    while ready:
        node = ready.pop()
        order.append(node)
        for source in graph[node]:
            left[source] -= 1
            if left[source] == 0:
                ready.append(source)
    return order


@backward_order.misconception(
    "a double use taken off once",
    "a node that stands twice among another's inputs was counted twice and taken off once, so that "
    "it never became ready.",
    earns=1,
)
def _(graph, root):
    uses, to_see = {root: 0}, [root]
    while to_see:
        for source in graph[to_see.pop()]:
            if source not in uses:
                uses[source] = 0
                to_see.append(source)
            uses[source] += 1
    order, ready = [], [root]
    while ready:
        node = ready.pop()
        order.append(node)
        for source in dict.fromkeys(graph[node]):
            uses[source] -= 1
            if uses[source] == 0:
                ready.append(source)
    return order


@backward_order.misconception(
    "users elsewhere counted, too",
    "uses were counted over the whole dict, so that a node waits for users that never come.",
    earns=2,
)
def _(graph, root):
    uses = dict.fromkeys(graph, 0)
    for sources in graph.values():
        for source in sources:
            uses[source] += 1
    order, ready = [], [root]
    while ready:
        node = ready.pop()
        order.append(node)
        for source in graph[node]:
            uses[source] -= 1
            if uses[source] == 0:
                ready.append(source)
    return order


@backward_order.misconception(
    "inputs first", "the order is the one of the forward pass: inputs before their users.", earns=0
)
def _(graph, root):
    done, order, to_see = set(), [], [(root, False)]
    while to_see:
        node, ready = to_see.pop()
        if ready:
            order.append(node)
        elif node not in done:
            done.add(node)
            to_see.append((node, True))
            to_see += [(source, False) for source in graph[node]]
    return order


@backward_order.misconception(
    "recursion",
    "the function calls itself once for each node of a path, and Python has a limit to that.",
    earns=2,
)
def _(graph, root):
    done, order = set(), []

    def visit(node):
        if node not in done:
            done.add(node)
            for source in graph[node]:
                visit(source)
            order.append(node)

    visit(root)
    return order[::-1]


@backward_order.misconception(
    "every node of the dict",
    "nodes that the root does not depend on are in the list, too.",
    earns=2,
)
def _(graph, root):
    uses = dict.fromkeys(graph, 0)
    for sources in graph.values():
        for source in sources:
            uses[source] += 1
    order = [root] + [node for node in graph if not uses[node] and node != root]
    for node in order:
        for source in graph[node]:
            uses[source] -= 1
            if not uses[source]:
                order.append(source)
    return order


@backward_order.alternate("depth first, leaving nodes last, and turned round")
def _(graph, root):
    done, order, to_see = set(), [], [(root, False)]
    while to_see:
        node, leaving = to_see.pop()
        if leaving:
            order.append(node)
        elif node not in done:
            done.add(node)
            to_see.append((node, True))
            to_see.extend((source, False) for source in graph[node])
    order.reverse()
    return order


# ----------------------------------------------------------------------------------- unbroadcast
unbroadcast = Check(
    "unbroadcast",
    parts={"new dimensions": 1, "stretched ones": 1, "both, or neither": 1},
    reads="Broadcasting's adjoint is a sum",
    by_hand=BY_HAND,
    tolerance=SUMS,
)


@unbroadcast.reference
def _(grad, shape):
    return grad.sum_to_size(shape)


@unbroadcast.cases
def _(draw):
    for dtype in FLOATS:
        for layout in LAYOUTS:
            a, b, c = draw.shape(3)
            grad = draw.tensor((a, b, c), dtype, layout)
            yield case("new dimensions", grad, (c,))
            yield case("new dimensions", grad, (b, c))
            yield case("stretched ones", grad, (a, 1, c))
            yield case("stretched ones", grad, (1, b, 1))
            yield case("both, or neither", grad, (b, 1), shown="both")
            yield case("both, or neither", grad, (1, c), shown="both")
            yield case("both, or neither", grad, (1, 1), shown="both")
            yield case("both, or neither", grad, (a, b, c), shown="nothing was broadcast")
    yield case("both, or neither", draw.tensor((1, 4, 1)), (4, 1), shown="sizes of 1 in both")
    square = draw.tensor((3, 3))
    yield case("both, or neither", square, (3, 3), shown="nothing was broadcast")


@unbroadcast.misconception(
    "a mean for a sum", "the gradients of all readers were averaged.", earns=0
)
def _(grad, shape):
    while grad.dim() > len(shape):
        grad = grad.mean(0)
    for dim, size in enumerate(shape):
        if size == 1:
            grad = grad.mean(dim, keepdim=True)
    return grad


@unbroadcast.misconception(
    "stretched dimensions dropped",
    "the dimensions of size 1 are gone from the result, where they should have stayed.",
    earns=1,
)
def _(grad, shape):
    while grad.dim() > len(shape):
        grad = grad.sum(0)
    ones = [dim for dim, size in enumerate(shape) if size == 1]
    return grad.sum(ones) if ones else grad


@unbroadcast.misconception(
    "only the new dimensions",
    "dimensions that were stretched from size 1 have kept their stretched size.",
    earns=1,
)
def _(grad, shape):
    while grad.dim() > len(shape):
        grad = grad.sum(0)
    return grad


@unbroadcast.misconception(
    "one reader for all",
    "the gradient of the first reader was taken, and those of the others were dropped.",
    earns=0,
)
def _(grad, shape):
    while grad.dim() > len(shape):
        grad = grad[0]
    for dim, size in enumerate(shape):
        if size == 1:
            grad = grad.narrow(dim, 0, 1)
    return grad


@unbroadcast.misconception(
    "a sum over no dimensions",
    "`sum` was given an empty list of dimensions, where none were new; it then sums over all.",
    earns=1,
)
def _(grad, shape):
    grad = grad.sum(tuple(range(grad.dim() - len(shape))))
    for dim, size in enumerate(shape):
        if size == 1:
            grad = grad.sum(dim, keepdim=True)
    return grad


@unbroadcast.misconception(
    "a sum over no dimensions at all",
    "`sum` was given an empty list of dimensions, where nothing was broadcast; it then sums over "
    "all.",
    earns=2,
)
def _(grad, shape):
    padded = (1,) * (grad.dim() - len(shape)) + tuple(shape)
    dims = [d for d, size in enumerate(padded) if size != grad.size(d)]
    return grad.sum(dims, keepdim=True).reshape(shape)


@unbroadcast.misconception(
    "everything summed where nothing was broadcast",
    "where nothing was broadcast, the whole gradient was summed into one number.",
    earns=2,
)
def _(grad, shape):
    if grad.shape == shape:
        return grad.sum()
    while grad.dim() > len(shape):
        grad = grad.sum(0)
    for dim, size in enumerate(shape):
        if size == 1:
            grad = grad.sum(dim, keepdim=True)
    return grad


@unbroadcast.misconception(
    "dimensions that move while they are summed",
    "dimensions 0, 1, … were summed one after another; once the first is gone, the others have "
    "moved up.",
    earns=2,
)
def _(grad, shape):
    for dim in range(grad.dim() - len(shape)):
        grad = grad.sum(dim)
    for dim, size in enumerate(shape):
        if size == 1:
            grad = grad.sum(dim, keepdim=True)
    return grad


@unbroadcast.misconception(
    "one new dimension at most",
    "only one dimension was summed away in front; broadcasting may have added several.",
    earns=2,
)
def _(grad, shape):
    if grad.dim() > len(shape):
        grad = grad.sum(0)
    for dim, size in enumerate(shape):
        if size == 1:
            grad = grad.sum(dim, keepdim=True)
    return grad


@unbroadcast.alternate("all dimensions at once")
def _(grad, shape):
    padded = (1,) * (grad.dim() - len(shape)) + tuple(shape)
    dims = [d for d, size in enumerate(padded) if size != grad.size(d)]
    return (grad.sum(dims, keepdim=True) if dims else grad).reshape(shape)


# ------------------------------------------------------------------------------------ linear_vjp
linear_vjp = Check(
    "linear_vjp",
    parts={"input": 1, "weight": 1, "bias": 1, "batches of sequences": 1},
    reads="A layer only has to know one product",
    by_hand=BY_HAND,
    tolerance=SUMS,
)


@linear_vjp.reference
def _(grad_output, x, weight):
    x, weight = x.detach().requires_grad_(), weight.detach().requires_grad_()
    bias = torch.zeros_like(weight[:, 0]).requires_grad_()
    return torch.autograd.grad(
        torch.nn.functional.linear(x, weight, bias), (x, weight, bias), grad_output
    )


@linear_vjp.cases
def _(draw):
    def one(part, place, *args):
        return Case(part, lambda subject: subject(*args)[place])

    for dtype in FLOATS:
        for layout in LAYOUTS:
            n, t, i, o = draw.shape(4)
            weight = draw.tensor((o, i), dtype, layout)
            flat = (draw.tensor((n, o), dtype, layout), draw.tensor((n, i), dtype, layout), weight)
            deep = tuple(draw.tensor((n, t, k), dtype, layout) for k in (o, i))
            for place, part in enumerate(("input", "weight", "bias")):
                yield one(part, place, *flat)
            places = {
                f"[{k}]": f"the gradient for `{name}`"
                for k, name in enumerate(("x", "weight", "bias"))
            }
            yield case("batches of sequences", *deep, weight, places=places)


@linear_vjp.misconception(
    "bias without its sum",
    "the gradient of the bias still has one row for each example.",
    earns=2,
)
def _(grad_output, x, weight):
    rows = grad_output.flatten(0, -2)
    return grad_output @ weight, rows.T @ x.flatten(0, -2), grad_output


@linear_vjp.misconception(
    "bias averaged", "the gradient of the bias is a mean over the batch.", earns=2
)
def _(grad_output, x, weight):
    rows = grad_output.flatten(0, -2)
    return grad_output @ weight, rows.T @ x.flatten(0, -2), rows.mean(0)


@linear_vjp.misconception(
    "weight transposed", "the gradient of the weight is (in, out), and the weight is (out, in).",
    earns=2,
)  # fmt: skip
def _(grad_output, x, weight):
    rows = grad_output.flatten(0, -2)
    return grad_output @ weight, x.flatten(0, -2).T @ rows, rows.sum(0)


@linear_vjp.misconception(
    "upstream of ones",
    "the incoming gradient was not used: the result is that of a plain sum of the outputs.",
    earns=0,
)
def _(grad_output, x, weight):
    ones = torch.ones_like(grad_output)
    rows = ones.flatten(0, -2)
    return ones @ weight, rows.T @ x.flatten(0, -2), rows.sum(0)


@linear_vjp.misconception(
    "matrices only",
    "a third dimension was not flattened into the rows, so a batch of sequences does not fit.",
    earns=3,
)
def _(grad_output, x, weight):
    return grad_output @ weight, grad_output.transpose(0, 1) @ x, grad_output.sum(0)


@linear_vjp.misconception(
    "multiplied by the transpose",
    "the incoming gradient met the transposed weight, as in the forward pass.",
    earns=0,
)
def _(grad_output, x, weight):
    rows = grad_output.flatten(0, -2)
    return grad_output @ weight.T, rows.T @ x.flatten(0, -2), rows.sum(0)


@linear_vjp.misconception(
    "float64 whatever comes in", "the results are float64, whatever dtype came in.", earns=0
)
def _(grad_output, x, weight):
    rows, x = grad_output.double().flatten(0, -2), x.double()
    grad_x = grad_output.double() @ weight.double()
    return grad_x, rows.T @ x.flatten(0, -2), rows.sum(0)


@linear_vjp.alternate("einsum")
def _(grad_output, x, weight):
    return (
        torch.einsum("...o,oi->...i", grad_output, weight),
        torch.einsum("...o,...i->oi", grad_output, x),
        torch.einsum("...o->o", grad_output),
    )


# ----------------------------------------------------------------------------------- activations
activations = Check(
    "activations",
    parts={"relu": 1, "relu at zero": 1, "softmax": 2},
    reads="Softmax: a Jacobian that nobody makes",
    by_hand=BY_HAND,
    tolerance=SUMS,
)


@activations.reference
class _:
    def relu_vjp(grad_output, x):
        x = x.detach().requires_grad_()
        return torch.autograd.grad(x.relu(), x, grad_output)[0]

    def softmax_vjp(grad_output, y):
        x = y.detach().log().requires_grad_()
        return torch.autograd.grad(x.softmax(-1), x, grad_output)[0]


@activations.cases
def _(draw):
    for dtype in FLOATS:
        for layout in LAYOUTS:
            shape = draw.shape(draw.integer(2, 3))
            upstream, x = (draw.tensor(shape, dtype, layout) for _ in range(2))
            yield case("relu", upstream, x, of="relu_vjp")
            zeros = draw.tensor(shape, dtype)
            zeros[..., ::2] = 0.0
            zeros[..., 0] = -0.0
            yield case("relu at zero", upstream, zeros, of="relu_vjp", shown="x with zeros in it")
            y = torch.softmax(2 * x, -1)
            yield case("softmax", upstream, y, of="softmax_vjp")
    row = torch.softmax(draw.tensor((9,), torch.float64), -1)
    yield case("softmax", draw.tensor((9,), torch.float64), row, of="softmax_vjp")


@activations.misconception(
    "open at zero", "at exactly 0 the gradient was let through.", earns=3
)
class _:
    def relu_vjp(grad_output, x):
        return torch.where(x >= 0, grad_output, torch.zeros_like(grad_output))


@activations.misconception(
    "half open at zero", "at exactly 0 half of the gradient was let through.", earns=3
)
class _:
    def relu_vjp(grad_output, x):
        return grad_output * (torch.sign(x) + 1) / 2


@activations.misconception(
    "written into the incoming gradient",
    "the incoming gradient itself was changed; others may still have to read it.",
    earns=2,
)
class _:
    def relu_vjp(grad_output, x):
        grad_output[x <= 0] = 0
        return grad_output


@activations.misconception(
    "relu with its upstream dropped", "relu's own derivative, 0 or 1, was returned alone.", earns=2
)
class _:
    def relu_vjp(grad_output, x):
        return (x > 0).to(x.dtype)


@activations.misconception(
    "relu of the gradient",
    "relu was applied to the incoming gradient; the sign of the input decides, not that of the "
    "gradient.",
    earns=2,
)
class _:
    def relu_vjp(grad_output, x):
        return grad_output.clamp(min=0)


@activations.misconception(
    "diagonal only",
    "each output was differentiated for its own input alone; it moves with the whole row.",
    earns=2,
)
class _:
    def softmax_vjp(grad_output, y):
        return grad_output * y * (1 - y)


@activations.misconception(
    "softmax with upstream ones",
    "the incoming gradient was taken to be 1 everywhere; the row of a softmax then gets nothing.",
    earns=2,
)
class _:
    def softmax_vjp(grad_output, y):
        return y * (1 - y.sum(-1, keepdim=True))


@activations.misconception(
    "gradients summed unweighted",
    "the row's number is a plain sum of the incoming gradients; each counts as much as its "
    "probability.",
    earns=2,
)
class _:
    def softmax_vjp(grad_output, y):
        return y * (grad_output - grad_output.sum(-1, keepdim=True) * y)


@activations.misconception(
    "gradients summed unweighted, and not times y",
    "a plain sum of the incoming gradients was taken away; each counts as much as its probability.",
    earns=2,
)
class _:
    def softmax_vjp(grad_output, y):
        return y * (grad_output - grad_output.sum(-1, keepdim=True))


@activations.misconception(
    "a mean for the row's sum",
    "the products of gradients and probabilities were averaged over the row, not summed.",
    earns=2,
)
class _:
    def softmax_vjp(grad_output, y):
        return y * (grad_output - (grad_output * y).mean(-1, keepdim=True))


@activations.misconception(
    "one sum for all rows",
    "the sum runs over the whole tensor; each row is a softmax of its own.",
    earns=2,
)
class _:
    def softmax_vjp(grad_output, y):
        return y * (grad_output - (grad_output * y).sum())


@activations.misconception(
    "sum over the wrong dimension",
    "the sum runs over the first dimension, and the softmax over the last.",
    earns=2,
)
class _:
    def softmax_vjp(grad_output, y):
        return y * (grad_output - (grad_output * y).sum(0, keepdim=True))


@activations.misconception(
    "log softmax", "this is what a log softmax sends back, not a softmax.", earns=2
)
class _:
    def softmax_vjp(grad_output, y):
        return grad_output - y * grad_output.sum(-1, keepdim=True)


@activations.misconception(
    "sign turned round", "the gradient of the softmax has the opposite sign.", earns=2
)
class _:
    def softmax_vjp(grad_output, y):
        return y * ((grad_output * y).sum(-1, keepdim=True) - grad_output)


@activations.alternate("a mask, and the whole Jacobian after all")
class _:
    def relu_vjp(grad_output, x):
        return grad_output * (x > 0)

    def softmax_vjp(grad_output, y):
        jacobian = torch.diag_embed(y) - y[..., :, None] * y[..., None, :]
        return (jacobian @ grad_output[..., None])[..., 0]


# -------------------------------------------------------------------------------- layer_norm_vjp
layer_norm_vjp = Check(
    "layer_norm_vjp",
    parts={"bias": 1, "weight": 1, "input": 2},
    reads="LayerNorm: three ways to the loss",
    by_hand=BY_HAND,
    tolerance=SUMS,
)


@layer_norm_vjp.reference
def _(grad_output, x, weight, eps):
    x, weight = x.detach().requires_grad_(), weight.detach().requires_grad_()
    bias = torch.zeros_like(weight).requires_grad_()
    y = torch.nn.functional.layer_norm(x, weight.shape, weight, bias, eps)
    return torch.autograd.grad(y, (x, weight, bias), grad_output)


@layer_norm_vjp.cases
def _(draw):
    def one(part, place, *args):
        return Case(part, lambda subject: subject(*args)[place])

    for dtype in FLOATS:
        for layout in LAYOUTS:
            a, b, n = draw.shape(3, low=3, high=9)
            for shape in ((a, n), (a, b, n)):
                upstream, x = (draw.tensor(shape, dtype, layout) for _ in range(2))
                weight, eps = draw.tensor((n,), dtype), draw.choice((0.3, 0.5))
                for place, part in enumerate(("input", "weight", "bias")):
                    yield one(part, place, upstream, x, weight, eps)


@layer_norm_vjp.misconception(
    "mean and variance taken for constants",
    "only the straight way from `x` was followed; mean and variance move with it.",
    earns=2,
)
def _(grad_output, x, weight, eps):
    centred = x - x.mean(-1, keepdim=True)
    scale = (centred.square().mean(-1, keepdim=True) + eps).rsqrt()
    grad_weight = (grad_output * centred * scale).flatten(0, -2).sum(0)
    return grad_output * weight * scale, grad_weight, grad_output.flatten(0, -2).sum(0)


@layer_norm_vjp.misconception(
    "variance taken for a constant",
    "the way by the mean was followed; the one by the variance was not.",
    earns=2,
)
def _(grad_output, x, weight, eps):
    centred = x - x.mean(-1, keepdim=True)
    scale = (centred.square().mean(-1, keepdim=True) + eps).rsqrt()
    g = grad_output * weight
    grad_weight = (grad_output * centred * scale).flatten(0, -2).sum(0)
    grad_x = scale * (g - g.mean(-1, keepdim=True))
    return grad_x, grad_weight, grad_output.flatten(0, -2).sum(0)


@layer_norm_vjp.misconception(
    "mean taken for a constant",
    "the way by the variance was followed; the one by the mean was not.",
    earns=2,
)
def _(grad_output, x, weight, eps):
    centred = x - x.mean(-1, keepdim=True)
    scale = (centred.square().mean(-1, keepdim=True) + eps).rsqrt()
    normed = centred * scale
    g = grad_output * weight
    grad_x = scale * (g - normed * (g * normed).mean(-1, keepdim=True))
    grad_weight = (grad_output * normed).flatten(0, -2).sum(0)
    return grad_x, grad_weight, grad_output.flatten(0, -2).sum(0)


@layer_norm_vjp.misconception(
    "weight left out on the way to x",
    "what arrives at the normed row was not multiplied by the weight.",
    earns=2,
)
def _(grad_output, x, weight, eps):
    centred = x - x.mean(-1, keepdim=True)
    scale = (centred.square().mean(-1, keepdim=True) + eps).rsqrt()
    normed = centred * scale
    g = grad_output
    grad_x = g - g.mean(-1, keepdim=True) - normed * (g * normed).mean(-1, keepdim=True)
    grad_weight = (grad_output * normed).flatten(0, -2).sum(0)
    return scale * grad_x, grad_weight, grad_output.flatten(0, -2).sum(0)


@layer_norm_vjp.misconception(
    "summed over the first dimension only",
    "weight and bias were summed over one dimension; a batch of sequences has two.",
    earns=2,
)
def _(grad_output, x, weight, eps):
    centred = x - x.mean(-1, keepdim=True)
    scale = (centred.square().mean(-1, keepdim=True) + eps).rsqrt()
    normed = centred * scale
    g = grad_output * weight
    grad_x = g - g.mean(-1, keepdim=True) - normed * (g * normed).mean(-1, keepdim=True)
    return scale * grad_x, (grad_output * normed).sum(0), grad_output.sum(0)


@layer_norm_vjp.misconception(
    "mean over the wrong dimension",
    "the means run over the first dimension, that of a batch norm.",
    earns=1,
)
def _(grad_output, x, weight, eps):
    centred = x - x.mean(0, keepdim=True)
    scale = (centred.square().mean(0, keepdim=True) + eps).rsqrt()
    normed = centred * scale
    g = grad_output * weight
    grad_x = g - g.mean(0, keepdim=True) - normed * (g * normed).mean(0, keepdim=True)
    grad_weight = (grad_output * normed).flatten(0, -2).sum(0)
    return scale * grad_x, grad_weight, grad_output.flatten(0, -2).sum(0)


@layer_norm_vjp.misconception(
    "variance divided by n - 1",
    "the variance was divided by n - 1, `var`'s default.",
    earns=1,
)
def _(grad_output, x, weight, eps):
    scale = (x.var(-1, keepdim=True) + eps).rsqrt()
    normed = (x - x.mean(-1, keepdim=True)) * scale
    g = grad_output * weight
    grad_x = g - g.mean(-1, keepdim=True) - normed * (g * normed).mean(-1, keepdim=True)
    grad_weight = (grad_output * normed).flatten(0, -2).sum(0)
    return scale * grad_x, grad_weight, grad_output.flatten(0, -2).sum(0)


@layer_norm_vjp.misconception(
    "eps outside of the root",
    "eps was added to the deviation, after the root; it belongs to the variance, below it.",
    earns=1,
)
def _(grad_output, x, weight, eps):
    centred = x - x.mean(-1, keepdim=True)
    scale = 1 / (centred.square().mean(-1, keepdim=True).sqrt() + eps)
    normed = centred * scale
    g = grad_output * weight
    grad_x = g - g.mean(-1, keepdim=True) - normed * (g * normed).mean(-1, keepdim=True)
    grad_weight = (grad_output * normed).flatten(0, -2).sum(0)
    return scale * grad_x, grad_weight, grad_output.flatten(0, -2).sum(0)


@layer_norm_vjp.misconception(
    "not divided by the deviation",
    "both corrections are there, and the division by the deviation is not.",
    earns=2,
)
def _(grad_output, x, weight, eps):
    centred = x - x.mean(-1, keepdim=True)
    normed = centred * (centred.square().mean(-1, keepdim=True) + eps).rsqrt()
    g = grad_output * weight
    grad_x = g - g.mean(-1, keepdim=True) - normed * (g * normed).mean(-1, keepdim=True)
    grad_weight = (grad_output * normed).flatten(0, -2).sum(0)
    return grad_x, grad_weight, grad_output.flatten(0, -2).sum(0)


@layer_norm_vjp.misconception(
    "mean of the incoming gradient",
    "the mean that was taken away is that of the incoming gradient, before the weight.",
    earns=2,
)
def _(grad_output, x, weight, eps):
    centred = x - x.mean(-1, keepdim=True)
    scale = (centred.square().mean(-1, keepdim=True) + eps).rsqrt()
    normed = centred * scale
    g = grad_output * weight
    mean = grad_output.mean(-1, keepdim=True)
    grad_x = g - mean - normed * (g * normed).mean(-1, keepdim=True)
    grad_weight = (grad_output * normed).flatten(0, -2).sum(0)
    return scale * grad_x, grad_weight, grad_output.flatten(0, -2).sum(0)


@layer_norm_vjp.misconception(
    "both means of the incoming gradient",
    "both corrections were made with the incoming gradient, before the weight.",
    earns=2,
)
def _(grad_output, x, weight, eps):
    centred = x - x.mean(-1, keepdim=True)
    scale = (centred.square().mean(-1, keepdim=True) + eps).rsqrt()
    normed = centred * scale
    mean = grad_output.mean(-1, keepdim=True)
    along = (grad_output * normed).mean(-1, keepdim=True)
    grad_x = scale * (grad_output * weight - mean - normed * along)
    grad_weight = (grad_output * normed).flatten(0, -2).sum(0)
    return grad_x, grad_weight, grad_output.flatten(0, -2).sum(0)


@layer_norm_vjp.misconception(
    "eps left out", "the variance was used without eps, which need not be small.", earns=1
)
def _(grad_output, x, weight, eps):
    centred = x - x.mean(-1, keepdim=True)
    scale = centred.square().mean(-1, keepdim=True).rsqrt()
    normed = centred * scale
    g = grad_output * weight
    grad_x = g - g.mean(-1, keepdim=True) - normed * (g * normed).mean(-1, keepdim=True)
    grad_weight = (grad_output * normed).flatten(0, -2).sum(0)
    return scale * grad_x, grad_weight, grad_output.flatten(0, -2).sum(0)


@layer_norm_vjp.alternate("one way after the other")
def _(grad_output, x, weight, eps):
    n = x.shape[-1]
    centred = x - x.mean(-1, keepdim=True)
    deviation = torch.sqrt(x.var(-1, keepdim=True, correction=0) + eps)
    g = grad_output * weight
    to_variance = (g * centred).sum(-1, keepdim=True) * -0.5 / deviation**3
    to_mean = (-g / deviation).sum(-1, keepdim=True)
    grad_x = g / deviation + to_variance * 2 * centred / n + to_mean / n
    rows = list(range(x.dim() - 1))
    return grad_x, (grad_output * centred / deviation).sum(rows), grad_output.sum(rows)


# ----------------------------------------------------------------------------------- numeric_vjp
numeric_vjp = Check(
    "numeric_vjp",
    parts={"one number out": 1, "many out, any upstream": 1, "float32 in": 1},
    reads="Nudging: how far is far enough",
    tolerance=Tolerance(1e-6, 1e-8, "differences of float64 divided by a small h"),
    by_hand=ByHand(
        "the point of a numeric gradient is that it needs no autograd", forbid_names=AUTOGRAD
    ),
)


@numeric_vjp.reference
def _(name, x, grad_output, h=1e-6):
    f, x = getattr(torch, name), x.double()
    nudges = h * torch.eye(x.numel(), dtype=torch.float64).view(-1, *x.shape)
    pairs = [f(x + nudge) - f(x - nudge) for nudge in nudges]
    found = [(grad_output.double() * pair).sum() / (2 * h) for pair in pairs]
    return torch.stack(found).view(x.shape)


@numeric_vjp.cases
def _(draw):
    def matrix(dtype, layout="contiguous"):
        return draw.tensor((3, 3), dtype, layout) / 3 + 2 * torch.eye(3, dtype=dtype)

    double = torch.float64
    for name, h in (("det", 1e-2), ("trace", 1e-3), ("logdet", 0.1)):
        upstream = draw.tensor((), double) + 3
        yield case("one number out", name, matrix(double), upstream, h, shown=f"torch.{name}")
    for name, h, layout in (
        ("inverse", 1e-2, "contiguous"), ("exp", 0.1, "transposed"), ("tanh", 0.05, "sliced"),
        ("matrix_exp", 0.05, "transposed"),
    ):  # fmt: skip
        x, upstream = matrix(double, layout), draw.tensor((3, 3), double, layout)
        yield case("many out, any upstream", name, x, upstream, h, shown=f"torch.{name}")
    wide = draw.tensor((2, 3), double)
    yield case("many out, any upstream", "sin", wide, draw.tensor((2, 3), double), 0.25)
    for name in ("inverse", "sin"):
        x = matrix(torch.float32)
        yield case("float32 in", name, x, draw.tensor((3, 3)), 1e-4, shown=f"torch.{name}")


@numeric_vjp.misconception(
    "forward difference",
    "the function was nudged to one side only, which is off by a term that is linear in h.",
    earns=0,
)
def _(name, x, grad_output, h=1e-6):
    f, x = getattr(torch, name), x.double()
    found = []
    for i in range(x.numel()):
        nudge = torch.zeros(x.numel(), dtype=torch.float64)
        nudge[i] = h
        found.append((grad_output * (f(x + nudge.view(x.shape)) - f(x))).sum() / h)
    return torch.stack(found).view(x.shape)


@numeric_vjp.misconception(
    "all entries nudged at once",
    "every entry was nudged at the same time; that is right for elementwise functions alone.",
    earns=0,
)
def _(name, x, grad_output, h=1e-6):
    f, x = getattr(torch, name), x.double()
    return grad_output.double() * (f(x + h) - f(x - h)) / (2 * h)


@numeric_vjp.misconception(
    "divided by h", "the two points are 2h apart, and their difference was divided by h.", earns=0
)
def _(name, x, grad_output, h=1e-6):
    f, x = getattr(torch, name), x.double()
    found = []
    for i in range(x.numel()):
        nudge = torch.zeros(x.numel(), dtype=torch.float64)
        nudge[i] = h
        nudge = nudge.view(x.shape)
        found.append((grad_output * (f(x + nudge) - f(x - nudge))).sum() / h)
    return torch.stack(found).view(x.shape)


@numeric_vjp.misconception(
    "upstream of ones", "the outputs were summed as they are, without the incoming gradient.",
    earns=0,
)  # fmt: skip
def _(name, x, grad_output, h=1e-6):
    f, x = getattr(torch, name), x.double()
    found = []
    for i in range(x.numel()):
        nudge = torch.zeros(x.numel(), dtype=torch.float64)
        nudge[i] = h
        nudge = nudge.view(x.shape)
        found.append((f(x + nudge) - f(x - nudge)).sum() / (2 * h))
    return torch.stack(found).view(x.shape)


@numeric_vjp.misconception(
    "float32 arithmetic",
    "the function was computed in float32 and only the result was made float64; the difference "
    "had lost its digits by then.",
    earns=2,
)
def _(name, x, grad_output, h=1e-6):
    f = getattr(torch, name)
    found = []
    for i in range(x.numel()):
        nudge = torch.zeros(x.numel(), dtype=x.dtype)
        nudge[i] = h
        nudge = nudge.view(x.shape)
        found.append((grad_output * (f(x + nudge) - f(x - nudge))).sum() / (2 * h))
    return torch.stack(found).view(x.shape).double()


@numeric_vjp.misconception(
    "nudged in place and left there",
    "the input was nudged in place, and did not get its old values back.",
    earns=0,
)
def _(name, x, grad_output, h=1e-6):
    f, x, grad_output = getattr(torch, name), x.double(), grad_output.double()
    grad = torch.zeros(x.shape, dtype=torch.float64)
    for index in torch.cartesian_prod(*[torch.arange(n) for n in x.shape]).tolist():
        place = tuple(index)
        x[place] += h
        above = f(x)
        x[place] -= 2 * h
        below = f(x)
        grad[place] = (grad_output * (above - below)).sum() / (2 * h)
    return grad


@numeric_vjp.misconception(
    "h of its own choice", "the function used a step of its own in place of h.", earns=0
)
def _(name, x, grad_output, h=1e-6):
    f, x = getattr(torch, name), x.double()
    found = []
    for i in range(x.numel()):
        nudge = torch.zeros(x.numel(), dtype=torch.float64)
        nudge[i] = 0.2
        nudge = nudge.view(x.shape)
        found.append((grad_output * (f(x + nudge) - f(x - nudge))).sum() / 0.4)
    return torch.stack(found).view(x.shape)


@numeric_vjp.misconception(
    "a small h of its own",
    "h was not used: the function took a small step of its own.",
    earns=1,
)
def _(name, x, grad_output, h=1e-6):
    f, x = getattr(torch, name), x.double()
    found = []
    for i in range(x.numel()):
        nudge = torch.zeros(x.numel(), dtype=torch.float64)
        nudge[i] = 1e-6
        nudge = nudge.view(x.shape)
        found.append((grad_output * (f(x + nudge) - f(x - nudge))).sum() / 2e-6)
    return torch.stack(found).view(x.shape)


@numeric_vjp.alternate("a copy, nudged through a flat view")
def _(name, x, grad_output, h=1e-6):
    f = getattr(torch, name)
    moved = x.double().clone(memory_format=torch.contiguous_format)
    flat, found = moved.view(-1), []
    for i in range(flat.numel()):
        old = flat[i].item()
        flat[i] = old + h
        above = f(moved).clone()
        flat[i] = old - h
        below = f(moved).clone()
        flat[i] = old
        found.append(((above - below) * grad_output.double()).sum().item() / (2 * h))
    return torch.tensor(found, dtype=torch.float64).view(x.shape)


# ----------------------------------------------------------------------------------- run_softmax
run_softmax = Check(
    "run_softmax",
    parts={"forward": 1, "backward": 1, "backward of backward": 1},
    reads="A Function of your own",
    tolerance=SUMS,
    by_hand=ByHand(
        "the exercise is to teach autograd your softmax, not to hand it torch's",
        forbid_ops=frozenset({"aten._softmax", "aten._softmax_backward_data", "aten._log_softmax"}),
        # ops are watched on the input alone: a difference or a copy of it is a new tensor
        forbid_names=frozenset(
            {
                "softmax", "_softmax", "log_softmax", "_log_softmax", "softmin", "gumbel_softmax",
                "Softmax", "Softmax2d", "LogSoftmax", "Softmin", "_softmax_backward_data",
            }
        ),
    ),
)


@run_softmax.reference
def _(x, grad_output, direction=None):
    x = x.detach().requires_grad_()
    upstream = grad_output.detach().requires_grad_()
    y = torch.softmax(x, -1)
    (first,) = torch.autograd.grad(y, x, upstream, create_graph=True)
    found = {"node": "SoftmaxBackward", "output": y.detach(), "gradient": first.detach()}
    if direction is not None:
        found["of x"], found["of upstream"] = torch.autograd.grad(first, (x, upstream), direction)
    return found


@run_softmax.cases
def _(draw):
    def look(part, names, *args):
        def play(subject):
            found = subject(*args)
            # autograd calls a Function by its class, and its own nodes by a name that ends in 0
            is_a_function = {"node": found["node"].endswith("Backward")}
            return [(found | is_a_function)[name] for name in names]

        return Case(part, play, places={f"[{k}]": told[name] for k, name in enumerate(names)})

    told = {
        "node": "the output does not come from a Function of your own.",
        "output": "the output",
        "gradient": "the gradient for `x`",
        "of x": "the gradient of the gradient, with respect to `x`",
        "of upstream": "the gradient of the gradient, with respect to the incoming gradient",
    }
    for dtype in FLOATS:
        for layout in LAYOUTS:
            shape = draw.shape(draw.integer(2, 3))
            x, upstream, direction = (draw.tensor(shape, dtype, layout) for _ in range(3))
            yield look("forward", ("node", "output"), x, upstream)
            yield look("backward", ("node", "gradient"), x, upstream)
            yield look("backward of backward", ("of x", "of upstream"), x, upstream, direction)
        large = 500 * draw.tensor((3, 5), dtype)
        yield look("forward", ("output",), large, draw.tensor((3, 5), dtype))


@run_softmax.misconception(
    "torch's own softmax",
    "forward asks torch for the softmax, which is what it was to compute.",
    earns=0,
)
def _(x, grad_output, direction=None):
    class Softmax(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = torch.softmax(x, -1)
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, grad_output):
            (y,) = ctx.saved_tensors
            return y * (grad_output - (y * grad_output).sum(-1, keepdim=True))

    x = x.detach().requires_grad_()
    upstream = grad_output.detach().requires_grad_()
    y = Softmax.apply(x)
    (first,) = torch.autograd.grad(y, x, upstream, create_graph=True)
    found = {"node": y.grad_fn.name(), "output": y.detach(), "gradient": first.detach()}
    if direction is not None:
        found["of x"], found["of upstream"] = torch.autograd.grad(first, (x, upstream), direction)
    return found


@run_softmax.misconception(
    "torch's own log softmax",
    "forward asks torch for the log of the softmax, and takes it back.",
    earns=0,
)
def _(x, grad_output, direction=None):
    class Softmax(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = torch.nn.functional.log_softmax(x, -1).exp()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, grad_output):
            (y,) = ctx.saved_tensors
            return y * (grad_output - (y * grad_output).sum(-1, keepdim=True))

    x = x.detach().requires_grad_()
    upstream = grad_output.detach().requires_grad_()
    y = Softmax.apply(x)
    (first,) = torch.autograd.grad(y, x, upstream, create_graph=True)
    found = {"node": y.grad_fn.name(), "output": y.detach(), "gradient": first.detach()}
    if direction is not None:
        found["of x"], found["of upstream"] = torch.autograd.grad(first, (x, upstream), direction)
    return found


@run_softmax.misconception(
    "cut off from x",
    "backward cannot be differentiated with respect to x: something in it is cut off from the graph "
    "(a detach, a .data, a saved tensor that forward neither got nor returned), or it is marked "
    "once_differentiable.",
    earns=2,
)
def _(x, grad_output, direction=None):
    class Softmax(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            e = torch.exp(x - x.amax(-1, keepdim=True))
            y = e / e.sum(-1, keepdim=True)
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, grad_output):
            y = ctx.saved_tensors[0].detach()
            return y * (grad_output - (y * grad_output).sum(-1, keepdim=True))

    x = x.detach().requires_grad_()
    upstream = grad_output.detach().requires_grad_()
    y = Softmax.apply(x)
    (first,) = torch.autograd.grad(y, x, upstream, create_graph=True)
    found = {"node": y.grad_fn.name(), "output": y.detach(), "gradient": first.detach()}
    if direction is not None:
        found["of x"], found["of upstream"] = torch.autograd.grad(first, (x, upstream), direction)
    return found


@run_softmax.misconception(
    "cut off from the incoming gradient",
    "backward cannot be differentiated with respect to the incoming gradient, which it detached "
    "before using it.",
    earns=2,
)
def _(x, grad_output, direction=None):
    class Softmax(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            e = torch.exp(x - x.amax(-1, keepdim=True))
            y = e / e.sum(-1, keepdim=True)
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, grad_output):
            (y,) = ctx.saved_tensors
            g = grad_output.detach()
            return y * (g - (y * g).sum(-1, keepdim=True))

    x = x.detach().requires_grad_()
    upstream = grad_output.detach().requires_grad_()
    y = Softmax.apply(x)
    (first,) = torch.autograd.grad(y, x, upstream, create_graph=True)
    found = {"node": y.grad_fn.name(), "output": y.detach(), "gradient": first.detach()}
    if direction is not None:
        found["of x"], found["of upstream"] = torch.autograd.grad(first, (x, upstream), direction)
    return found


@run_softmax.misconception(
    "result of backward detached",
    "what backward returns was cut off from the graph as a whole, so nothing of it can be "
    "differentiated again.",
    earns=2,
)
def _(x, grad_output, direction=None):
    class Softmax(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            e = torch.exp(x - x.amax(-1, keepdim=True))
            y = e / e.sum(-1, keepdim=True)
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, grad_output):
            (y,) = ctx.saved_tensors
            return (y * (grad_output - (y * grad_output).sum(-1, keepdim=True))).detach()

    x = x.detach().requires_grad_()
    upstream = grad_output.detach().requires_grad_()
    y = Softmax.apply(x)
    (first,) = torch.autograd.grad(y, x, upstream, create_graph=True)
    found = {"node": y.grad_fn.name(), "output": y.detach(), "gradient": first.detach()}
    if direction is not None:
        found["of x"], found["of upstream"] = torch.autograd.grad(first, (x, upstream), direction)
    return found


@run_softmax.misconception(
    "maximum left in", "large inputs overflow in the exponential and come out as NaN.", earns=2
)
def _(x, grad_output, direction=None):
    class Softmax(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = torch.exp(x) / torch.exp(x).sum(-1, keepdim=True)
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, grad_output):
            (y,) = ctx.saved_tensors
            return y * (grad_output - (y * grad_output).sum(-1, keepdim=True))

    x = x.detach().requires_grad_()
    upstream = grad_output.detach().requires_grad_()
    y = Softmax.apply(x)
    (first,) = torch.autograd.grad(y, x, upstream, create_graph=True)
    found = {"node": y.grad_fn.name(), "output": y.detach(), "gradient": first.detach()}
    if direction is not None:
        found["of x"], found["of upstream"] = torch.autograd.grad(first, (x, upstream), direction)
    return found


@run_softmax.misconception(
    "diagonal only",
    "backward differentiates each output for its own input alone; it moves with the whole row.",
    earns=1,
)
def _(x, grad_output, direction=None):
    class Softmax(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            e = torch.exp(x - x.amax(-1, keepdim=True))
            y = e / e.sum(-1, keepdim=True)
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, grad_output):
            (y,) = ctx.saved_tensors
            return grad_output * y * (1 - y)

    x = x.detach().requires_grad_()
    upstream = grad_output.detach().requires_grad_()
    y = Softmax.apply(x)
    (first,) = torch.autograd.grad(y, x, upstream, create_graph=True)
    found = {"node": y.grad_fn.name(), "output": y.detach(), "gradient": first.detach()}
    if direction is not None:
        found["of x"], found["of upstream"] = torch.autograd.grad(first, (x, upstream), direction)
    return found


@run_softmax.misconception(
    "input saved for output",
    "forward saved its input, and backward reads it as if it were the output.",
    earns=1,
)
def _(x, grad_output, direction=None):
    class Softmax(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            e = torch.exp(x - x.amax(-1, keepdim=True))
            return e / e.sum(-1, keepdim=True)

        @staticmethod
        def backward(ctx, grad_output):
            (y,) = ctx.saved_tensors
            return y * (grad_output - (y * grad_output).sum(-1, keepdim=True))

    x = x.detach().requires_grad_()
    upstream = grad_output.detach().requires_grad_()
    y = Softmax.apply(x)
    (first,) = torch.autograd.grad(y, x, upstream, create_graph=True)
    found = {"node": y.grad_fn.name(), "output": y.detach(), "gradient": first.detach()}
    if direction is not None:
        found["of x"], found["of upstream"] = torch.autograd.grad(first, (x, upstream), direction)
    return found


@run_softmax.alternate("the input saved, the softmax computed again")
def _(x, grad_output, direction=None):
    class Softmax(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return torch.exp(x - torch.logsumexp(x, -1, keepdim=True))

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            y = torch.exp(x - torch.logsumexp(x, -1, keepdim=True))
            return y * (grad_output - (y * grad_output).sum(-1, keepdim=True))

    x = x.detach().requires_grad_()
    upstream = grad_output.detach().requires_grad_()
    y = Softmax.apply(x)
    (first,) = torch.autograd.grad(y, x, upstream, create_graph=True)
    found = {"node": y.grad_fn.name(), "output": y.detach(), "gradient": first.detach()}
    if direction is not None:
        found["of x"], found["of upstream"] = torch.autograd.grad(first, (x, upstream), direction)
    return found


@run_softmax.alternate("a class of another name, and the output kept as an attribute")
def _(x, grad_output, direction=None):
    class Row(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            e = torch.exp(x - x.max(-1, keepdim=True).values)
            ctx.y = e / e.sum(-1, keepdim=True)
            return ctx.y

        @staticmethod
        def backward(ctx, grad_output):
            weighted = ctx.y * grad_output
            return weighted - ctx.y * weighted.sum(-1, keepdim=True)

    x = x.detach().requires_grad_()
    upstream = grad_output.detach().requires_grad_()
    y = Row.apply(x)
    (first,) = torch.autograd.grad(y, x, upstream, create_graph=True)
    found = {"node": y.grad_fn.name(), "output": y.detach(), "gradient": first.detach()}
    if direction is not None:
        found["of x"], found["of upstream"] = torch.autograd.grad(first, (x, upstream), direction)
    return found


# --------------------------------------------------------------------------------------- lm_head
SENTENCES = (
    "yo hablé español anoche .",
    "yo hablé español .",
)

lm_head = Check(
    "lm_head",
    parts={
        "loss of any upstream": 2,
        "large logits": 1,
        "a head of any size": 1,
        "MiniGPT's own head": 2,
    },
    reads="Cross-entropy: what came minus what should have come",
    by_hand=BY_HAND,
    tolerance=Tolerance(1e-4, 1e-6, "sums over rows and channels, in an order of their own"),
)


@lm_head.reference
class _:
    def cross_entropy_vjp(grad_output, logits, targets):
        logits = logits.detach().requires_grad_()
        loss = torch.nn.functional.cross_entropy(logits, targets)
        return torch.autograd.grad(loss, logits, grad_output)[0]

    def lm_head_gradients(x, weight, bias, targets):
        x, weight, bias = (t.detach().requires_grad_() for t in (x, weight, bias))
        logits = torch.nn.functional.linear(x, weight, bias)
        loss = torch.nn.functional.cross_entropy(logits, targets)
        found = torch.autograd.grad(loss, (x, weight, bias))
        return dict(zip(("x", "weight", "bias"), found, strict=True))


@cache
def _hidden(sentence):
    """MiniGPT's hidden states of a sentence, and the words that follow: (N, 64), (N,)."""
    tokens = torch.tensor([load_tokenizer().encode(sentence)])
    with torch.no_grad():
        states = load_minigpt().hidden(tokens[:, :-1])[0]
    return states.clone(), tokens[0, 1:].clone()


@lm_head.cases
def _(draw):
    def targets(rows, words):
        return torch.tensor([draw.integer(0, words - 1) for _ in range(rows)])

    places = {f"['{name}']": f"the gradient for `{name}`" for name in ("x", "weight", "bias")}
    for dtype in FLOATS:
        for layout in LAYOUTS:
            n, v, i = draw.shape(3, low=3, high=9)
            logits = draw.tensor((n, v), dtype, layout)
            upstream = draw.tensor((), dtype).abs() + 1.5
            args = (upstream, logits, targets(n, v))
            yield case("loss of any upstream", *args, of="cross_entropy_vjp")
            # in float32 right ways of rounding would differ by more than the tolerance
            args = (upstream.double(), 1000 * logits.double() + 2000, targets(n, v))
            yield case("large logits", *args, of="cross_entropy_vjp")
            x, weight = draw.tensor((n, i), dtype, layout), draw.tensor((v, i), dtype, layout)
            args = (x, weight, draw.tensor((v,), dtype), targets(n, v))
            yield case("a head of any size", *args, of="lm_head_gradients", places=places)
    head = load_minigpt().lm_head
    weight, bias = head.weight.detach().clone(), head.bias.detach().clone()
    for sentence in SENTENCES:
        x, following = _hidden(sentence)
        args = (x, weight, bias, following)
        yield case("MiniGPT's own head", *args, of="lm_head_gradients", places=places)
        wrong = targets(len(x), len(bias))
        args = (x.double(), weight.double(), bias.double(), wrong)
        yield case("MiniGPT's own head", *args, of="lm_head_gradients", places=places)


@lm_head.misconception(
    "a sum for the mean",
    "the rows were not divided by their number, as if the loss were a sum.",
    earns=0,
)
class _:
    def cross_entropy_vjp(grad_output, logits, targets):
        hot = torch.zeros_like(logits)
        hot[torch.arange(len(targets)), targets] = 1
        return grad_output * (torch.softmax(logits, -1) - hot)

    def lm_head_gradients(x, weight, bias, targets):
        excess = torch.softmax(x @ weight.T + bias, -1)
        excess[torch.arange(len(targets)), targets] -= 1
        return {"x": excess @ weight, "weight": excess.T @ x, "bias": excess.sum(0)}


@lm_head.misconception(
    "upstream dropped",
    "the gradient of the loss was taken to be 1; something may have multiplied the loss since.",
    earns=3,
)
class _:
    def cross_entropy_vjp(grad_output, logits, targets):
        excess = torch.softmax(logits, -1)
        excess[torch.arange(len(targets)), targets] -= 1
        return excess / len(targets)


@lm_head.misconception(
    "divided by every logit",
    "the mean was taken over all logits; the loss is a mean over the rows.",
    earns=3,
)
class _:
    def cross_entropy_vjp(grad_output, logits, targets):
        excess = torch.softmax(logits, -1)
        excess[torch.arange(len(targets)), targets] -= 1
        return grad_output * excess / logits.numel()


@lm_head.misconception(
    "sign turned round",
    "the gradient points downhill: the target minus the probability.",
    earns=3,
)
class _:
    def cross_entropy_vjp(grad_output, logits, targets):
        excess = torch.softmax(logits, -1)
        excess[torch.arange(len(targets)), targets] -= 1
        return -grad_output * excess / len(targets)


@lm_head.misconception(
    "only the target's logit",
    "only the logit of the target gets a gradient; the others share in the softmax.",
    earns=3,
)
class _:
    def cross_entropy_vjp(grad_output, logits, targets):
        rows = torch.arange(len(targets))
        result = torch.zeros_like(logits)
        result[rows, targets] = torch.softmax(logits, -1)[rows, targets] - 1
        return grad_output * result / len(targets)


@lm_head.misconception(
    "every target in every row",
    "1 was taken off in each target's column for all rows: `p[:, targets]` means every row.",
    earns=0,
)
class _:
    def cross_entropy_vjp(grad_output, logits, targets):
        p = torch.softmax(logits, -1)
        p[:, targets] -= 1
        return grad_output * p / len(targets)

    def lm_head_gradients(x, weight, bias, targets):
        p = torch.softmax(x @ weight.T + bias, -1)
        p[:, targets] -= 1
        p = p / len(targets)
        return {"x": p @ weight, "weight": p.T @ x, "bias": p.sum(0)}


@lm_head.misconception(
    "exponentials of large logits",
    "large logits overflow in the exponential and come out as NaN.",
    earns=5,
)
class _:
    def cross_entropy_vjp(grad_output, logits, targets):
        e = torch.exp(logits)
        excess = e / e.sum(-1, keepdim=True)
        excess[torch.arange(len(targets)), targets] -= 1
        return grad_output * excess / len(targets)


@lm_head.misconception(
    "bias without its sum",
    "the gradient of the bias still has one row for each position.",
    earns=3,
)
class _:
    def lm_head_gradients(x, weight, bias, targets):
        excess = torch.softmax(x @ weight.T + bias, -1)
        excess[torch.arange(len(targets)), targets] -= 1
        excess = excess / len(targets)
        return {"x": excess @ weight, "weight": excess.T @ x, "bias": excess}


@lm_head.misconception(
    "weight transposed", "the gradient of the weight is (in, V), and the weight is (V, in).",
    earns=3,
)  # fmt: skip
class _:
    def lm_head_gradients(x, weight, bias, targets):
        excess = torch.softmax(x @ weight.T + bias, -1)
        excess[torch.arange(len(targets)), targets] -= 1
        excess = excess / len(targets)
        return {"x": excess @ weight, "weight": x.T @ excess, "bias": excess.sum(0)}


@lm_head.misconception(
    "bias forgotten in the logits",
    "the logits were computed without the bias, so the probabilities are those of another head.",
    earns=3,
)
class _:
    def lm_head_gradients(x, weight, bias, targets):
        excess = torch.softmax(x @ weight.T, -1)
        excess[torch.arange(len(targets)), targets] -= 1
        excess = excess / len(targets)
        return {"x": excess @ weight, "weight": excess.T @ x, "bias": excess.sum(0)}


@lm_head.alternate("one hot, and a shifted exponential")
class _:
    def cross_entropy_vjp(grad_output, logits, targets):
        p = torch.exp(logits - torch.logsumexp(logits, -1, keepdim=True))
        hot = torch.nn.functional.one_hot(targets, logits.shape[-1])
        return (p - hot) * (grad_output / logits.shape[0])

    def lm_head_gradients(x, weight, bias, targets):
        logits = torch.einsum("ni,vi->nv", x, weight) + bias
        p = torch.exp(torch.log_softmax(logits, -1))
        excess = (p - torch.nn.functional.one_hot(targets, len(bias))) / targets.numel()
        return {
            "bias": excess.sum(0),
            "weight": torch.einsum("nv,ni->vi", excess, x),
            "x": torch.einsum("nv,vi->ni", excess, weight),
        }
