"""A mean and a variance, one number after another."""

from fractions import Fraction

from hood.judge.checks.compare import Tolerance
from hood.judge.checks.exercise import Case, Check, case

update = Check(
    "update",
    parts={"one step": 1, "the first number": 1, "numbers far from 0": 2},
    reads="One number after another",
    tolerance=Tolerance(
        rtol=1e-5,
        atol=1e-12,
        reason="The ratio of the numbers to their standard deviation is at most 1e8. Twelve steps "
        "of Welford's method then have an error of a few times 12 u 1e8, or 1.3e-7",
    ),
)


@update.reference
def _(count, mean, squares, x):
    """The exact result for these floats, rounded once."""
    mean, squares, x = Fraction(mean), Fraction(squares), Fraction(x)
    new = (count * mean + x) / (count + 1)
    # the squared distances from the new mean: the old numbers together, and x
    squares += count * (mean - new) ** 2 + (x - new) ** 2
    return count + 1, float(new), float(squares)


PLACES = {"[0]": "the count", "[1]": "the mean", "[2]": "the sum of squares"}


def all_of(numbers):
    def play(subject):
        state = (0, 0.0, 0.0)
        for number in numbers:
            state = subject(*state, number)
        return state

    return play


@update.cases
def _(draw):
    for _ in range(3):
        mean, x = (float(draw.integer(-9, 9)) for _ in range(2))
        count, squares = draw.integer(1, 9), float(draw.integer(1, 9))
        yield case("one step", count, mean, squares, x, places=PLACES)
        for sign in (1, -1):
            first = sign * draw.integer(1, 99) / 4
            yield case("the first number", 0, 0.0, 0.0, first, places=PLACES)
    yield case("one step", draw.integer(2, 9), 3.0, 5.0, 3.0, shown="a number that is equal to the mean",
               places=PLACES)  # fmt: skip
    yield case("one step", draw.integer(1000, 9999), 2.5, 9.0, 7.25, shown="many numbers",
               places=PLACES)  # fmt: skip
    for far in (1e8, -1e8):
        # the two fixed distances keep the standard deviation of up to 12 numbers above 1
        rest = [draw.integer(-20, 20) / 10 for _ in range(draw.integer(4, 10))]
        numbers = [far + distance for distance in (2.5, *rest, -2.5)]
        yield Case(
            "numbers far from 0",
            all_of(numbers),
            shown=f"{len(numbers)} numbers near {far:.0f}, one after another",
            places=PLACES,
        )
