"""Lab 02, exercise 5: The linear layer, backwards"""

import torch

from hood.judge.checks.exercise import Case, Check, case

from .shared import BY_HAND, KINDS, SUMS, laid_out

linear_vjp = Check(
    "linear_vjp",
    parts={"input": 1, "weight": 1, "bias": 1, "batches of sequences": 1},
    reads="A layer only has to know one product",
    reads_by_part={"bias": "Broadcasting's adjoint is a sum"},
    by_hand=BY_HAND,
    tolerance=SUMS,
)


@linear_vjp.reference
def _(grad_output, x, weight):
    x, weight = x.detach().requires_grad_(), weight.detach().requires_grad_()
    bias = torch.zeros_like(weight[:, 0]).requires_grad_()
    return torch.autograd.grad(
        torch.nn.functional.linear(x, weight, bias), (x, weight, bias), grad_output
    )


@linear_vjp.cases
def _(draw):
    def one(part, place, *args, shown):
        return Case(part, lambda subject: subject(*args)[place], shown=shown)

    def flat(draw, n, i, o, dtype=torch.float32, layout="contiguous", shown=""):
        weight = draw.tensor((o, i), dtype)
        args = *(laid_out(draw, (n, k), dtype, layout) for k in (o, i)), weight
        for place, part in enumerate(("input", "weight", "bias")):
            yield one(part, place, *args, shown=shown)

    def deep(draw, rows, i, o, dtype=torch.float32, layout="contiguous", shown=""):
        weight = draw.tensor((o, i), dtype, "contiguous" if layout == "expanded" else layout)
        args = *(laid_out(draw, (*rows, k), dtype, layout) for k in (o, i)), weight
        return case("batches of sequences", *args, places=places, shown=shown)

    places = {
        f"[{k}]": f"the gradient for `{name}`" for k, name in enumerate(("x", "weight", "bias"))
    }
    for dtype, layout in KINDS:
        n, t, i, o = draw.shape(4)
        yield from flat(draw, n, i, o, dtype, layout)
        yield deep(draw, (n, t), i, o, dtype, layout)
    n, t, i, o = draw.shape(4)
    yield from flat(draw, n, i, i, shown="as many outputs as inputs")
    yield from flat(draw, 1, i, o, shown="a single row")
    yield from flat(draw, n, 1, 1, shown="one input, one output")
    yield deep(draw, (n, t), i, i, shown="as many outputs as inputs")
    yield deep(draw, (2, 1, 3), i, o, shown="four dimensions")
    yield deep(draw, (1, 1), i, o, shown="a single row")
    yield deep(draw, (0, t), i, o, shown="a batch of nothing")
