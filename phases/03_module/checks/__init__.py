"""What the hidden cells of lab 03 check.

Classes are made with random sizes, given random weights through `load_state_dict`, and called; the
references are torch's own layers wherever torch has them. A long solution that goes wrong in one
place is written as an edit of the right one, so that what differs is all there is to read.
"""

from .bytes_moved import bytes_moved
from .count_parameters import count_parameters
from .dropout import dropout
from .embedding import embedding
from .layer_norm import layer_norm
from .linear import linear
from .minigpt_logits import minigpt_logits
from .mlp import mlp
from .run_module import run_module
from .running_norm import running_norm
from .stack import stack

__all__ = [
    "count_parameters",
    "linear",
    "embedding",
    "layer_norm",
    "dropout",
    "stack",
    "mlp",
    "running_norm",
    "run_module",
    "bytes_moved",
    "minigpt_logits",
]
