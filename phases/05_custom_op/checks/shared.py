"""What several exercises of lab 05 need."""

import torch
import triton

from utils.checks import ByHand, Case
from utils.drivers.custom_op import surroundings
from utils.launching import INTERPRETER_OPS, launch

# Of the result, what rounding to half precision may change; Triton's interpreter cuts bfloat16 off
# where a GPU rounds it.
HALF = {torch.float16: 1.1 * 2.0**-11, torch.bfloat16: 1.1 * 2.0**-7}
# What the sums and products before it may leave, in float32 or float64.
INSIDE = {torch.float64: 64 * 2.0**-52}
TINY = {torch.float16: 2.0**-24}

# A kernel is asked for, so the tensors themselves are for it alone.
IN_A_KERNEL = ByHand(
    because="the exercise is to compute it in a Triton kernel of your own",
    allow_ops=INTERPRETER_OPS,
    forbid_names=frozenset({"*softmax*", "interpreted", "custom_op"}),
    allow_names=frozenset({"triton.next_power_of_2", "triton.cdiv", "utils.launching.launch"}),
)


def precise(got, exact, scale=None):
    """Whether values are as near to the exact ones as sums in float32, or float64, can be.

    scale: how large the numbers were that the exact ones are made of, element by element.
    """
    if got.shape != exact.shape or not torch.equal(got.isnan(), exact.isnan()):
        return False
    exact = exact.nan_to_num()
    scale = exact.abs() if scale is None else scale
    allowed = HALF.get(got.dtype, 0.0) * exact.abs() + TINY.get(got.dtype, 0.0)
    allowed += INSIDE.get(got.dtype, 32 * 2.0**-23) * scale.nan_to_num()
    return bool(((got.double().nan_to_num() - exact).abs() <= allowed).all())


def written(part, tensors, exact, shown, scale=None):
    """A case that lets a function write into the last of some tensors.

    Looked at are what it wrote, whether that is as exact as its dtype allows, what lies beside it,
    and whether the inputs are as they were.
    """

    def play(subject):
        came = subject.drive("custom_op:fill", *tensors)
        out = came["out"]
        return out.clone(), precise(out, exact, scale), surroundings(out), came["kept"]

    places = {
        "[0]": "what was written",
        "[1]": "It is less exact than its dtype allows.",
        "[2]": "what lies beside the rows, in the storage of the output",
        "[3]": "An input was changed.",
    }
    return Case(part, play, shown=shown, places=places)


def compiles(part, tensors, shown):
    """A case that compiles what a function launches for a GPU that is not there."""

    def play(subject):
        return subject.drive("custom_op:compiled", *tensors)

    return Case(part, play, shown=f"compiled for sm_90, {shown}")


@triton.jit
def _nothing(x_ptr):
    """Launched by references, which compute with torch."""


def launched(x):
    """Launch a kernel that does nothing."""
    launch(_nothing, (1,), x)
