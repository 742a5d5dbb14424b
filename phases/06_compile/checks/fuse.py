"""Lab 06, exercise 6: A fusion pass"""

from utils.checks.exercise import Case, Check, edited
from utils.checks.lab_solution import lab_solution

fuse_check = Check(
    "fuse",
    parts={"pointwise nodes": 1, "reductions": 1, "the order": 1, "what is stored": 1},
    reads="Fusion, and the code",
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


def drawn(draw, count, kinds):
    """Nodes that read one or two of those before them, or an input."""
    nodes = []
    names = draw.sample("abcdefghijklmnopqrstuvw", count)
    for at, name in enumerate(names):
        before = [*names[max(0, at - 4) : at], draw.choice("xyz")]
        reads = draw.sample(before, min(len(before), draw.integer(1, 2)))
        nodes.append((name, draw.choice(kinds), reads))
    return nodes


def grouped(draw, nodes):
    """Groups of a program as somebody may have made them."""
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
        """Facts come first: of the first node that is in a wrong group, that is told."""
        names = [name for name, _, _ in nodes]

        def before(groups):
            """Of each node those of its group that come before it in the program."""
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

        places = {f"['{name}']": f"It is wrong which group `{name}` is in." for name in names}
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

        places = {f"['{n}']": f"It is wrong whether `{n}` is stored." for n, _, _ in nodes}
        places["['known']"] = "A name is there that no node has."
        places["['once']"] = "A name is there more than once."
        places["['in order']"] = "The names are the right ones, and not in the order of the nodes."
        places["['names']"] = "the names, in the order of the nodes"
        return Case(memory, play, of="stored", shown=shown, places=places)

    chain = [(n, P, ["x"]), (m, P, [n]), (o, R, [m, n]), (p, L, [m])]
    yield written(chain, [[n, m, o], [p]], [p])
    yield written(chain, [[n, m, o], [p]], [o, n])
    yield written(chain, [[n, m, o], [p]], ["x", p])
    yield written(chain, [[n], [m, o], [p]], [])
    yield written([(n, P, ["x"]), (m, L, [n]), (o, P, ["y"])], [[n, o], [m]], [])
    # read by an earlier group, by the next one, by the last one, by its own alone
    nodes = [(n, P, ["x"]), (m, P, [n]), (o, L, [m]), (p, P, [m, n]), ("q", P, [p, o, n])]
    yield written(nodes, [[n], [p], [o], [m, "q"]], [])
    yield written(nodes, [[n, m], [o], [p], ["q"]], [])
    for _ in range(3):
        nodes = drawn(draw, 7, (P, R, L))
        outputs = draw.sample([name for name, _, _ in nodes], draw.integer(1, 3))
        yield written(nodes, grouped(draw, nodes), outputs)


fuse = lab_solution(__name__, "fuse")
stored = lab_solution(__name__, "fuse", "stored")


def _misconception(name, explanation, earns, function, *edits):
    wrong = {function.__name__: edited(function, *edits)}
    fuse_check.misconception(name, explanation, earns=earns)(wrong)


_misconception(
    "across a reduction",
    "a node joins the loop whose sum it reads, and the sum is not known there.",
    2,
    fuse,
    ("alone or any((place[r] == youngest and kinds[r] == 'reduction' for r in made))", "alone"),
)
_misconception(
    "a reduction closes its group",
    "nothing joins a group any more once a reduction is in it, though it may not need the sum.",
    2,
    fuse,
    ("any((place[r] == youngest and kinds[r] == 'reduction' for r in made))",
     "any((kinds[n] == 'reduction' for n in groups[youngest]))"),
)  # fmt: skip
_misconception(
    "reductions alone",
    "a reduction never joins what it reads.",
    2,
    fuse,
    ("'library' in (kind, kinds[groups[youngest][0]])",
     "kind != 'pointwise' or kinds[groups[youngest][0]] == 'library'"),
)  # fmt: skip
_misconception(
    "the oldest group",
    "a node joins the oldest of the groups that it reads, before others that it reads have run.",
    2,
    fuse,
    ("max((place[read]", "min((place[read]"),
)
_misconception(
    "libraries fused",
    "a call of a library is put into a kernel.",
    2,
    fuse,
    ("youngest is None or 'library' in (kind, kinds[groups[youngest][0]])", "youngest is None"),
)
_misconception(
    "behind a library",
    "what reads the result of a library's call is put beside that call.",
    2,
    fuse,
    ("'library' in (kind, kinds[groups[youngest][0]])", "kind == 'library'"),
)
_misconception(
    "two readers",
    "a node whose result somebody has read already is not fused with a second reader.",
    1,
    fuse,
    ("alone or any(", "alone or any((groups[youngest][-1] not in reads,)) or any("),
)
_misconception(
    "neighbours in the text",
    "a node joins the last group whether it reads from it or not.",
    1,
    fuse,
    ("youngest = max((place[read] for read in made), default=None)",
     "youngest = len(groups) - 1 if groups else None"),
)  # fmt: skip
_misconception(
    "whoever reads a sum",
    "a node that reads a reduction of an older group begins a group, though the sum is known by then.",
    2,
    fuse,
    ("place[r] == youngest and kinds[r]", "kinds[r]"),
)
_misconception(
    "a sum of a sum",
    "a reduction joins the loop whose sum it reads, and the sum is not known there.",
    2,
    fuse,
    ("alone or any(", "alone or kind == 'pointwise' and any("),
)
_misconception(
    "the name read last",
    "of the groups that a node reads, that of the name which it reads last is asked, and not the youngest.",
    2,
    fuse,
    ("max((place[read] for read in made), default=None)", "place[made[-1]] if made else None"),
)
_misconception(
    "the node computed last",
    "where an older group was joined later, that one is asked, and not the youngest.",
    2,
    fuse,
    ("max((place[read] for read in made), default=None)",
     "next((place[one] for one in reversed(list(place)) if one in made), None)"),
)  # fmt: skip
_misconception(
    "past a younger sum",
    "a node joins an older group where the youngest that it reads has a sum for it, which is not known "
    "there.",
    2,
    fuse,
    ("youngest = max((place[read] for read in made), default=None)",
     "late = [place[read] for read in made if kinds[read] == 'reduction']\n"
     "        youngest = max((place[read] for read in made if place[read] not in late), default=None)"),
)  # fmt: skip
_misconception(
    "everything stored",
    "each result is written to memory.",
    3,
    stored,
    (" if name in read or name in outputs", ""),
)
_misconception(
    "outputs not stored",
    "what the program returns is not written unless another kernel reads it.",
    3,
    stored,
    (" or name in outputs", ""),
)
_misconception(
    "outputs that their own kernel reads",
    "what the program returns is not written if its own kernel, and no other, reads it.",
    3,
    stored,
    ("or name in outputs", "or name in outputs and not any(name in reads for _, _, reads in nodes)"),
)
_misconception(
    "what nobody reads",
    "a result is written that nobody reads and the program does not return.",
    3,
    stored,
    ("or name in outputs", "or name in outputs or not any(name in reads for _, _, reads in nodes)"),
)
_misconception(
    "the groups of its own",
    "the groups that it goes by are those that `fuse` makes, and not those that are given.",
    3,
    stored,
    ("enumerate(groups)", "enumerate(fuse(nodes))"),
)
_misconception(
    "group by group",
    "the names are in the order of the groups, and not in that of the nodes.",
    3,
    stored,
    ("[name for name, _, _ in nodes if", "[name for group in groups for name in group if"),
)
_misconception(
    "whatever is read",
    "a result is written that only its own kernel reads.",
    3,
    stored,
    (" if place.get(one) != place[name]", ""),
)


@fuse_check.alternate("the groups are asked, the youngest first")
class _:
    def fuse(nodes):
        groups = []  # of dictionaries: name -> kind
        for name, kind, reads in nodes:
            for group in groups[::-1]:
                shared = [group[r] for r in reads if r in group]
                if shared:
                    break
            else:
                shared = []
            if kind != "library" and set(shared) == {"pointwise"}:
                group[name] = kind
            else:
                groups.append({name: kind})
        return [list(group) for group in groups]

    def stored(nodes, groups, outputs):
        names = []
        for name, _, _ in nodes:
            home = next(group for group in groups if name in group)
            readers = [other for other, _, reads in nodes if name in reads]
            if name in outputs or not set(readers) <= set(home):
                names.append(name)
        return names


@fuse_check.alternate("numbers of groups in a dictionary, put together in the end")
class _:
    def fuse(nodes):
        number, kinds, count = {}, {}, 0
        for name, kind, reads in nodes:
            latest = max(number.get(r, -1) for r in reads)
            sources = {kinds[r] for r in reads if number.get(r) == latest}
            if kind == "library" or sources != {"pointwise"}:
                latest, count = count, count + 1
            number[name], kinds[name] = latest, kind
        return [[n for n in number if number[n] == i] for i in range(count)]

    def stored(nodes, groups, outputs):
        keep = set(outputs)
        for group in groups:
            for name, _, reads in nodes:
                if name in group:
                    keep |= {r for r in reads if r not in group}
        return [name for name, *_ in nodes if name in keep]


fuse_check.equivalent(
    ("(kind, kinds[groups[youngest][0]])", "(kinds[groups[youngest][0]], kind)"),
    ("[youngest][0]", "[youngest][-1]"),
    ("place[r] == youngest", "place[r] >= youngest"),
    ("kinds[r] == 'reduction'", "kinds[r] >= 'reduction'"),
    ("<= set(home)", "< set(home)"),
    because="a library is alone in its group, no group is younger than the youngest, no kind comes "
    "behind the reduction in the alphabet, and no node reads itself",
)
fuse_check.equivalent(
    ("kind != 'library'", "kind > 'library'"),
    ("kind == 'library'", "kind <= 'library'"),
    ("number.get(r, -1)", "number.get(r, -2)"),
    ("number.get(r, -1)", "number.get(r, -0)"),
    because="of three kinds this is the first in the alphabet; an input has no group whatever "
    "number stands for none, and group 0 is looked up in earnest",
)
