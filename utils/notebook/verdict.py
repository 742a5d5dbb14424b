"""The old place of :mod:`hood.learner.check`: copies that learners have import it from here.

`python -m hood.learner.copies` brings the new import into a cell of the course. A cell of the
learner's own, and a lab that was handed in, keeps the old one for good.
"""

from hood.learner.check import check, solution

__all__ = ["check", "solution"]
