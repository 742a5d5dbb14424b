"""Exercises whose answers take long to judge: they launch kernels in an interpreter, trace,
compile or train.

``make test`` judges a few of their answers, which the seed of the run draws; ``make proof`` judges
them all. What needs all of them, such as a count, is left to ``make proof``.
"""

FEW = 2  # candidates of a kind, and answers of a bank
MUTANTS = 6
EXERCISES = frozenset(
    {
        *("triton_softmax", "softmax_backward", "make_softmax", "make_twice", "swap_softmax"),
        *("mended", "compiled_head"),
        *("checkpoint", "train_minigpt"),
        *("from_hf", "fine_tune"),
        "minigpt_step",
    }
)
# Each of their mutants trains: all of them are left to ``make proof``.
TRAINS = frozenset({"train_minigpt", "fine_tune"})
