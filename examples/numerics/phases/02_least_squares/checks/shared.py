"""What the exercises of lab 02 share."""

import numpy as np

from hood.judge.checks.exercise import ByHand

BY_HAND = ByHand(
    "the exercise is to use reflections of your own",
    forbid_names=frozenset({"numpy.linalg.*", "scipy.*", "numpy.polyfit", "numpy.polynomial.*"}),
    allow_names=frozenset({"numpy.linalg.norm"}),
)


def nearly_dependent(draw, rows):
    """Return the columns 1, t and t² for values of t near 1; with 8 to 12 rows κ is up to 1e8."""
    t = 1 + np.arange(rows) * draw.integer(10, 13) * 1e-5
    return np.column_stack([np.ones_like(t), t, t**2])


def near_the_axis(draw, sign):
    """Return two columns that differ by less than 1e-6, and lie nearly on the first axis.

    A mirror to the near side cancels here. κ is at most 4e7.
    """
    small = draw.integer(2, 9) * 1e-8
    return np.array([[sign, sign], *[[-sign * small, sign * small]] * 2]) / 2
