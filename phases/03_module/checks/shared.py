"""What several exercises of lab 03 need."""

from utils.compare import Tolerance

LAYOUTS = ("contiguous", "transposed", "sliced")
SUMS = Tolerance(1e-4, 1e-5, "sums of a few products, each in an order of its own")
RAW = "its tensors are ordinary attributes, which no module knows of: nothing saves or trains them."


def shapes_of(made):
    """Name -> (shape, dtype) of what a module saves."""
    return {n: (tuple(t.shape), t.dtype) for n, t in made.call("state_dict").items()}


def in_eval(made):
    """The handle, in eval mode. (`eval()` returns the module itself, which can't come here.)"""
    made.call("__setattr__", "training", False)
    return made
