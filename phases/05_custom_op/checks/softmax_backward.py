"""Lab 05, exercise 3: Its backward"""

import torch

from hood.judge.checks.exercise import Check
from utils.drivers.custom_op import cut

from .shared import EXACTNESS_IS_A_FACT, IN_A_KERNEL, compiles, launched, room_for, written

softmax_backward = Check(
    "softmax_backward",
    parts={"any width": 2, "strides of each": 1, "half and double": 1, "compiles for a GPU": 1},
    reads="The backward is a kernel, too",
    reads_by_part={
        "strides of each": "Masks, and what lies beside the row",
        "half and double": "Half precision",
        "compiles for a GPU": "The same kernel as PTX",
    },
    changes_inputs=True,
    by_hand=IN_A_KERNEL,
    tolerance=EXACTNESS_IS_A_FACT,
)


def _exact(g, y):
    g, y = g.double(), y.double()
    return y * (g - (g * y).sum(-1, keepdim=True))


@softmax_backward.reference
def _(g, y, dx):
    launched(y)
    dx.copy_(_exact(g, y))


@softmax_backward.cases
def _(draw):
    def probabilities(shape):
        return torch.softmax(draw.tensor(shape, torch.float64), -1)

    def backward_of(part, g, y, shown, out=()):
        dx = room_for(y, *out)
        dtype = str(y.dtype).removeprefix("torch.")
        words = f"{dtype} {tuple(y.shape)}, strides {g.stride()} and {y.stride()}{shown}"
        wide_g, wide_y = g.double(), y.double()
        scale = wide_y * (wide_g.abs() + (wide_g.abs() * wide_y).sum(-1, keepdim=True))
        return written("softmax_backward", part, (g, y, dx), _exact(g, y), words, 0, scale)

    width, strides, dtypes, gpu = softmax_backward.parts
    odd = 2 * draw.integer(5, 20) + 1
    # With five rows, a row is lost if programs of two rows overlap, or if there is one program too
    # few.
    for shape in ((5, odd), (1, 2), (1, 16), (1, 17), (1, 65), (2, 1), (0, odd), (1, 600)):
        yield backward_of(width, cut(draw.tensor(shape)), cut(probabilities(shape).float()), "")
    wide = draw.tensor((1, 1100)), probabilities((1, 1100)).float()
    yield backward_of(width, *map(cut, wide), ", one wide row")
    far = draw.tensor((2, odd))
    far[0] += 40
    far[1] = -far[1].abs() - 1
    y = probabilities((2, odd)).float()
    yield backward_of(width, cut(far), cut(y), ", g far above 0 in one row and below 0 in the other")

    rows, columns = shape = 2, draw.integer(9, 14)
    g, y = draw.tensor(shape), probabilities(shape).float()
    yield backward_of(strides, g, y, ", contiguous", (columns, 1))
    yield backward_of(strides, cut(g, 1, rows), cut(y), ", g transposed")
    yield backward_of(strides, cut(g), cut(y, 1, rows + 1), ", y transposed")
    yield backward_of(strides, cut(g, columns + 1), cut(y, columns + 4), ", rows apart")
    yield backward_of(strides, cut(g, 2 * columns, 2), cut(y), ", every second column of g")
    yield backward_of(strides, cut(g), cut(y, 3 * columns, 3), ", every third column of y")
    yield backward_of(strides, cut(g), cut(y), "; the output transposed", (1, rows + 2))
    yield backward_of(strides, cut(g), cut(y), "; the output sliced", (2 * columns + 1, 2))
    one = cut(g)[:1]  # with room around it for code that takes it for a matrix
    yield backward_of(strides, one[:, :1].expand(shape), cut(y), ", g expanded from one number")
    yield backward_of(strides, one.expand(shape), cut(y), ", g expanded from one row")

    for dtype in (torch.float16, torch.bfloat16, torch.float64):
        g, y = draw.tensor((2, odd)).to(dtype), probabilities((2, odd)).to(dtype)
        yield backward_of(dtypes, cut(g), cut(y), "")
        g, y = draw.tensor((2, 33)).to(dtype), probabilities((2, 33)).to(dtype)
        yield backward_of(dtypes, cut(g + 20, 1, 2), cut(y), ", g far above 0")

    for dtype in (torch.bfloat16, torch.float64):
        g, y = cut(draw.tensor((1, odd)).to(dtype)), cut(probabilities((1, odd)).to(dtype))
        yield compiles(gpu, (g, y, cut(y)), str(dtype).removeprefix("torch."))
