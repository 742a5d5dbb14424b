"""What the hidden cells of lab 07 check.

Points hang on values: what a function returns, what a generator yields, the losses and weights of a
run that was stopped, the perplexity of weights that were trained. How many graphs of `accumulate` are
alive at once, and that torch's global generator was left alone, is a claim of the learner's process.
"""

from .accumulate import accumulate
from .batches import batches
from .checkpoint import checkpoint
from .fit import fit
from .mended_fit import mended_fit
from .optimizers import optimizers
from .scaler import scaler
from .schedule import schedule
from .token_windows import token_windows
from .train_minigpt import train_minigpt

__all__ = [
    "batches",
    "token_windows",
    "mended_fit",
    "optimizers",
    "schedule",
    "accumulate",
    "scaler",
    "checkpoint",
    "train_minigpt",
    "fit",
]
