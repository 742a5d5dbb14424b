"""An orthogonal matrix and a triangle."""

import numpy as np

from hood.judge.checks.compare import Tolerance
from hood.judge.checks.exercise import Case, Check, Paste

from .shared import BY_HAND, near_the_axis, nearly_dependent

# The compared values, in code that a learner could run. The signs of Q and R are free.
SHOWS = {
    "shapes": "[M.shape for M in {}]",
    "below the diagonal": "np.tril({}[1], -1)",
    "A": "(lambda Q, R: Q @ R)(*{})",
    "I": "(lambda Q, R: Q.T @ Q)(*{})",
}
PLACES = {
    "['shapes']": "the shapes of Q and R are not (m, n) and (n, n).",
    "['below the diagonal']": "R is not 0 below its diagonal.",
    "['A']": "Q R is not A.",
    "['I']": "Q R is A, but the columns of Q are not perpendicular unit vectors: Q.T @ Q is not I.",
}

qr = Check(
    "qr",
    parts={"a square": 1, "more rows than columns": 2, "nearly dependent columns": 2},
    reads="QR",
    tolerance=Tolerance(
        rtol=1e-12,
        atol=1e-12,
        reason="Lesson 02: an error of m n u, here 8e-15, times the size of the numbers, at most 30",
    ),
    by_hand=BY_HAND,
)


@qr.reference
def _(A):
    return np.linalg.qr(A)


def facts(part, A, shown=""):
    """Return a case that tests whether Q and R have the properties that the question asks for."""

    def play(subject):
        Q, R = subject(A)
        shapes = [Q.shape, R.shape]
        right = shapes == [A.shape, (A.shape[1],) * 2]
        return {
            "shapes": shapes,
            "below the diagonal": np.tril(R, -1) if right else None,
            "A": Q @ R if right else None,
            "I": Q.T @ Q if right else None,
        }

    return Case(part, play, shown=shown, places=PLACES, paste=Paste("qr({})", (A,), SHOWS))


def independent(draw, rows, columns):
    """Return small whole numbers in independent columns."""
    A = np.array([[float(draw.integer(-4, 4)) for _ in range(columns)] for _ in range(rows)])
    # a larger diagonal keeps the columns independent
    for at in range(columns):
        A[at, at] += 5.0 * columns * (-1 if A[at, at] < 0 else 1)
    return A


@qr.cases
def _(draw):
    yield facts("a square", independent(draw, 1, 1))
    for _ in range(2):
        columns = draw.integer(2, 4)
        yield facts("a square", independent(draw, columns, columns))
        columns = draw.integer(1, 4)
        yield facts("more rows than columns", independent(draw, columns + draw.integer(1, 4), columns))
    yield facts("more rows than columns", independent(draw, draw.integer(2, 8), 1))
    yield facts("a square", np.fliplr(independent(draw, 3, 3)).copy())
    yield facts("a square", np.array([[0.0, 2.0], [float(draw.integer(1, 9)), 1.0]]),
                shown="a first entry of 0")  # fmt: skip
    yield facts("a square", np.triu(independent(draw, 3, 3)), shown="a triangle already")
    yield facts("more rows than columns", np.eye(4)[:, :2] * draw.integer(2, 9), shown="a diagonal")
    yield facts("a square", np.array([[0.0, 2.0], [1.0, float(draw.integer(1, 9))]]),
                shown="a first entry of 0")  # fmt: skip
    A = np.array([[0.0, 2.0], [0.0, 1.0], [float(draw.integer(2, 9)), 1.0]])
    yield facts("more rows than columns", A, shown="two entries of 0 first")
    alike = [nearly_dependent(draw, rows) for rows in (8, 12)]
    for A in (*alike, near_the_axis(draw, 1.0), near_the_axis(draw, -1.0)):
        yield facts("nearly dependent columns", A, "nearly dependent columns")
