"""Lab 06, exercise 5: What is saved"""

from utils.checks.exercise import Case, Check, edited
from utils.checks.lab_solution import lab_solution
from utils.drivers.compiling import joint_graph

saved_check = Check(
    "saved",
    parts={"what is saved": 2, "corners": 1, "what is computed again": 2},
    reads="What is saved, and what is computed again",
)


@saved_check.reference
class _:
    def saved(joint, outputs):
        nodes = list(joint.graph.nodes)
        results = nodes[-1].args[0]
        forward = set(results[:outputs])
        for node in reversed(nodes[:-1]):
            if any(user in forward for user in node.users):
                forward.add(node)
        return [
            node.name
            for node in nodes
            if node in forward
            and any(user not in forward and user is not nodes[-1] for user in node.users)
        ]

    def computed_again(joint, wanted, kept):
        nodes, again = list(joint.graph.nodes), set()
        for node in reversed(nodes):
            asked = node.name in wanted or any(user in again for user in node.users)
            if asked and node.op == "call_function" and node.name not in kept:
                again.add(node)
        return [node.name for node in nodes if node in again]


def _facts(nodes, right, came):
    """Of each node whether it is rightly among the names, or not; then the names as they came."""
    names = isinstance(came, (list, tuple)) and all(isinstance(name, str) for name in came)
    facts = {name: not names or (name in came) == (name in right) for name in nodes}
    facts["once"] = not names or len(came) == len(set(came))
    facts["in order"] = not names or sorted(came) != sorted(right) or list(came) == right
    return {**facts, "names": came}


@saved_check.cases
def _(draw):
    basic, corners, again = saved_check.parts

    def asked(part, shown, steps, shapes, *names, fixed=(), of="saved"):
        joint, outputs = joint_graph(steps, shapes, fixed)
        nodes = [node.name for node in joint.graph.nodes]
        right = computed_again(joint, *names) if names else saved(joint, outputs)

        def play(subject):
            came = subject.drive("compiling:on_joint", steps, shapes, *names, fixed=fixed, of=of)
            return _facts(nodes, right, came)

        words = f"{shown}: {', '.join(step[0] for step in steps)}"
        for kind, some in zip(("wanted", "kept"), names, strict=False):
            words += f"; {kind}: {', '.join(some) or 'nothing'}"
        what = "computed again" if names else "saved"
        places = {f"['{name}']": f"It is wrong whether `{name}` is {what}." for name in nodes}
        places["['once']"] = "A name is there more than once."
        places["['in order']"] = "The names are the right ones, and not in the graph's order."
        places["['names']"] = "the names, in the graph's order"
        return Case(part, play, of=of, shown=words, places=places)

    a, b, c, d = draw.shape(4)
    smooth = draw.sample((("sin",), ("exp",), ("square",), ("softmax",), ("relu",)), 3)
    layers = [("linear",), smooth[0], ("linear",), smooth[1]]
    shapes = [(a, b), (c, b), (d, c)]
    yield asked(basic, "two layers", layers, shapes)
    yield asked(basic, "no layer", [*smooth, ("sum", 0)], [(a, b)])
    yield asked(basic, "several results", [("linear",), ("keep",), smooth[2], ("keep",), smooth[0]], shapes[:2])
    yield asked(basic, "two results apart", [("exp",), ("keep",), ("again",), ("sin",)], [(a, b)])
    yield asked(basic, "a product at the end", [("exp",), ("sin",), ("linear",)], shapes[:2])

    yield asked(corners, "nothing to save", [("scale", 3.0), ("sum", draw.choice((0, 1)))], [(a, b)])
    yield asked(corners, "x needs no gradient", layers, shapes, fixed=(0,))
    yield asked(corners, "the first weight needs none", layers, shapes, fixed=(1,))
    yield asked(corners, "the last weight needs none", [("relu",), ("linear",)], shapes[:2], fixed=(1,))
    free = [("exp",), ("keep",), ("linear",), ("sin",)]
    yield asked(corners, "a result that needs no gradient", free, shapes[:2], fixed=(0,))
    yield asked(corners, "a result that nobody needs again", [("sin",), ("keep",), ("scale", 2.0)], [(a, b)])

    chain = [("linear",), ("relu",), ("sin",), ("exp",), ("square",)]
    names = ["t", "mm", "relu", "sin", "exp", "mul"]
    some = draw.sample(names, 3)
    for wanted, kept in (
        (["primals_1", "t", "relu", "exp"], []),
        (["mul", "primals_2"], ["relu"]),
        (["mul"], []),
        (["relu", "exp"], ["exp", "relu", "t"]),
        (["exp", "t"], ["mm", "sin"]),
        (some, [draw.choice(names)]),
    ):
        yield asked(again, "a chain", chain, shapes[:2], wanted, kept, of="computed_again")
    wide = [("softmax",), ("keep",), ("linear",), ("softmax",), ("exp",)]
    for wanted, kept in ((["_softmax_1", "t"], []), (["exp", "_softmax"], ["_softmax_1"])):
        yield asked(again, "two results", wide, shapes[:2], wanted, kept, of="computed_again")


saved = lab_solution(__name__, "saved")
computed_again = lab_solution(__name__, "saved", "computed_again")
needed = lab_solution(__name__, "saved", "needed")


def _misconception(name, explanation, earns, function, *edits):
    wrong = {function.__name__: edited(function, *edits)}
    saved_check.misconception(name, explanation, earns=earns)(wrong)


