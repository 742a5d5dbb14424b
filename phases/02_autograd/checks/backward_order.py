"""Lab 02, exercise 3: In which order does backward go?"""

from utils.checks.exercise import Case, Check, edited

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
        "['a list']": "what came is no list.",
        "['nodes']": "the list does not hold each node that the root depends on exactly once.",
        "['too soon']": "a node stands in the list before one that uses it.",
    }

    def order(part, graph, root, names=None, shown=""):
        """Any right order is as good as another: compare what is in it, and what came too soon."""
        names = names or draw.sample(sorted(graph), len(graph))  # the dict's order must not help
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
            # of thousands it is enough to know how many are there, and how many are right
            nodes = sorted(found) if len(graph) < 100 else [len(found), len(graph.keys() & place)]
            return {"a list": isinstance(found, list | tuple), "nodes": nodes, "too soon": soon}

        return Case(part, play, places=places, shown=shown)

    def letters(count):
        return draw.sample("abcdefghijklmnopqrstuvw", count)

    for _ in range(2):
        a, b, c, d, e, f, other, alone = letters(8)
        chain = {a: [b], b: [c], c: [], other: [b, alone], alone: []}
        yield order("chains and trees", chain, a, names=list(chain))
        yield order("chains and trees", chain, a, names=list(reversed(chain)))
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
    alone = {a: [], b: [a]}
    yield order("chains and trees", alone, a, shown="a root that uses nothing")
    deep = {f"n{k}": [f"n{k - 1}"] * (1 + (k % 50 == 0)) for k in range(1, 6000)} | {"n0": []}
    yield order("thousands of nodes", deep, "n5999")


def _backward_order(graph, root):
    uses = {root: 0}
    to_see = [root]
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
        for source in graph[node]:
            uses[source] -= 1
            if uses[source] == 0:
                ready.append(source)
    return order


@backward_order.misconception(
    "breadth first",
    "the nodes are in the order of their distance from the root, so that a far user of a near "
    "node comes too late.",
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
    "the order is that of a visit in depth: a node comes as soon as it is met, though another "
    "user of it is still to come.",
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
    "the order is that of a visit in depth, the last inputs first: a node comes as soon as it is "
    "met, though another user of it is still to come.",
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
    "a node comes after the first of its users, where it must wait for the last.",
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


backward_order.misconception(
    "a double use counted once",
    "a node that stands twice among another's inputs comes too soon, as where it is counted once "
    "and taken off twice.",
    earns=2,
)(edited(_backward_order, ("graph[to_see.pop()]", "dict.fromkeys(graph[to_see.pop()])")))
backward_order.misconception(
    "a double use taken off once",
    "a node that stands twice among another's inputs is missing, as where it is counted twice "
    "and taken off once, and never becomes ready.",
    earns=1,
)(edited(_backward_order, ("graph[node]", "dict.fromkeys(graph[node])")))
backward_order.misconception(
    "users elsewhere counted, too",
    "nodes are missing whose users are not all below the root, as where they wait for users that "
    "never come.",
    earns=2,
)(
    edited(
        _backward_order,
        ("uses = {root: 0}", "uses = dict.fromkeys(graph, 0)"),
        ("to_see = [root]", "to_see = list(graph)"),
    )
)  # fmt: skip


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
    "on a long path Python's limit of nested calls is reached, as by a function that calls "
    "itself once for each node.",
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


backward_order.equivalent(
    ("{root: 0}", "{}"),
    ("{root: 0}", "{root: 1}"),
    ("{root: 0}", "{root: -1}"),
    because="nothing that the root depends on uses the root, so nobody looks at its count",
)
backward_order.equivalent(
    ("== 0", "<= 0"), because="each use is counted and taken off once: no count falls below 0"
)


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
