"""What several exercises of lab 05 need."""

import math

import torch
import triton

from hood.judge.checks.compare import Tolerance
from hood.judge.checks.exercise import ByHand, Case, Paste
from utils.drivers.custom_op import cut, surroundings
from utils.instruments.launching import INTERPRETER_OPS, launch

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
    allow_names=frozenset({"triton.next_power_of_2", "triton.cdiv", "utils.instruments.launching.launch"}),
)

# What is further off than that is no rounding; whatever is nearer must be `precise`.
EXACTNESS_IS_A_FACT = Tolerance(0.02, 5e-4, "whether it is exact enough is a fact of its own")


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


# What a function finds in its output; no number that is asked for is as far below 0.
UNTOUCHED = -8192.0
BESIDE = -7.0
# The first of these that is not so is told.
FACTS = {
    "[0]": "An input was changed.",
    "[1]": "Something was written beside the rows of the output, into what they are cut from.",
    "[2]": "Some places of the output hold what was there before: nothing was written to them, or what "
    "was written depends on what they held.",
    "[3]": "A row of nothing but -inf has numbers in it, where torch has NaN.",
    "[4]": "There is NaN where a number is expected. NaN lies beside the rows of an input, where "
    "nothing is to be read; inf - inf, inf / inf and 0 / 0 give it, too.",
    "[5]": "Nothing but zeros was written.",
    "[6]": "It is nearly right, and less exact than its dtype allows. That happens when something is "
    "rounded, or computed with fewer digits, before the end.",
    "[7]": "The numbers of a row do not sum to {total}.",
    "[8]": "what lies beside the rows of the output",
    "[9]": "what was written",
}


def room_for(like, row_stride=None, column_stride=1):
    """An output for `written`, shaped as another tensor: each place can be told from a written one."""
    return cut(torch.full_like(like, UNTOUCHED), row_stride, column_stride, beside=BESIDE)


def written(name, part, tensors, exact, shown, total, scale=None):
    """A case that lets a function write into the last of some tensors, made by `room_for`.

    Facts about the result come before the numbers, so that the first that is not as it should be
    is told in words; all of them hold of the numbers, whatever the code was.

    total: what the numbers of each row sum to.
    """
    missing = exact.isnan()
    zeros = bool((exact.nan_to_num().abs() < 1e-3).all())
    size = 0.03 * (exact.abs() if scale is None else scale)
    if torch.bfloat16 in {tensor.dtype for tensor in tensors}:
        stored = "Nothing but zeros was written. Triton's interpreter makes 0 of a float64 "
        facts = {**FACTS, "[5]": f"{stored}that is stored as bfloat16."}
    else:
        facts = FACTS

    def play(subject):
        came = subject.drive("custom_op:fill", *tensors)
        out, around = came["out"], surroundings(came["out"])
        inside = torch.zeros_like(around)
        inside.as_strided(out.shape, out.stride(), out.storage_offset()).fill_(1)
        got = out.double()
        # Far more than rounding can do, so that these hold for every right answer.
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
    """How a tensor is made again from a contiguous copy, with numbers beside it as it has them."""
    beside = surroundings(tensor)
    if tensor.is_contiguous() and beside.numel() == tensor.numel():
        return "{}"
    row_stride, column_stride = tensor.stride()
    number = float(beside[0])
    more = "" if math.isnan(number) else f", beside={number}"
    return f"driver.cut({{}}, {row_stride}, {column_stride}{more})"


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
