"""Lab 06, exercise 5: What is saved"""

from hood.judge.checks.exercise import Case, Check
from hood.judge.checks.lab_solution import lab_solution
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
    """For each node, whether it is rightly in ``came`` or not in it; then the names as they were returned."""
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
        must = {True: f"must be {what}, and is missing", False: f"should not be {what}"}
        places = {f"['{name}']": f"`{name}` {must[name in right]}." for name in nodes}
        places["['once']"] = "The list has a name more than once."
        places["['in order']"] = "The names are right, but their order is not that of the graph."
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
    yield asked(corners, "a node that is read twice", [("relu",), ("sin",)], [(a, b)])
    free = [("exp",), ("keep",), ("linear",), ("sin",)]
    yield asked(corners, "a result that needs no gradient", free, shapes[:2], fixed=(0,))
    yield asked(corners, "a result that the backward does not need", [("sin",), ("keep",), ("scale", 2.0)], [(a, b)])

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
