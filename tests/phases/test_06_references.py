"""The references of lab 06 compared with torch: the number of graphs, and the saved tensors."""

import random

import pytest
import torch

from hood.judge.catalogue import find_check
from utils.drivers import compiling

pytestmark = pytest.mark.slow(6)

DTYPES = torch.float32, torch.float32, torch.float64


def drawn_calls(chance: random.Random) -> list[tuple]:
    ranks = chance.choice(((1,), (1,), (2,), (0, 1, 2)))
    numbers = chance.choice(((7,), (0, 1, 2, 3, -1), (1.0, 2.0, 2.5, 0.0)))
    return [
        (
            tuple(chance.randint(0, 5) for _ in range(chance.choice(ranks))),
            chance.choice(DTYPES),
            chance.choice(numbers),
        )
        for _ in range(6)
    ]


def test_torch_makes_as_many_graphs(seeds):
    count = find_check("count_graphs")[1].right
    chance = random.Random(str(seeds))
    rules = [
        [((2,) * rank, torch.float32, 2) for rank in range(10)],
        [((size,), torch.float32, 2) for size in (1, 4, 5, 0, 1)],
        [((size, 4), torch.float32, number) for size, number in ((4, 4), (5, 5), (4, 6), (6, 4))],
    ]
    for calls in (*rules, *(drawn_calls(chance) for _ in range(6))):
        assert count(calls) == compiling.count_as_torch_does(calls), calls


STEPS = (
    [("linear",), ("relu",), ("linear",), ("softmax",)],
    [("linear",), ("keep",), ("sin",), ("keep",), ("softmax",)],
    [("scale", 2.0), ("sum", 0)],
)


@pytest.mark.slow(1)
@pytest.mark.parametrize("steps", STEPS, ids=str)
@pytest.mark.parametrize("fixed", [(), (0,)], ids=["all", "x needs none"])
def test_the_plain_partitioner_saves_the_same(steps, fixed):
    from torch._functorch.partitioners import default_partition  # seconds, in every worker

    if fixed and ("linear",) not in steps:
        return  # no tensor would need a gradient
    shapes = [(2, 3), (4, 3), (5, 4)]
    joint, outputs = compiling.joint_graph(steps, shapes, fixed)
    expected = find_check("saved")[1].right["saved"](joint, outputs)
    forward, _ = default_partition(joint, (), num_fwd_outputs=outputs)
    (returned,) = next(iter(reversed(forward.graph.nodes))).args
    assert {node.name for node in returned[outputs:]} == set(expected)
