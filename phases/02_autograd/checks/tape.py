"""Lab 02, exercise 2: An engine"""

from hood.judge.checks.compare import Tolerance
from hood.judge.checks.exercise import Case, Check

from .shared import many_digits

tape = Check(
    "Tape",
    parts={"values": 1, "chains": 1, "forks": 2, "asked again": 1},
    reads="An engine in twenty lines",
    tolerance=Tolerance(1e-12, 1e-12, "a few products of float64 numbers"),
)


@tape.reference
class ReferenceTape:
    def __init__(self):
        self.nodes = []

    def leaf(self, value):
        return self.record(value, {})

    def add(self, i, j):
        return self.record(self.value(i) + self.value(j), self.sum_of(i, 1.0, j, 1.0))

    def mul(self, i, j):
        a, b = self.value(i), self.value(j)
        return self.record(a * b, self.sum_of(i, b, j, a))

    def power(self, i, n):
        a = self.value(i)
        return self.record(a**n, {k: n * a ** (n - 1) * of for k, of in self.nodes[i][1].items()})

    def value(self, i):
        return self.nodes[i][0]

    def gradients(self, i):
        return [self.nodes[i][1].get(k, 0.0) for k in range(len(self.nodes))]

    def sum_of(self, i, a, j, b):
        """Derivatives of a sum: each node knows its derivative with respect to each earlier node."""
        one, other = self.nodes[i][1], self.nodes[j][1]
        return {k: a * one.get(k, 0.0) + b * other.get(k, 0.0) for k in one | other}

    def record(self, value, derivatives):
        self.nodes.append((value, {**derivatives, len(self.nodes): 1.0}))
        return len(self.nodes) - 1


