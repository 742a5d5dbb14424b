"""Lab 02, exercise 3: In which order does backward go?"""

from hood.judge.checks.exercise import Case, Check

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
        "['a list']": "the result is not a list.",
        "['nodes']": (
            "the list should contain the nodes that the root depends on, each exactly once, and "
            "no others."
        ),
        "['too soon']": "a node is in the list before a node that uses it.",
    }

    def order(part, graph, root, names=None, shown=""):
        """Any right order passes: compare which nodes are in the list, and which come too soon."""
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
            # for thousands of nodes, compare two counts: the nodes in the list, and the nodes of
            # the graph among them
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
