"""The distance from a float to the next one."""

import math

from hood.judge.checks.compare import EXACT
from hood.judge.checks.exercise import ByHand, Check, case

ulp = Check(
    "ulp",
    parts={"ordinary numbers": 1, "powers of two": 1, "0 and subnormal numbers": 2},
    reads="The distance to the next number",
    tolerance=EXACT,  # every result is a power of two, and the smallest float is one of them
    by_hand=ByHand(
        "the exercise is to find the distance from the exponent",
        forbid_names=frozenset(
            {"ulp", "nextafter", "next_*", "numpy.spacing", "numpy.nextafter", "numpy.finfo"}
        ),
    ),
)


@ulp.reference
def _(x):
    return math.ulp(x)


@ulp.cases
def _(draw):
    for sign in (1, -1):
        yield case("ordinary numbers", sign * draw.integer(1001, 9999) / 1000)
        yield case("ordinary numbers", sign * draw.integer(101, 999) * 10.0 ** draw.integer(20, 200))
        yield case("ordinary numbers", sign * draw.integer(101, 999) / 10.0 ** draw.integer(20, 200))
        yield case("powers of two", sign * 2.0 ** draw.integer(1, 60))
        yield case("powers of two", sign * 2.0 ** -draw.integer(1, 60))
        yield case(
            "0 and subnormal numbers",
            sign * 2.0**-1074 * draw.integer(2, 1_000_000),
            shown="a subnormal number",
        )
    yield case("powers of two", 1.0)
    # the last number before a power of two: a logarithm of it is rounded up
    yield case("ordinary numbers", 1 - 2.0**-53, shown="the number before 1")
    yield case("ordinary numbers", math.ldexp(2 - 2.0**-52, draw.integer(30, 300)),
               shown="the number before a power of two")  # fmt: skip
    yield case("ordinary numbers", math.ldexp(2 - 2.0**-52, 1023), shown="the largest number")
    yield case("0 and subnormal numbers", 0.0)
    yield case("0 and subnormal numbers", 2.0**-1074, shown="the smallest number above 0")
    # up to this number, the distance is the smallest one; above the number, the distance doubles
    for power in (-1022, -1021, -1020):
        yield case("0 and subnormal numbers", 2.0**power, shown=f"2 to the power {power}")
