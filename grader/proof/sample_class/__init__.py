"""Make a class of invented learners for any lab, with the score that each of them must get.

The answers come from the lab's own solutions and from the alternates and misconceptions of its
checks. So a class can be made for every lab, and every score is known beforehand.
"""

from grader.proof.sample_class.lab import load_lab
from grader.proof.sample_class.roster import PREFIX, Learner, make_class

__all__ = ["PREFIX", "Learner", "load_lab", "make_class"]
