"""Numbers with more digits than a float: exact operations and refused ones."""

from fractions import Fraction

import pytest
import torch

from utils.drivers.exact import Exact, adjoints, taped

LONG = 2**70 + 1


@pytest.mark.parametrize(
    ("calculate", "expected"),
    [
        (lambda x: x + 1, LONG + 1),
        (lambda x: 2.0 * x, 2 * LONG),
        (lambda x: 0.0 + x, LONG),
        (lambda x: 1 - x, 1 - LONG),
        (lambda x: x * x, LONG**2),
        (lambda x: x**3, LONG**3),
        (lambda x: x**2.0, LONG**2),
        (lambda x: 2 ** Exact(5), 32),
        (lambda x: -abs(-x), -LONG),
        (lambda x: x / 2, Fraction(LONG, 2)),
        (lambda x: sum([x, x], 0.5), 2 * LONG + Fraction(1, 2)),
    ],
)
def test_arithmetic_is_exact_beside_ints_and_floats(calculate, expected):
    assert calculate(Exact(LONG)).plain() == expected


def test_it_is_compared_as_a_number():
    assert Exact(LONG) == LONG
    assert Exact(LONG) != float(LONG)
    assert 0 < Exact(1) < Exact(LONG)
    assert not Exact(0)
    assert Exact(1) != "1"


@pytest.mark.parametrize(
    "ask",
    [
        float,
        lambda x: torch.tensor([x], dtype=torch.float64),
        lambda x: x * 1j,
        lambda x: x**0.5,
        lambda x: torch.ones(1) * x,
    ],
)
def test_nothing_turns_it_into_a_float(ask):
    with pytest.raises(TypeError):
        ask(Exact(LONG))


def test_the_drivers_return_plain_numbers():
    assert adjoints(lambda a, b: {"L": 1.0, "a": a * b, "half": b / 2}, LONG, 3) == {
        "L": 1,
        "a": 3 * LONG,
        "half": "3/2",
    }

    class Doubler:
        def __init__(self):
            self.values = []

        def leaf(self, value):
            self.values.append(value)
            return len(self.values) - 1

        def double(self, i):
            return self.leaf(2 * self.values[i])

        def value(self, i):
            return self.values[i]

        def gradients(self, i):
            return [2.0, 1.0]

    came = taped(Doubler, [("leaf", LONG), ("double", 0)], [1])
    assert came == {"numbers": [0, 1], "values": [LONG, 2 * LONG], "gradients": [[2, 1]]}
