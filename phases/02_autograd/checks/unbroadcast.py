"""Lab 02, exercise 4: Back to the shape it came from"""

import torch

from utils.checks.exercise import Check, case, edited

from .shared import BY_HAND, KINDS, SUMS, laid_out

unbroadcast = Check(
    "unbroadcast",
    parts={"new dimensions": 1, "stretched ones": 1, "both, or neither": 1},
    reads="Broadcasting's adjoint is a sum",
    by_hand=BY_HAND,
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


def _unbroadcast(grad, shape):
    while grad.dim() > len(shape):
        grad = grad.sum(0)
    for dim, size in enumerate(shape):
        if size == 1:
            grad = grad.sum(dim, keepdim=True)
    return grad


unbroadcast.misconception(
    "a mean for a sum",
    "the result is the mean over all readers, where it should be the sum.",
    earns=0,
)(edited(_unbroadcast, ("grad.sum(0)", "grad.mean(0)"), ("grad.sum(dim", "grad.mean(dim")))


@unbroadcast.misconception(
    "stretched dimensions dropped",
    "the dimensions of size 1 are gone from the result, where they should have stayed.",
    earns=1,
)
def _(grad, shape):
    while grad.dim() > len(shape):
        grad = grad.sum(0)
    ones = [dim for dim, size in enumerate(shape) if size == 1]
    return grad.sum(ones) if ones else grad


@unbroadcast.misconception(
    "only the new dimensions",
    "dimensions that were stretched from size 1 have kept their stretched size.",
    earns=1,
)
def _(grad, shape):
    while grad.dim() > len(shape):
        grad = grad.sum(0)
    return grad


unbroadcast.misconception(
    "one reader for all",
    "the result is the gradient of the first reader; those of the others are not in it.",
    earns=0,
)(
    edited(
        _unbroadcast,
        ("grad.sum(0)", "grad[0]"),
        ("grad.sum(dim, keepdim=True)", "grad.narrow(dim, 0, 1)"),
    )
)  # fmt: skip


@unbroadcast.misconception(
    "a sum over no dimensions",
    "where no dimension is new, the result is what `sum` makes with an empty list of dimensions: "
    "it sums over all.",
    earns=1,
)
def _(grad, shape):
    grad = grad.sum(tuple(range(grad.dim() - len(shape))))
    for dim, size in enumerate(shape):
        if size == 1:
            grad = grad.sum(dim, keepdim=True)
    return grad


@unbroadcast.misconception(
    "a sum over no dimensions at all",
    "where nothing was broadcast, the result is what `sum` makes with an empty list of "
    "dimensions: it sums over all.",
    earns=2,
)
def _(grad, shape):
    padded = (1,) * (grad.dim() - len(shape)) + tuple(shape)
    dims = [d for d, size in enumerate(padded) if size != grad.size(d)]
    return grad.sum(dims, keepdim=True).reshape(shape)


unbroadcast.misconception(
    "everything summed where nothing was broadcast",
    "where nothing was broadcast, the whole gradient came out as one sum.",
    earns=2,
)(
    edited(
        _unbroadcast,
        ("""    while""",
         """    if grad.shape == shape:
        return grad.sum()
    while"""),
    )
)  # fmt: skip
unbroadcast.misconception(
    "dimensions that move while they are summed",
    "the wrong dimensions are gone, as where 0, 1, … are summed one after another: once the "
    "first is gone, the others have moved up.",
    earns=2,
)(
    edited(
        _unbroadcast,
        ("while grad.dim() > len(shape):", "for dim in range(grad.dim() - len(shape)):"),
        ("grad.sum(0)", "grad.sum(dim)"),
    )
)  # fmt: skip
unbroadcast.misconception(
    "one new dimension at most",
    "one dimension is gone in front; broadcasting may have added several.",
    earns=2,
)(edited(_unbroadcast, ("while", "if")))
unbroadcast.misconception(
    "stretched dimensions averaged",
    "over the stretched dimensions the result is a mean, where it should be the sum.",
    earns=1,
)(edited(_unbroadcast, ("grad.sum(dim", "grad.mean(dim")))


@unbroadcast.misconception(
    "the first stretched dimension only",
    "of several stretched dimensions only the first was summed.",
    earns=1,
)
def _(grad, shape):
    while grad.dim() > len(shape):
        grad = grad.sum(0)
    for dim, size in enumerate(shape):
        if grad.size(dim) != size:
            return grad.sum(dim, keepdim=True)
    return grad


@unbroadcast.misconception(
    "new dimensions behind",
    "the last dimensions are gone; broadcasting puts new ones in front.",
    earns=1,
)
def _(grad, shape):
    for dim, size in enumerate(shape):
        if size == 1:
            grad = grad.sum(dim, keepdim=True)
    while grad.dim() > len(shape):
        grad = grad.sum(-1)
    return grad


unbroadcast.equivalent(
    ("grad.dim() > len(shape)", "grad.dim() != len(shape)"),
    because="broadcasting takes no dimension away",
)
unbroadcast.equivalent(
    ("size == 1 and grad.size(dim) != 1", "size == 1"), because="a sum over one entry is that entry"
)
unbroadcast.equivalent(
    ("grad.sum(dims, keepdim=True)", "grad.sum(dims)"),
    ("keepdim=True", "keepdim=False"),
    because="it is reshaped at the end",
    of="all dimensions at once",
)


@unbroadcast.alternate("all dimensions at once")
def _(grad, shape):
    padded = (1,) * (grad.dim() - len(shape)) + tuple(shape)
    dims = [d for d, size in enumerate(padded) if size != grad.size(d)]
    return (grad.sum(dims, keepdim=True) if dims else grad).reshape(shape)
