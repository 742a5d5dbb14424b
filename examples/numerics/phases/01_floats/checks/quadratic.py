"""The real roots of a quadratic equation."""

from decimal import Decimal, localcontext

from hood.judge.checks.compare import Tolerance
from hood.judge.checks.exercise import ByHand, Check, case

quadratic = Check(
    "quadratic",
    parts={"two roots": 1, "one root or none": 1, "roots of very different size": 2},
    reads="A stable formula",
    tolerance=Tolerance(
        rtol=1e-14,
        atol=0.0,
        reason="The stable formula rounds about nine times, and no case's discriminant "
        "cancels: for small numbers it is exact, and for others b² is far larger than 4ac. So the "
        "error is below 10 u, or 1.1e-15",
    ),
    by_hand=ByHand(
        "the exercise is to find a formula that is good in floats",
        forbid_names=frozenset({"numpy.roots", "numpy.poly*", "numpy.longdouble", "numpy.float128"})
        | {"numpy.linalg.*", "numpy.clongdouble", "decimal.*", "fractions.*"},
    ),
)


@quadratic.reference
def _(a, b, c):
    with localcontext(prec=60):
        a, b, c = Decimal(a), Decimal(b), Decimal(c)
        inside = b * b - 4 * a * c
        if inside < 0:
            return []
        return sorted({float((-b + sign * inside.sqrt()) / (2 * a)) for sign in (1, -1)})


@quadratic.cases
def _(draw):
    for a in (1.0, -1.0, float(draw.integer(2, 9)), -float(draw.integer(2, 9))):
        # both signs of b, and both signs of c / a
        for sign in (1, -1):
            small, large = draw.integer(1, 3), draw.integer(6, 20)
            yield case("two roots", a, -sign * a * (small + large), a * small * large)
            yield case("two roots", a, sign * a * (large - small), -a * small * large)
            big = sign * draw.integer(1, 9) * 10.0 ** draw.integer(6, 9)
            yield case("roots of very different size", a, big, float(draw.integer(1, 9)))
            yield case("roots of very different size", a, big, -float(draw.integer(1, 9)))
        # with b below 1, too
        tiny = draw.integer(1, 9) * 1e-12
        yield case("roots of very different size", a, a / 100, a * tiny)
        yield case("roots of very different size", a, -a / 100, a * tiny)
        root = draw.integer(2, 9) + 0.25
        yield case("one root or none", a, -2 * a * root, a * root * root, shown="one root")
        yield case("one root or none", a, 2 * a * root, a * root * root, shown="one root")
        yield case("one root or none", a, 0.0, 0.0, shown="b = 0 and c = 0")
        yield case("one root or none", a, float(draw.integer(-3, 3)), a * draw.integer(3, 9),
                   shown="no root")  # fmt: skip
        yield case("one root or none", a, a, a * (0.25 + draw.integer(1, 9) / 1024),
                   shown="no root, but nearly one")  # fmt: skip
        yield case("two roots", a, 0.0, -a * draw.integer(1, 9), shown="b = 0")
        yield case("two roots", a, -a * root, 0.0, shown="c = 0")
        yield case("two roots", a, a * root, 0.0, shown="c = 0")
