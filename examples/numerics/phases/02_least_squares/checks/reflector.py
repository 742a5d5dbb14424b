"""The vector of a mirror that sends another vector onto the first axis."""

import numpy as np

from hood.judge.checks.compare import Tolerance
from hood.judge.checks.exercise import Check, case

from .shared import BY_HAND

reflector = Check(
    "reflector",
    parts={"the direction": 2, "a first entry of 0": 1, "nothing to reflect": 1},
    reads="A reflection",
    tolerance=Tolerance(
        rtol=1e-14,
        atol=1e-14,
        reason="The entries are at most 1. A norm of eight entries has an error below 10 u, and "
        "the code divides by one: 2.5e-15",
    ),
    by_hand=BY_HAND,
)


@reflector.reference
def _(x):
    """The half-angle formula: v is proportional to x / |x| plus the sign of x[0] in the first entry."""
    length = np.sqrt((x * x).sum())
    if length == 0:
        return np.zeros_like(x)
    sign = -1.0 if x[0] < 0 else 1.0
    first = np.sqrt((1 + abs(x[0]) / length) / 2)
    v = x / (2 * first * length) * sign
    v[0] = first
    return v * sign


def entries(draw, count):
    """Return whole numbers that are not 0."""
    return [float(draw.choice((1, -1)) * draw.integer(1, 9)) for _ in range(count)]


@reflector.cases
def _(draw):
    for sign in (1.0, -1.0):
        for count in (1, 2, draw.integer(3, 7)):
            yield case("the direction", np.array([sign * draw.integer(1, 9), *entries(draw, count)]))
        # the other mirror cancels
        yield case("the direction", np.array([sign * draw.integer(1, 9), 1e-8, *entries(draw, 1)]))
        yield case("the direction", np.array([sign, draw.integer(1, 9) * 1e-9, 0.0]),
                   shown="nearly on the axis")  # fmt: skip
        yield case("the direction", np.array([sign * draw.integer(2, 9), 0.0, 0.0]),
                   shown="on the axis")  # fmt: skip
        yield case("the direction", np.array([sign * draw.integer(2, 9)]), shown="one entry")
    yield case("a first entry of 0", np.array([0.0, *entries(draw, draw.integer(1, 5))]))
    yield case("a first entry of 0", np.array([0.0, *entries(draw, 1)]))
    yield case("the direction", np.array(entries(draw, 3)) / 256, shown="small numbers")
    for count in (1, draw.integer(2, 6)):
        yield case("nothing to reflect", np.zeros(count), shown="only zeros")
