"""Lab 02, exercise 4: Back to the shape it came from"""

import torch

from hood.judge.checks.exercise import Check, case

from .shared import KINDS, SUMS, laid_out

unbroadcast = Check(
    "unbroadcast",
    parts={"new dimensions": 1, "stretched ones": 1, "both, or neither": 1},
    reads="Broadcasting's adjoint is a sum",
    tolerance=SUMS,
)


@unbroadcast.reference
def _(grad, shape):
    return grad.sum_to_size(shape)


@unbroadcast.cases
def _(draw):
    for k, (dtype, layout) in enumerate(KINDS):
        a, b, c = draw.shape(3)
        grad = laid_out(draw, (a, b, c), dtype, layout)
        yield case("new dimensions", grad, (c,))
        yield case("new dimensions", grad, (b, c))
        yield case("stretched ones", grad, (a, 1, c) if k % 2 else (1, b, 1))
        yield case("both, or neither", grad, (b, 1) if k % 2 else (1, c), shown="both")
        yield case("both, or neither", grad, (a, b, c), shown="nothing was broadcast")
    yield case("both, or neither", draw.tensor((1, 4, 1)), (4, 1), shown="sizes of 1 in both")
    square, cube = draw.tensor((3, 3)), draw.tensor((4, 3, 4))
    yield case("new dimensions", square, (3,), shown="equal sizes")
    yield case("new dimensions", draw.tensor((3, 3, 4)), (3, 4), shown="equal sizes")
    yield case("new dimensions", cube, (4,), shown="equal sizes")
    yield case("stretched ones", square, (3, 1), shown="equal sizes")
    yield case("stretched ones", square, (1, 3), shown="equal sizes")
    yield case("both, or neither", square, (3, 3), shown="nothing was broadcast")
    deep = draw.tensor((2, 3, 4, 5))
    yield case("new dimensions", deep, (), shown="a single number")
    yield case("new dimensions", deep, (4, 5), shown="four dimensions")
    yield case("stretched ones", deep, (2, 1, 4, 1), shown="four dimensions")
    yield case("stretched ones", deep, (1, 3, 1, 5), shown="four dimensions")
    yield case("both, or neither", deep, (3, 1, 5), shown="four dimensions, both")
    yield case("both, or neither", draw.tensor((2, 3, 4)), (1, 1), shown="both")
    yield case("both, or neither", draw.tensor(()), (), shown="a single number")
    none = torch.zeros(0, 3)
    yield case("new dimensions", none, (3,), shown="a batch of nothing")
    yield case("stretched ones", none, (1, 3), shown="a batch of nothing")
    yield case("new dimensions", torch.zeros(2, 0), (0,), shown="rows of nothing")
    large = 1e8 + draw.tensor((1, 3), torch.float64)
    apart = torch.cat([large, -large.flip(1)])
    yield case("new dimensions", apart, (3,), shown="float64 sums of large numbers that cancel")
    for dtype in (torch.float16, torch.bfloat16):  # whole numbers: sums of them are exact
        grad = draw.tensor((2, 3, 4), torch.int64).to(dtype)
        yield case("new dimensions", grad, (4,), shown=str(dtype).removeprefix("torch."))
        yield case("both, or neither", grad, (3, 1), shown=str(dtype).removeprefix("torch."))
