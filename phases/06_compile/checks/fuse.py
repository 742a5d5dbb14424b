"""Lab 06, exercise 6: A fusion pass"""

from hood.judge.checks.exercise import Case, Check
from hood.judge.checks.lab_solution import lab_solution

fuse_check = Check(
    "fuse",
    parts={"pointwise nodes": 1, "reductions": 1, "the order": 1, "what is stored": 1},
    reads="Fusion, and the code",
    reads_by_part={"reductions": "What shares a loop"},
)


@fuse_check.reference
class _:
    def fuse(nodes):
        kinds = {name: kind for name, kind, _ in nodes}
        groups = []

        def takes(at, kind, reads):
            group = groups[at]
            younger = [name for other in groups[at + 1 :] for name in other]
            return (
                "library" not in [kind, *(kinds[name] for name in group)]
                and any(read in group for read in reads)
                and not any(read in group and kinds[read] == "reduction" for read in reads)
                and not any(read in younger for read in reads)
            )

        for name, kind, reads in nodes:
            for at in reversed(range(len(groups))):
                if takes(at, kind, reads):
                    groups[at].append(name)
                    break
            else:
                groups.append([name])
        return groups

    def stored(nodes, groups, outputs):
        def elsewhere(name):
            (own,) = (group for group in groups if name in group)
            return any(name in reads and reader not in own for reader, _, reads in nodes)

        return [name for name, _, _ in nodes if name in outputs or elsewhere(name)]


P, R, L = "pointwise", "reduction", "library"
MUST = {True: "must be stored, and is missing", False: "should not be stored"}


def drawn(draw, count, kinds):
    """Random nodes. Each node reads one or two names of earlier nodes or inputs."""
    nodes = []
    names = draw.sample("abcdefghijklmnopqrstuvw", count)
    for at, name in enumerate(names):
        before = [*names[max(0, at - 4) : at], draw.choice("xyz")]
        reads = draw.sample(before, min(len(before), draw.integer(1, 2)))
        nodes.append((name, draw.choice(kinds), reads))
    return nodes


def grouped(draw, nodes):
    """Random groups of a program's nodes."""
    groups = []
    for name, _, _ in nodes:
        if groups and draw.integer(0, 2):
            draw.choice(groups).append(name)
        else:
            groups.append([name])
    return groups


