"""A class of made-up learners for any lab, with the score that each of them must get.

Nothing is copied by hand: answers come from the lab's own solutions and from the alternates and
misconceptions of its checks, so every lab has its class, and every score is known beforehand.
"""

from grader.proof.sample_class.lab import Exercise, Lab, load_lab
from grader.proof.sample_class.roster import PREFIX, Learner, make_class, make_sample, sampled

__all__ = [
    "PREFIX",
    "Exercise",
    "Lab",
    "Learner",
    "load_lab",
    "make_class",
    "make_sample",
    "sampled",
]
