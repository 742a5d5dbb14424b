"""Exercises whose answers take long to judge: they launch kernels in an interpreter, trace,
profile, compile or train.

``make test`` judges a few of their answers, which the seed of the run draws; ``make proof`` judges
them all. What needs all of them, such as a count, is left to ``make proof``.
"""

MUTANTS = 6
EXERCISES = frozenset(
    {
        *("triton_softmax", "softmax_backward", "make_softmax", "make_twice", "swap_softmax"),
        *("mended", "generated", "compiled_head"),
        *("fit", "checkpoint"),
        *("from_hf", "complete", "fine_tune"),
        "slowest",
        "minigpt_step",
    }
)
# Each of their answers trains a model, has one write many sentences, or Inductor a dozen modules.
# Their mutants and examples are all left to ``make proof``, and their candidates to runs that draw
# the lab. Of a lab's sample, only the learner who solves everything has answers to them.
TRAINS = frozenset({"fine_tune", "complete", "generated", "compiled_head"})


def few(exercise: str, full: bool) -> int:
    """Return how many candidates of a kind, or answers of a bank, to judge; 0 for all of them.

    Args:
        full: whether this is ``make proof``.
    """
    if full or exercise not in EXERCISES:
        return 0
    return 1 if exercise in TRAINS else 2