@fuse_check.cases
def _(draw):
    pointwise, reductions, order, memory = fuse_check.parts
    n, m, o, p = draw.sample("abcdefgh", 4)

    def words(nodes):
        return "; ".join(f"{name} = {kind}({', '.join(reads)})" for name, kind, reads in nodes)

    def asked(part, nodes):
        """First compare for each node whether its group is right, and then the groups.

        So a verdict names the first node that is in a wrong group.
        """
        names = [name for name, _, _ in nodes]

        def before(groups):
            """For each node, the nodes of its group that come before it in the program."""
            of = {name: group for group in groups for name in group}
            return {name: set(names[:at]) & set(of[name]) for at, name in enumerate(names)}

        right = before(fuse(nodes))

        def play(subject):
            came = subject["fuse"](nodes)
            lists = isinstance(came, list) and all(isinstance(group, list) for group in came)
            found = [name for group in came for name in group] if lists else []
            whole = all(isinstance(name, str) for name in found) and sorted(found) == sorted(names)
            said = before(came) if whole else right
            return {**{name: said[name] == right[name] for name in names}, "groups": came}

        places = {f"['{name}']": f"`{name}` is in a wrong group." for name in names}
        places["['groups']"] = "the groups"
        return Case(part, play, of="fuse", shown=words(nodes), places=places)

    yield asked(pointwise, [])
    yield asked(pointwise, [(n, P, ["x"]), (m, P, ["x"]), (o, P, [m]), (p, P, [n])])
    yield asked(pointwise, [(n, P, ["x"]), (m, P, [n]), (o, P, [n, m]), (p, P, [n, o])])
    yield asked(pointwise, [(n, P, ["x"]), (m, P, [n]), (o, P, [n]), (p, P, [m, o])])
    yield asked(pointwise, [(n, P, ["x"]), (m, P, [n, "x"]), (o, P, ["y", m])])
    yield asked(pointwise, [(n, L, ["x"]), (m, L, [n]), (o, P, [m, n]), (p, P, [o])])
    yield asked(pointwise, [(n, P, ["x", "y"]), (m, P, [n, n]), (o, P, ["x", "y"]), (p, L, [o])])

    yield asked(reductions, [(n, P, ["x"]), (m, R, [n]), (o, P, [n]), (p, P, [o, m])])
    yield asked(reductions, [(n, R, ["x"]), (m, R, ["x"]), (o, P, ["x"]), (p, R, [o])])
    yield asked(reductions, [(n, P, ["x"]), (m, R, [n]), (o, R, [n]), (p, R, [m])])
    yield asked(reductions, [(n, P, ["x"]), (m, P, ["y"]), (o, R, [n, m]), (p, P, [m])])
    yield asked(reductions, [(n, R, ["x"]), (m, P, [n]), (o, P, [m, n]), (p, P, [n])])
    yield asked(reductions, [(n, P, ["x"]), (m, R, ["y"]), (o, P, [n, m]), (p, P, [n])])
    yield asked(reductions, [(n, P, ["x"]), (m, R, ["y"]), (o, P, [n]), (p, P, [m, o])])
    yield asked(reductions, drawn(draw, 7, (P, R)))

    yield asked(order, [(n, P, ["x"]), (m, P, ["y"]), (o, P, [n, m]), (p, P, [n])])
    yield asked(order, [(n, P, ["x"]), (m, P, ["y"]), (o, P, [n]), (p, P, [m, o])])
    yield asked(order, [(n, P, ["x"]), (m, L, [n]), (o, P, [m]), (p, P, [n, o])])
    yield asked(order, [(n, P, ["x"]), (m, R, [n]), (o, P, [m]), (p, P, [n, o])])
    yield asked(order, [(n, P, ["x"]), (m, R, [n]), (o, R, [m]), (p, P, [n, o])])
    yield asked(order, [(n, R, ["x"]), (m, P, [n]), (o, P, [m, n]), (p, L, [o])])
    yield asked(order, [(n, P, ["x"]), (m, L, ["x"]), (o, P, [m, n]), (p, P, [n]), ("q", P, [n])])
    yield asked(order, [(n, P, ["x"]), (m, P, ["y"]), (o, R, [m]), (p, P, [n, o])])
    yield asked(order, [(n, P, ["x"]), (m, R, [n]), (o, P, [n]), (p, L, [m]), ("q", P, [o, n])])
    yield asked(order, [(n, L, ["x"]), (m, R, [n]), (o, P, [m]), (p, R, [n, "x"])])
    yield asked(order, [(n, R, ["x"]), (m, L, [n]), (o, R, [m]), (p, P, [o])])
    for _ in range(3):
        yield asked(order, drawn(draw, 10, (P, P, P, R, L)))

    def written(nodes, groups, outputs):
        shown = f"{words(nodes)}; groups {groups}; outputs {', '.join(outputs) or 'none'}"
        right = stored(nodes, groups, outputs)

        def play(subject):
            came = subject["stored"](nodes, groups, outputs)
            names = isinstance(came, (list, tuple)) and all(isinstance(name, str) for name in came)
            facts = {n: not names or (n in came) == (n in right) for n, _, _ in nodes}
            facts["known"] = not names or set(came) <= {n for n, _, _ in nodes}
            facts["once"] = not names or len(came) == len(set(came))
            facts["in order"] = not names or sorted(came) != sorted(right) or list(came) == right
            return {**facts, "names": came}

        places = {f"['{n}']": f"`{n}` {MUST[n in right]}." for n, _, _ in nodes}
        places["['known']"] = "The list has a name that is not the name of a node."
        places["['once']"] = "The list has a name more than once."
        places["['in order']"] = "The names are right, but their order is not that of the nodes."
        places["['names']"] = "the names, in the order of the nodes"
        return Case(memory, play, of="stored", shown=shown, places=places)

    chain = [(n, P, ["x"]), (m, P, [n]), (o, R, [m, n]), (p, L, [m])]
    yield written(chain, [[n, m, o], [p]], [p])
    yield written(chain, [[n, m, o], [p]], [o, n])
    yield written(chain, [[n, m, o], [p]], ["x", p])
    yield written(chain, [[n], [m, o], [p]], [])
    yield written([(n, P, ["x"]), (m, L, [n]), (o, P, ["y"])], [[n, o], [m]], [])
    # a node with two readers: the last reader, or the first, has a group of its own
    two = [(n, P, ["x"]), (m, P, [n]), (o, P, [n])]
    yield written(two, [[n, o], [m]], [])
    yield written(two, [[n, m], [o]], [])
    # nodes that are read by an earlier group, by the next group, by the last group, or only by
    # their own group
    nodes = [(n, P, ["x"]), (m, P, [n]), (o, L, [m]), (p, P, [m, n]), ("q", P, [p, o, n])]
    yield written(nodes, [[n], [p], [o], [m, "q"]], [])
    yield written(nodes, [[n, m], [o], [p], ["q"]], [])
    for _ in range(3):
        nodes = drawn(draw, 7, (P, R, L))
        outputs = draw.sample([name for name, _, _ in nodes], draw.integer(1, 3))
        yield written(nodes, grouped(draw, nodes), outputs)


fuse = lab_solution(__name__, "fuse")
stored = lab_solution(__name__, "fuse", "stored")
