"""Lab 02, exercise 2: An engine"""

import torch

from utils.checks.compare import Tolerance
from utils.checks.exercise import Case, Check

from .shared import BY_HAND

tape = Check(
    "Tape",
    parts={"values": 1, "chains": 1, "forks": 2, "asked again": 1},
    reads="An engine in twenty lines",
    by_hand=BY_HAND,
    tolerance=Tolerance(1e-12, 1e-12, "a few products of float64 numbers"),
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
        found = torch.autograd.grad(self.nodes[i], self.nodes, retain_graph=True, allow_unused=True)
        return [0.0 if grad is None else grad.item() for grad in found]

    def record(self, tensor):
        self.nodes.append(tensor)
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
            again = ", asked as the second question" if k else ""
            places[f"[{k}]"] = f"the gradients of node {i}{again}"
            for j, (method, *_) in enumerate(program):
                of = f"its entry {j} ({'that node itself' if j == i else f'a `{method}`'})"
                places[f"[{k}][{j}]"] = f"the gradients of node {i}{again}, {of}"
        return Case(part, play, places=places)

    def values(program):
        def play(subject):
            made, numbers = subject(), []
            for method, *rest in program:
                numbers.append(made.call(method, *rest))
                if type(numbers[-1]) is int and numbers[-1] != len(numbers) - 1:
                    return False, numbers, []  # what follows names nodes by other numbers
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
        """Asked about one node, before and after more is recorded."""

        def play(subject):
            made, _ = recorded(subject, program)
            before = made.call("gradients", i)
            for method, *rest in more:
                made.call(method, *rest)
            return before, made.call("gradients", i)

        places = {
            "[0]": f"the gradients of node {i}",
            "[1]": f"the gradients of node {i}, asked again when more was recorded",
        }
        return Case("asked again", play, places=places)

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

    # the second one's eighths are more than eight: a product that is cubed is never 1, its own square
    leaves = [
        ("leaf", number()),
        ("leaf", draw.choice((-1, 1)) * draw.integer(9, 16) / 8),
        ("leaf", number()),
    ]
    chain = [*leaves, ("mul", 0, 1), ("power", 3, 3), ("add", 4, 2), ("power", 5, 2)]
    lesson = [*leaves[:2], ("mul", 0, 1), ("add", 2, 0), ("power", 3, 2)]
    square = [leaves[0], ("mul", 0, 0), ("mul", 1, 1), ("add", 2, 2), ("power", 3, 2)]
    # a node that is used by the asked one, and again by a node in between; and mirrored
    late = [leaves[0], ("power", 0, 2), ("mul", 1, 0), ("mul", 2, 1), ("add", 1, 3)]
    mirrored = [leaves[0], ("power", 0, 2), ("mul", 0, 1), ("mul", 1, 2), ("add", 3, 1)]
    # a sum's two inputs, each of them used again later
    both = [("leaf", size()), ("leaf", size()), ("add", 0, 1), ("mul", 2, 0), ("mul", 3, 1)]
    below = ("leaf", -size())
    zeros = [("leaf", 0.0), leaves[1], ("mul", 0, 1), ("power", 2, 1)]
    yield run("forks", lesson, 4)  # first, since it is short and tells most mistakes
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
    yield while_it_grows(chain[:5], [("mul", 4, 1), ("add", 5, 2)], 4)
