"""Lab 02, exercise 8: LayerNorm, backwards"""

import torch

from hood.judge.checks.exercise import Case, Check

from .shared import BY_HAND, KINDS, SUMS, laid_out

layer_norm_vjp = Check(
    "layer_norm_vjp",
    parts={"bias": 1, "weight": 1, "input": 2},
    reads="LayerNorm: three ways to the loss",
    by_hand=BY_HAND,
    tolerance=SUMS,
)


@layer_norm_vjp.reference
def _(grad_output, x, weight, eps):
    x, weight = x.detach().requires_grad_(), weight.detach().requires_grad_()
    bias = torch.zeros_like(weight).requires_grad_()
    y = torch.nn.functional.layer_norm(x, weight.shape, weight, bias, eps)
    return torch.autograd.grad(y, (x, weight, bias), grad_output)


@layer_norm_vjp.cases
def _(draw):
    def each(upstream, x, weight, eps, shown=""):
        for place, part in enumerate(("input", "weight", "bias")):
            yield one(part, place, upstream, x, weight, eps, shown=shown)

    def one(part, place, *args, shown):
        return Case(part, lambda subject: subject(*args)[place], shown=shown)

    for k, (dtype, layout) in enumerate(KINDS):
        a, b, n = draw.shape(3, low=3, high=9)
        shape = (a, b, n) if k % 2 else (a, n)
        upstream, x = (laid_out(draw, shape, dtype, layout) for _ in range(2))
        yield from each(upstream, x, draw.tensor((n,), dtype), draw.choice((0.3, 0.5)))
    double = torch.float64
    for shown, shape, eps, far in (
        ("four dimensions", (2, 3, 2, 5), 0.3, 0.0),
        ("rows of 1", (3, 1), 0.5, 0.0),
        ("a batch of nothing", (0, 4), 0.3, 0.0),
        ("float64, rows far from 0, and a weight of 0", (3, 8), 1e-5, 1e7),
    ):
        x, weight = draw.tensor(shape, double) + far, draw.tensor(shape[-1:], double)
        weight[0] = 0.0
        yield from each(draw.tensor(shape, double), x, weight, eps, shown=shown)
    for shown, eps, size in (("a large eps", 20.0, 1.0), ("small rows, a small eps", 1e-10, 1e-4)):
        x, upstream = size * draw.tensor((3, 6), double), draw.tensor((3, 6), double)
        yield from each(upstream, x, draw.tensor((6,), double), eps, shown=shown)
    # the gradients are in the hundreds, and when they cancel, float32 is off by more than the tolerance
    constant = torch.tensor([[2.0], [0.0], [-4.0]], dtype=double).expand(3, 4)
    upstream, weight = draw.tensor((3, 4), double), draw.tensor((4,), double)
    yield from each(upstream, constant, weight, 1e-5, shown="constant rows")
