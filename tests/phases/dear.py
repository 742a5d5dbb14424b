"""Exercises whose answers take long to judge.

They launch kernels in an interpreter, trace, profile, compile or train.

``make test`` judges a few of their answers, which the seed of the run draws; ``make proof`` judges
them all. Tests that need all of them, such as a count, run only in ``make proof``.
"""

MUTANTS = 6
EXERCISES = frozenset(
    {
        *("triton_softmax", "softmax_backward", "make_softmax", "make_twice", "swap_softmax"),
        "cpp_softmax",
        *("mended", "generated", "compiled_head", "compiled_writer", "exportable"),
        *("fit", "checkpoint", "keep_training"),
        *("from_hf", "complete", "fine_tune", "load_llama"),
        "slowest",
        "minigpt_step",
        *("matmul", "linear_gelu", "flash", "FlashAttention", "triton_attention"),
    }
)
# Each answer to one of these exercises trains a model, lets a model write many sentences, lets
# Inductor write a dozen modules, or launches dozens of kernels in the interpreter. Only
# ``make proof`` judges their mutants and examples. Only runs that select the lab judge their
# candidates. In a lab's sample, only the learner who solves everything answers them.
DEAREST = frozenset(
    {
        *("fine_tune", "complete", "generated", "compiled_head", "compiled_writer"),
        *("matmul", "linear_gelu", "FlashAttention", "triton_attention"),
    }
)


def few(exercise: str, full: bool) -> int:
    """Return how many candidates of a kind, or answers of a bank, to judge; 0 for all of them.

    Args:
        full: whether this is ``make proof``.
    """
    if full or exercise not in EXERCISES:
        return 0
    return 1 if exercise in DEAREST else 2
