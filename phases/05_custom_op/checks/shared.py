"""Code for several exercises of lab 05."""

import math

import torch
import triton

from hood.judge.checks.compare import Tolerance
from hood.judge.checks.exercise import ByHand, Case, Paste
from utils.drivers.custom_op import cut, surroundings
from utils.instruments.launching import INTERPRETER_OPS, launch

# The error of a result that is rounded to half precision. Triton's interpreter truncates numbers to
# bfloat16, and a GPU rounds them.
HALF = {torch.float16: 1.1 * 2.0**-11, torch.bfloat16: 1.1 * 2.0**-7}
# The error of the sums and products before this rounding, in float64.
INSIDE = {torch.float64: 64 * 2.0**-52}
TINY = {torch.float16: 2.0**-24}

# The exercise is to write a kernel, so only the kernel may use the tensors.
IN_A_KERNEL = ByHand(
    because="the exercise is to compute the result in your own Triton kernel",
    allow_ops=INTERPRETER_OPS,
    forbid_names=frozenset({"*softmax*", "interpreted", "custom_op"}),
    allow_names=frozenset({"triton.next_power_of_2", "triton.cdiv", "utils.instruments.launching.launch"}),
)

# An error beyond this tolerance can't come from rounding. Results within it are also tested with
# `precise`.
EXACTNESS_IS_A_FACT = Tolerance(0.02, 5e-4, "a separate fact tests whether the result is exact enough")


def precise(got, exact, scale=None):
    """Whether values are as near to the exact values as sums in float32 (or float64) can be.

    scale: for each element, the size of the numbers from which the exact value was computed.
    """
    if got.shape != exact.shape or not torch.equal(got.isnan(), exact.isnan()):
        return False
    exact = exact.nan_to_num()
    scale = exact.abs() if scale is None else scale
    allowed = HALF.get(got.dtype, 0.0) * exact.abs() + TINY.get(got.dtype, 0.0)
    allowed += INSIDE.get(got.dtype, 32 * 2.0**-23) * scale.nan_to_num()
    return bool(((got.double().nan_to_num() - exact).abs() <= allowed).all())


# The number in each place of an output before the call. Every right result is far above it.
UNTOUCHED = -8192.0
BESIDE = -7.0
# The first false fact is reported.
FACTS = {
    "[0]": "An input was changed.",
    "[1]": (
        "Something was written beside the rows of the output: into the larger storage of which "
        "these rows are a part."
    ),
    "[2]": "Some places of the output still have their old number: nothing was written there, or a "
    "result was computed from the old number.",
    "[3]": "For a row that has only -inf, the result has numbers where torch has NaN.",
    "[4]": "There is NaN where a number is expected. The places beside the rows of an input contain NaN, "
    "and should not be read. inf - inf, inf / inf and 0 / 0 give NaN, too.",
    "[5]": "Only zeros were written.",
    "[6]": "The result is nearly right, but less exact than its dtype allows. That happens if a number "
    "is rounded, or computed with fewer digits, before the end.",
    "[7]": "The numbers of a row do not sum to {total}.",
    "[8]": "the numbers beside the rows of the output",
    "[9]": "the written numbers",
}


def room_for(like, row_stride=None, column_stride=1):
    """An output for `written`, shaped as another tensor. Its numbers differ from all right results."""
    return cut(torch.full_like(like, UNTOUCHED), row_stride, column_stride, beside=BESIDE)


def written(name, part, tensors, exact, shown, total, scale=None):
    """A case in which a function writes into the last of ``tensors``, which `room_for` made.

    Facts about the result come before the numbers, so that the first false fact is reported in
    words. All facts are about the numbers, and not about the code.

    total: the sum of the numbers of each row.
    """
    missing = exact.isnan()
    zeros = bool((exact.nan_to_num().abs() < 1e-3).all())
    size = 0.03 * (exact.abs() if scale is None else scale)
    if torch.bfloat16 in {tensor.dtype for tensor in tensors}:
        stored = "Only zeros were written. Triton's interpreter turns a float64 into 0 "
        facts = {**FACTS, "[5]": f"{stored}if this float64 is stored as bfloat16."}
    else:
        facts = FACTS

    def play(subject):
        came = subject.drive("custom_op:fill", *tensors)
        out, around = came["out"], surroundings(came["out"])
        inside = torch.zeros_like(around)
        inside.as_strided(out.shape, out.stride(), out.storage_offset()).fill_(1)
        got = out.double()
        # The limit is far above a rounding error, so that every right answer passes.
        nearly = bool((missing | ((got - exact).abs() <= size + 1e-3)).all())
        off = (got.sum(-1) - total).abs()
        sums = bool((missing.any(-1) | (off <= size.nan_to_num().sum(-1) + 0.02)).all())
        return (
            came["kept"],
            bool(((around == BESIDE) | (inside == 1)).all()),
            not bool((out == UNTOUCHED).any()),
            bool(out.isnan()[missing].all()),
            not bool(out.isnan()[~missing].any()),
            zeros or not bool((out == 0).all()),
            precise(out, exact, scale) or not nearly,
            sums,
            around,
            out.clone(),
        )

    places = {place: words.format(total=total) for place, words in facts.items()}
    words = [name, *(_as_cut(tensor) for tensor in tensors)]
    call = f"driver.fill({', '.join(words)})['out']"
    paste = Paste(call, tuple(tensor.contiguous() for tensor in tensors), {9: "{}"})
    if any(0 in tensor.stride() for tensor in tensors):  # `cut` writes each place once
        paste = None
    return Case(part, play, shown=shown, places=places, paste=paste)


def _as_cut(tensor):
    """Code that makes a tensor again from its contiguous copy, with the same numbers beside the tensor."""
    beside = surroundings(tensor)
    if tensor.is_contiguous() and beside.numel() == tensor.numel():
        return "{}"
    row_stride, column_stride = tensor.stride()
    number = float(beside[0])
    more = "" if math.isnan(number) else f", beside={number}"
    return f"driver.cut({{}}, {row_stride}, {column_stride}{more})"


def compiles(part, tensors, shown):
    """A case that compiles the kernels that a function launches. This needs no GPU."""

    def play(subject):
        return subject.drive("custom_op:compiled", *tensors)

    return Case(part, play, shown=f"compiled for sm_90, {shown}")


@triton.jit
def _nothing(x_ptr):
    """References launch this kernel, and compute the result with torch."""


def launched(x):
    """Launch a kernel that does nothing."""
    launch(_nothing, (1,), x)