_misconception(
    "everything of the forward",
    "all nodes of the forward are saved, whether the backward reads them or not.",
    2,
    saved,
    (" and node in read]", "]"),
)
_misconception(
    "inputs left out",
    "what the backward reads of the inputs is missing.",
    2,
    saved,
    ("node in forward and node in read", "node in forward and node in read and node.op != 'placeholder'"),
)
_misconception(
    "results saved as such",
    "what the forward returns is saved, though nothing in the backward reads it.",
    2,
    saved,
    ("one in node.all_input_nodes}", "one in node.all_input_nodes} | set(output.args[0][:outputs])"),
)
_misconception(
    "whatever needs no incoming gradient",
    "a node is taken for the forward's unless a gradient that comes in reaches it, so what only the "
    "backward needs is saved in place of what it reads.",
    2,
    saved,
    ("forward = needed(output.args[0][:outputs], ())",
     "late = {node for node in nodes if any(one.name.startswith('tangents') for one in needed([node], ()))}\n"
     "    forward = [node for node in nodes if node not in late]"),
)  # fmt: skip
_misconception(
    "as many results as gradients",
    "it takes as many results of the forward as gradients come in; a result that needs no gradient has "
    "none.",
    4,
    saved,
    ("*nodes, output = joint.graph.nodes",
     "*nodes, output = joint.graph.nodes\n"
     "    outputs = len([node for node in nodes if node.name.startswith('tangents')])"),
)  # fmt: skip
_misconception(
    "results taken for the backward's",
    "what the forward returns is itself taken for a node of the backward.",
    2,
    saved,
    ("forward = needed(output.args[0][:outputs], ())",
     "results = output.args[0][:outputs]\n"
     "    forward = needed([one for node in results for one in node.all_input_nodes], ())"),
)  # fmt: skip
_misconception(
    "the backward's own as well",
    "what the backward computes and reads itself is among the saved, and the incoming gradients are.",
    2,
    saved,
    ("if node in forward and node in read", "if node in read"),
)
_misconception(
    "kept ones run again",
    "what is kept is computed again all the same.",
    3,
    computed_again,
    ("in wanted], kept)", "in wanted], ())"),
)
_misconception(
    "through what is kept",
    "what a kept node reads is computed again, though the kept node is there.",
    3,
    computed_again,
    ("in wanted], kept)", "in wanted], ())"),
    ("node.op != 'placeholder'", "node.op != 'placeholder' and node.name not in kept"),
)
_misconception(
    "one step back",
    "only the wanted nodes themselves run again, and not what they read.",
    3,
    computed_again,
    ("needed([node for node in joint.graph.nodes if node.name in wanted], kept)",
     "[node for node in joint.graph.nodes if node.name in wanted and node.name not in kept]"),
)  # fmt: skip
_misconception(
    "inputs computed",
    "inputs are listed, and nothing computes an input.",
    3,
    computed_again,
    (" and node.op != 'placeholder'", ""),
)
_misconception(
    "all that is not kept",
    "whatever is not kept runs again, whether it is wanted or not.",
    3,
    computed_again,
    ("if node.name in wanted]", "if node.name not in kept]"),
)


@saved_check.alternate("sets of names, passed on forwards")
class _:
    def saved(joint, outputs):
        nodes = list(joint.graph.nodes)
        results = nodes[-1].args[0]
        needs = {}
        for node in nodes:
            needs[node] = {node}.union(*(needs[one] for one in node.all_input_nodes))
        forward = set().union(*(needs[one] for one in results[:outputs]))
        names = []
        for node in nodes:
            later = [u for u in node.users if u not in forward and u.op != "output"]
            if node in forward and later:
                names.append(node.name)
        return names

    def computed_again(joint, wanted, kept):
        behind = {}
        for node in joint.graph.nodes:
            if node.op == "call_function" and node.name not in kept:
                behind[node.name] = {node.name}
                for one in node.all_input_nodes:
                    behind[node.name] |= behind.get(one.name, set())
        again = set()
        for name in wanted:
            again |= behind.get(name, set())
        return [node.name for node in joint.graph.nodes if node.name in again]


@saved_check.alternate("recursion")
class _:
    def saved(joint, outputs):
        *nodes, last = joint.graph.nodes
        seen = {}

        def visit(node):
            seen[node.name] = node
            for one in node.all_input_nodes:
                visit(one)

        for one in last.args[0][:outputs]:
            visit(one)
        read = set()
        for node in nodes:
            if node.name not in seen:
                read.update(one.name for one in node.all_input_nodes)
        return [node.name for node in nodes if node.name in seen and node.name in read]

    def computed_again(joint, wanted, kept):
        by_name = {node.name: node for node in joint.graph.nodes}

        def runs(name):
            node = by_name[name]
            if node.op == "placeholder" or name in kept:
                return set()
            return {name}.union(*(runs(one.name) for one in node.all_input_nodes))

        again = set().union(*(runs(name) for name in wanted))
        return [name for name in by_name if name in again]


saved_check.equivalent(
    ("list(roots)", "roots"),
    ("node not in found and node.name not in there", "node.name not in there"),
    (".args[0]", ".args[-1]"),
    ("[node.name] |= behind", "[node.name] ^= behind"),
    because="nobody else walks over these lists, a graph has no circles, an output has one argument, "
    "and of these graphs no node reads two that need the same",
)
saved_check.equivalent(
    ("node.op != 'placeholder'", "node.op < 'placeholder'"),
    ("u.op != 'output'", "u.op < 'output'"),
    ("node.op == 'call_function'", "node.op <= 'call_function'"),
    ("node.op == 'placeholder'", "node.op >= 'placeholder'"),
    because="in the alphabet the call of a function is the first of the three kinds of nodes",
)
