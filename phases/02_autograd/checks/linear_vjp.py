"""Lab 02, exercise 5: The linear layer, backwards"""

import torch

from utils.checks.exercise import Case, Check, case

from .shared import BY_HAND, KINDS, SUMS, laid_out

linear_vjp = Check(
    "linear_vjp",
    parts={"input": 1, "weight": 1, "bias": 1, "batches of sequences": 1},
    reads="A layer only has to know one product",
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


@linear_vjp.misconception(
    "bias without its sum",
    "the gradient of the bias has one row for each example, where the rows should be summed.",
    earns=2,
)
def _(grad_output, x, weight):
    rows = grad_output.flatten(0, -2)
    return grad_output @ weight, rows.T @ x.flatten(0, -2), grad_output


@linear_vjp.misconception(
    "bias averaged", "the gradient of the bias is a mean over the batch.", earns=2
)
def _(grad_output, x, weight):
    rows = grad_output.flatten(0, -2)
    return grad_output @ weight, rows.T @ x.flatten(0, -2), rows.mean(0)


@linear_vjp.misconception(
    "weight transposed", "the gradient of the weight is (in, out), and the weight is (out, in).",
    earns=2,
)  # fmt: skip
def _(grad_output, x, weight):
    rows = grad_output.flatten(0, -2)
    return grad_output @ weight, x.flatten(0, -2).T @ rows, rows.sum(0)


@linear_vjp.misconception(
    "upstream of ones",
    "the incoming gradient was not used: the result is that of a plain sum of the outputs.",
    earns=0,
)
def _(grad_output, x, weight):
    ones = torch.ones_like(grad_output)
    rows = ones.flatten(0, -2)
    return ones @ weight, rows.T @ x.flatten(0, -2), rows.sum(0)


@linear_vjp.misconception(
    "matrices only",
    "a batch of sequences does not fit: the same operations work on two dimensions alone.",
    earns=3,
)
def _(grad_output, x, weight):
    return grad_output @ weight, grad_output.transpose(0, 1) @ x, grad_output.sum(0)


@linear_vjp.misconception(
    "multiplied by the transpose",
    "the incoming gradient does not fit what it was multiplied by; the transposed weight, which "
    "the forward pass takes, would not.",
    earns=0,
)
def _(grad_output, x, weight):
    rows = grad_output.flatten(0, -2)
    return grad_output @ weight.T, rows.T @ x.flatten(0, -2), rows.sum(0)


@linear_vjp.misconception(
    "float64 whatever comes in", "the results are float64, whatever dtype came in.", earns=0
)
def _(grad_output, x, weight):
    rows, x = grad_output.double().flatten(0, -2), x.double()
    grad_x = grad_output.double() @ weight.double()
    return grad_x, rows.T @ x.flatten(0, -2), rows.sum(0)


@linear_vjp.alternate("einsum")
def _(grad_output, x, weight):
    return (
        torch.einsum("...o,oi->...i", grad_output, weight),
        torch.einsum("...o,...i->oi", grad_output, x),
        torch.einsum("...o->o", grad_output),
    )
