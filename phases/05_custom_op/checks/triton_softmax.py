"""Lab 05, exercise 2: A row softmax"""

import torch

from hood.judge.checks.exercise import Check
from utils.drivers.custom_op import cut

from .shared import EXACTNESS_IS_A_FACT, IN_A_KERNEL, compiles, launched, room_for, written

triton_softmax = Check(
    "triton_softmax",
    parts={
        "any width": 2,
        "any strides": 1,
        "minus infinity": 1,
        "half precision": 1,
        "double precision": 1,
        "compiles for a GPU": 1,
    },
    reads="Masks, and what lies beside the row",
    reads_by_part={
        "half precision": "Half precision",
        "double precision": "Half precision",
        "compiles for a GPU": "The same kernel as PTX",
    },
    changes_inputs=True,
    by_hand=IN_A_KERNEL,
    tolerance=EXACTNESS_IS_A_FACT,
)


@triton_softmax.reference
def _(x, y):
    launched(x)
    y.copy_(torch.softmax(x.double(), -1))


@triton_softmax.cases
def _(draw):
    def softmax_of(part, x, shown, out=()):
        y = room_for(x, *out)
        dtype = str(x.dtype).removeprefix("torch.")
        words = f"{dtype} {tuple(x.shape)}, strides {x.stride()}{shown}"
        return written("triton_softmax", part, (x, y), torch.softmax(x.double(), -1), words, 1)

    width, strides, infinite, half, double, gpu = triton_softmax.parts
    odd = 2 * draw.integer(5, 20) + 1
    for shape in ((3, odd), (2, 1), (1, 2), (1, 3), (1, 17)):
        yield softmax_of(width, cut(draw.tensor(shape)), "")
    for columns in (16, 65):
        yield softmax_of(width, cut(draw.tensor((1, columns))), ", one row")
    x = draw.tensor((1, 600))
    x[0, -1] += 300  # a large one, late
    yield softmax_of(width, cut(x), "")
    yield softmax_of(width, cut(draw.tensor((1, 1100))), ", one wide row")
    yield softmax_of(width, cut(draw.tensor((0, odd))), ", no rows")
    far = draw.tensor((3, odd))
    far[0] -= 120
    far[1] += 300
    far[2] = 0
    yield softmax_of(width, cut(far), ", rows far below 0, far above 0, and of equal numbers")
    lowest = torch.full((1, 5), -3e38)
    yield softmax_of(width, cut(lowest), ", all numbers -3e38")

    x = draw.tensor((2, draw.integer(9, 14)))
    rows, columns = x.shape
    yield softmax_of(strides, x, ", contiguous", (columns, 1))
    yield softmax_of(strides, cut(x, columns + draw.integer(1, 5)), "", (columns, 1))
    yield softmax_of(strides, cut(x, 1, rows), ", transposed", (columns + 2, 1))
    yield softmax_of(strides, cut(x, 2 * columns + 1, 2), ", every second column", (1, rows + 1))
    late = x.clone()
    late[:, -1] += 200
    yield softmax_of(strides, cut(late, 3 * columns, 3), ", every third column, and the last number large")
    one = cut(x)[:1]  # with room around it for code that takes it for a matrix
    yield softmax_of(strides, one.expand(rows, columns), ", expanded from one row")
    yield softmax_of(strides, one[:, :1].expand(rows, columns), ", expanded from one number")
    yield softmax_of(strides, cut(x), "; the output transposed", (1, rows))
    yield softmax_of(strides, cut(x), "; the output sliced", (3 * columns, 3))

    some = draw.tensor((4, draw.integer(9, 14)))
    some[0, 0] = some[1, -1] = some[2, 1:] = some[3, 1] = some[3, 2] = -float("inf")
    yield softmax_of(infinite, cut(some), ", some of it -inf")
    none = some[:2].clone()
    none[1] = -float("inf")
    yield softmax_of(infinite, cut(none), ", a row that has only -inf")
    yield softmax_of(infinite, cut(none[1:, :4]), ", a row that has only -inf, as wide as a block")
    late = draw.tensor((1, 1100))
    late[0, :1050] = -float("inf")  # every number of a first tile
    yield softmax_of(infinite, cut(late), ", -inf in the first 1050 columns")

    for dtype in (torch.float16, torch.bfloat16):
        x = draw.tensor((3, 33))
        x[:, 4] = 6.3
        x[1, 9:] = -float("inf")
        x[2] += 300
        yield softmax_of(half, cut(x.to(dtype)), ", some numbers -inf, some far above 0")
        yield softmax_of(half, cut(draw.tensor((2, odd)).to(dtype), 1, 2), ", transposed")

    yield softmax_of(double, cut(draw.tensor((2, odd), torch.float64)), "")
    large = draw.tensor((2, odd), torch.float64) + 900
    yield softmax_of(double, cut(large, 1, 2), ", far above 0, transposed")

    for dtype in (torch.bfloat16, torch.float64):
        x = cut(draw.tensor((1, odd), dtype))
        yield compiles(gpu, (x, cut(x)), str(dtype).removeprefix("torch."))
