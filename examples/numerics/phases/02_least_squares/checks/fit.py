"""The coefficients of a least squares fit."""

from fractions import Fraction

import numpy as np

from hood.judge.checks.compare import Tolerance
from hood.judge.checks.exercise import Check, case

from .shared import BY_HAND, near_the_axis, nearly_dependent

fit = Check(
    "fit",
    parts={"as many rows as columns": 1, "more rows than columns": 2, "nearly dependent columns": 2},
    reads="The fit",
    reads_by_part={"nearly dependent columns": "The condition number is squared"},
    tolerance=Tolerance(
        rtol=1e-6,
        atol=1e-6,
        reason="Lesson 02: with reflections the relative error is below m n u κ, here 4e-7 for "
        "κ = 1e8. The normal equations have u κ², about 0.05 or more",
    ),
    by_hand=BY_HAND,
)


@fit.reference
def _(A, y):
    """The normal equations in exact fractions: nothing is rounded, so nothing is lost."""
    rows = [[*map(Fraction, row), Fraction(value)] for row, value in zip(A.tolist(), y.tolist())]
    n = A.shape[1]
    M = [[sum(row[i] * row[j] for row in rows) for j in range(n + 1)] for i in range(n)]
    for k in range(n):  # Gauss and Jordan; a matrix of this kind needs no exchange of rows
        M[k] = [entry / M[k][k] for entry in M[k]]
        for i in range(n):
            if i != k:
                M[i] = [entry - M[i][k] * pivot for entry, pivot in zip(M[i], M[k])]
    return np.array([float(row[n]) for row in M])


def wholes(draw, count, low=-9, high=9):
    return np.array([float(draw.integer(low, high)) for _ in range(count)])


def line(draw, rows):
    """Return the columns for a line through ``rows`` points: ones, and the points' different places."""
    places = np.cumsum(wholes(draw, rows, 1, 3)) - draw.integer(0, 5)
    return np.column_stack([np.ones(rows), places])


@fit.cases
def _(draw):
    yield case("as many rows as columns", np.array([[float(draw.integer(2, 9))]]), wholes(draw, 1))
    yield case("as many rows as columns", line(draw, 2), wholes(draw, 2))
    A = np.array([[0.0, 2.0], [float(draw.integer(1, 9)), 1.0]])
    yield case("as many rows as columns", A, wholes(draw, 2), shown="a first entry of 0")
    for _ in range(2):
        A = line(draw, draw.integer(3, 9))
        yield case("more rows than columns", A, wholes(draw, len(A)))
        yield case("more rows than columns", np.column_stack([-A, A[:, 1] ** 2]), wholes(draw, len(A)))
    yield case("more rows than columns", np.ones((5, 1)), wholes(draw, 5), shown="one column")
    A = line(draw, 4)
    yield case("more rows than columns", A, A @ wholes(draw, 2), shown="a residual of 0")
    alike = [nearly_dependent(draw, rows) for rows in (8, 12)]
    for A in (*alike, near_the_axis(draw, 1.0), near_the_axis(draw, -1.0)):
        y = A @ wholes(draw, A.shape[1], 1, 9)
        yield case("nearly dependent columns", A, y, shown="nearly dependent columns")