@tape.cases
def _(draw):
    def size():
        return draw.integer(5, 16) / 8

    def number():
        return draw.choice((-1, 1)) * size()

    def recorded(subject, program):
        made = subject()
        return made, [made.call(method, *rest) for method, *rest in program]

    def run(part, program, *asked):
        def play(subject):
            made, _ = recorded(subject, program)
            return [made.call("gradients", i) for i in asked]

        places = {}
        for k, i in enumerate(asked):
            again = ", from the second call of `gradients`" if k else ""
            places[f"[{k}]"] = f"the gradients of node {i}{again}"
            for j, (method, *_) in enumerate(program):
                of = f"entry {j} ({'that node itself' if j == i else f'a `{method}`'})"
                places[f"[{k}][{j}]"] = f"the gradients of node {i}{again}, {of}"
        return Case(part, play, places=places)

    def values(program):
        def play(subject):
            made, numbers = subject(), []
            for method, *rest in program:
                numbers.append(made.call(method, *rest))
                if type(numbers[-1]) is int and numbers[-1] != len(numbers) - 1:
                    return False, numbers, []  # later calls would use other numbers
            return True, numbers, [made.call("value", i) for i in numbers]

        places = {
            "[0]": "recording on a new tape didn't return 0, 1, 2 and so on, one number for each "
            "node in the order of recording.",
            "[1]": "the numbers of the nodes, as recording returned them",
        }
        for j, (method, *_) in enumerate(program):
            places[f"[1][{j}]"] = f"what `{method}` returned for node {j}"
            places[f"[2][{j}]"] = f"the value of node {j}, a `{method}`"
        return Case("values", play, places=places)

    def while_it_grows(program, more, i):
        """The gradients of one node, before and after more nodes are recorded."""

        def play(subject):
            made, _ = recorded(subject, program)
            before = made.call("gradients", i)
            for method, *rest in more:
                made.call(method, *rest)
            return before, made.call("gradients", i)

        places = {
            "[0]": f"the gradients of node {i}",
            "[1]": f"the gradients of node {i}, from a call after more nodes were recorded",
        }
        return Case("asked again", play, places=places)

    def exact(part, program, *asked):
        """A case as in `run` or `values`, for numbers with more digits than a float has."""
        leaves = [("leaf", draw.choice((-1, 1)) * many_digits(draw)) for _ in range(2)]
        program = [*leaves, *program]

        def play(subject):
            came = subject.drive("exact:taped", program, asked)
            return came["values"] if part == "values" else came["gradients"]

        return Case(part, play, shown="a tape of exact numbers")

    def two_tapes(program):
        def play(subject):
            (_, numbers), (other, others) = recorded(subject, program), recorded(subject, program)
            return numbers, others, [other.call("value", i) for i in others]

        places = {
            "[0]": "the numbers of the first tape's nodes",
            "[1]": "the numbers of a second tape's nodes",
            "[2]": "the values of a second tape's nodes",
        }
        return Case("values", play, places=places)

    # the second leaf is 9/8 or more, so the product that is cubed is never 1 (1 is equal to its
    # square)
    leaves = [
        ("leaf", number()),
        ("leaf", draw.choice((-1, 1)) * draw.integer(9, 16) / 8),
        ("leaf", number()),
    ]
    chain = [*leaves, ("mul", 0, 1), ("power", 3, 3), ("add", 4, 2), ("power", 5, 2)]
    lesson = [*leaves[:2], ("mul", 0, 1), ("add", 2, 0), ("power", 3, 2)]
    square = [leaves[0], ("mul", 0, 0), ("mul", 1, 1), ("add", 2, 2), ("power", 3, 2)]
    # `late`: the last node and an earlier node use the same node; `mirrored`: the same, with all
    # inputs exchanged
    late = [leaves[0], ("power", 0, 2), ("mul", 1, 0), ("mul", 2, 1), ("add", 1, 3)]
    mirrored = [leaves[0], ("power", 0, 2), ("mul", 0, 1), ("mul", 1, 2), ("add", 3, 1)]
    # both inputs of a sum are used again later
    both = [("leaf", size()), ("leaf", size()), ("add", 0, 1), ("mul", 2, 0), ("mul", 3, 1)]
    below = ("leaf", -size())
    zeros = [("leaf", 0.0), leaves[1], ("mul", 0, 1), ("power", 2, 1)]
    yield run("forks", lesson, 4)  # first, because it is short and shows most mistakes
    yield values(chain)
    yield values(square)
    yield values([*zeros, ("power", 0, 3), ("add", 4, 2)])
    yield values([("leaf", 0.1), ("leaf", 0.1), ("add", 0, 1)])
    yield two_tapes(lesson)
    yield run("chains", chain, 6)
    yield run("chains", [*leaves[:2], ("mul", 0, 1), ("add", 0, 2)], 2)
    yield run("chains", [*leaves[:2], ("mul", 0, 1)], 1)
    yield run("chains", zeros, 3)
    yield run("chains", [("leaf", 0.0), ("power", 0, 2), ("power", 1, 3)], 2)
    yield run("chains", [below, ("power", 0, 2), ("power", 1, 3)], 2)
    yield run("chains", [leaves[0], ("power", 0, 6)], 1)
    yield run("forks", [leaves[0], ("add", 0, 0)], 1)
    yield run("forks", both, 4)
    yield run("forks", square, 4)
    yield run("forks", late, 4)
    yield run("forks", mirrored, 4)
    yield run("asked again", chain, 6, 6)
    yield run("asked again", chain[:5], 3, 4)
    yield exact("values", [("mul", 0, 1), ("add", 2, 0), ("power", 3, 3)])
    yield exact("chains", [("mul", 0, 1), ("power", 2, 2)], 3)
    yield exact("forks", [("mul", 0, 1), ("add", 2, 0), ("power", 3, 2)], 4)
    yield exact("asked again", [("mul", 0, 1), ("power", 2, 2)], 3, 2, 3)
    yield while_it_grows(chain[:5], [("mul", 4, 1), ("add", 5, 2)], 4)
