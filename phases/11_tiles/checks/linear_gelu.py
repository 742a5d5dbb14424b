"""Lab 11, exercise 4: An epilogue, fused"""

import math

import torch
import triton
import triton.language as tl

from hood.judge.checks.exercise import Case, Check
from utils.drivers.custom_op import cut
from utils.instruments.launching import launch

from .shared import EXACTNESS_IS_A_FACT, IN_A_KERNEL, TRUNCATED, exactness

linear_gelu = Check(
    "linear_gelu",
    parts={"float32": 1, "ragged tiles": 1, "rounded once": 1, "one kernel": 1},
    reads="An epilogue, fused",
    by_hand=IN_A_KERNEL,
    tolerance=EXACTNESS_IS_A_FACT,
)


@triton.jit
def _fused(x_ptr, w_ptr, bias_ptr, y_ptr, sizes, strides, STEP: tl.constexpr):
    """16 × 16 numbers of the result."""
    rows, outs, ins = sizes
    i = tl.program_id(1) * 16 + tl.arange(0, 16)[:, None]
    j = tl.program_id(0) * 16 + tl.arange(0, 16)[None, :]
    total = tl.load(bias_ptr + j * strides[4], mask=j < outs, other=0.0).to(tl.float32)
    total = tl.broadcast_to(total, (16, 16))
    for first in range(0, ins, STEP):
        k = first + tl.arange(0, STEP)
        x_mask = (i < rows) & (k[None, :] < ins)
        w_mask = (k[:, None] < ins) & (j < outs)
        x = tl.load(x_ptr + i * strides[0] + k[None, :] * strides[1], mask=x_mask, other=0.0)
        w = tl.load(w_ptr + k[:, None] * strides[3] + j * strides[2], mask=w_mask, other=0.0)
        total += tl.dot(x, w)
    y = 0.5 * total * (1 + tl.erf(total * 0.7071067811865476))
    tl.store(y_ptr + i * outs + j, y, mask=(i < rows) & (j < outs))


@linear_gelu.reference
def _(x, weight, bias):
    rows, ins, outs = *x.shape, len(bias)
    y = torch.zeros(rows, outs, dtype=x.dtype)
    strides = *x.stride(), *weight.stride(), *bias.stride()
    grid = triton.cdiv(outs, 16), triton.cdiv(rows, 16)
    launch(_fused, grid, x, weight, bias, y, (rows, outs, ins), strides, STEP=32)
    return y


INEXACT = (
    "The result is nearly right, but less exact than one rounding at the end allows. That happens if "
    "the sum is rounded before the bias or the GELU."
)
NAN = (
    "There is NaN where a number is expected. The places beside the rows of `x` and `weight` are NaN, "
    "and so are places of the result to which nothing is written."
)


def _exact(x, weight, bias):
    z = x.double() @ weight.double().t() + bias.double()
    return z * torch.special.ndtr(z)


@linear_gelu.cases
def _(draw):
    plain, ragged, once, kernel = linear_gelu.parts

    def drawn(rows, outs, ins, dtype=torch.float32):
        weight = draw.tensor((outs, ins)) / math.sqrt(ins)
        return draw.tensor((rows, ins)).to(dtype), weight.to(dtype), draw.tensor((outs,)).to(dtype)

    def asked(part, tensors, words="", look=None):
        x, weight, bias = tensors
        exact = _exact(*tensors)
        # the derivative of GELU is at most 1.13
        scale = 1.2 * (x.double().abs() @ weight.double().abs().t() + bias.double().abs())

        def play(subject):
            name = "tiles:computed" if look is None else "tiles:launched"
            came = subject.drive(name, *tensors)
            output = came["output"]
            right = isinstance(output, torch.Tensor) and output.dtype == x.dtype
            facts = () if look is None else look(came, exact.numel())
            return (
                not right or not bool(output.isnan().any()),
                not right or exactness(output, exact, scale, TRUNCATED),
                not right or output.is_contiguous(),
                output,
                *facts,
            )

        places = {
            "[0]": NAN,
            "[1]": INEXACT,
            "[2]": "The result is not contiguous.",
            "[3]": "the result",
            "[4]": "Not exactly one kernel is launched.",
            "[5]": "More numbers are stored than the result has.",
            "[6]": "Fewer numbers are stored than the result has.",
            "[7]": "The kernel gets a tensor that is neither `x`, `weight`, `bias` nor the result. It "
            "should read them as they are.",
        }
        dtype = str(x.dtype).removeprefix("torch.")
        shown = f"{dtype} x {tuple(x.shape)}, weight {tuple(weight.shape)}{words}"
        return Case(part, play, shown=shown, places=places)

    yield asked(plain, drawn(16, 16, 16))
    yield asked(plain, drawn(32, 16, 144))  # several steps, of any usual length
    yield asked(plain, drawn(16, 48, 32))
    x, weight, bias = drawn(16, 32, 32)
    yield asked(plain, (x * 5, weight, bias - 2), ", numbers far from 0")
    yield asked(plain, (x, weight * 0, bias * 3), ", a weight of 0")
    yield asked(plain, (x, weight, bias * 0), ", a bias of 0")
    yield asked(plain, (cut(x, 1, 20), cut(weight, 50), bias), ", x transposed")
    yield asked(plain, (cut(x, 70, 2), cut(weight, 1, 33), bias[:1].expand(32)), ", weight transposed, one bias for all")

    def rest():
        return draw.integer(1, 15)

    for rows, outs, ins in ((16 + rest(), 16, 16), (16, 16 + rest(), 16), (16, 16, 16 + rest()), (1, 1, 1)):
        x, weight, bias = drawn(rows, outs, ins)
        yield asked(ragged, (cut(x), cut(weight), bias))
    x, weight, bias = drawn(rest(), 16 + rest(), 32 + rest())
    yield asked(ragged, (cut(x), cut(weight), cut(bias[:, None])[:, 0]), ", the bias apart in memory")

    # with tiles of any usual size, several in both directions
    yield asked(ragged, drawn(65, 129, 15), ", nothing beside the tensors")

    # GELU is steep in relative terms where z is negative: there a rounded z shows
    for part_of in (16, 48):
        x, weight, bias = drawn(16, 32, part_of)
        far = x, weight * 0.3, -3 + bias * 0.2
        yield asked(once, tuple(one.bfloat16() for one in far), ", results of a negative sum")
    yield asked(once, drawn(16, 16, 64, torch.bfloat16))
    x, weight, bias = drawn(16, 16, 48)
    x[:, :16], x[:, 32:] = 8.0, -8.0  # large sums on the way, small ones at the end
    weight[:, :16] = weight[:, 32:] = 1.0
    yield asked(once, tuple(one.bfloat16() for one in (x, weight, bias)), ", large sums on the way")

    def single(came, count):
        stores = came["stores"]
        return came["launches"] == 1, stores <= count, stores >= count, came["others"] == 0

    yield asked(kernel, drawn(16, 32, 16), look=single)
    yield asked(kernel, drawn(32, 16, 32), look=single)
    yield asked(kernel, drawn(70, 16, 16), look=single)

    # for the compiler like the tensors in the lab's cell, so no kernel is compiled twice
    tensors = drawn(16, 16, 16, torch.bfloat16)

    def compiled(subject):
        return subject.drive("tiles:tensor_cores", *tensors)

    says = {"": "The kernel compiles for an H100, but it has no `mma` instruction. `tl.dot` makes them."}
    yield Case(kernel, compiled, shown="bfloat16, compiled for sm_90", places=says)
