"""Lab 02, exercise 8: LayerNorm, backwards"""

import torch

from utils.checks.exercise import Case, Check, edited

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
    constant = torch.tensor([[2.0], [0.0], [-4.0]]).expand(3, 4)
    yield from each(draw.tensor((3, 4)), constant, draw.tensor((4,)), 1e-5, shown="constant rows")


def _layer_norm_vjp(grad_output, x, weight, eps):
    centred = x - x.mean(-1, keepdim=True)
    scale = (centred.square().mean(-1, keepdim=True) + eps).rsqrt()
    normed = centred * scale
    g = grad_output * weight
    grad_x = g - g.mean(-1, keepdim=True) - normed * (g * normed).mean(-1, keepdim=True)
    grad_weight = (grad_output * normed).flatten(0, -2).sum(0)
    return scale * grad_x, grad_weight, grad_output.flatten(0, -2).sum(0)


layer_norm_vjp.misconception(
    "mean and variance taken for constants",
    "the gradient has what comes the straight way from `x` alone; mean and variance move with "
    "it.",
    earns=2,
)(
    edited(
        _layer_norm_vjp,
        ("g - g.mean(-1, keepdim=True) - normed * (g * normed).mean(-1, keepdim=True)", "g"),
    )
)  # fmt: skip
layer_norm_vjp.misconception(
    "variance taken for a constant",
    "the gradient lacks what comes by way of the variance.",
    earns=2,
)(edited(_layer_norm_vjp, (" - normed * (g * normed).mean(-1, keepdim=True)", "")))
layer_norm_vjp.misconception(
    "mean taken for a constant",
    "the gradient lacks what comes by way of the mean.",
    earns=2,
)(edited(_layer_norm_vjp, ("g - g.mean(-1, keepdim=True)", "g")))
layer_norm_vjp.misconception(
    "weight left out on the way to x",
    "what arrives at the normed row was not multiplied by the weight.",
    earns=2,
)(edited(_layer_norm_vjp, ("g = grad_output * weight", "g = grad_output")))
layer_norm_vjp.misconception(
    "summed over the first dimension only",
    "the gradients of weight and bias are summed over the first dimension alone; a batch of "
    "sequences has two.",
    earns=2,
)(
    edited(
        _layer_norm_vjp,
        ("(grad_output * normed).flatten(0, -2).sum(0)", "(grad_output * normed).sum(0)"),
        ("grad_output.flatten(0, -2).sum(0)", "grad_output.sum(0)"),
    )
)  # fmt: skip
layer_norm_vjp.misconception(
    "mean over the wrong dimension",
    "the means run over the first dimension, that of a batch norm.",
    earns=1,
)(
    edited(
        _layer_norm_vjp,
        ("x.mean(-1, keepdim=True)", "x.mean(0, keepdim=True)"),
        ("centred.square().mean(-1, keepdim=True)", "centred.square().mean(0, keepdim=True)"),
        ("g.mean(-1, keepdim=True)", "g.mean(0, keepdim=True)"),
        ("(g * normed).mean(-1, keepdim=True)", "(g * normed).mean(0, keepdim=True)"),
    )
)  # fmt: skip
layer_norm_vjp.misconception(
    "variance divided by n - 1",
    "the variance was divided by n - 1, `var`'s default.",
    earns=1,
)(edited(_layer_norm_vjp, ("centred.square().mean(-1, keepdim=True)", "x.var(-1, keepdim=True)")))
layer_norm_vjp.misconception(
    "eps outside of the root",
    "eps was added to the deviation, after the root; it belongs to the variance, below it.",
    earns=1,
)(
    edited(
        _layer_norm_vjp,
        ("(centred.square().mean(-1, keepdim=True) + eps).rsqrt()",
         "1 / (centred.square().mean(-1, keepdim=True).sqrt() + eps)"),
    )
)  # fmt: skip
layer_norm_vjp.misconception(
    "not divided by the deviation",
    "both corrections are there, and the division by the deviation is not.",
    earns=2,
)(edited(_layer_norm_vjp, ("scale * grad_x", "grad_x")))
layer_norm_vjp.misconception(
    "mean of the incoming gradient",
    "the mean that was taken away is that of the incoming gradient, before the weight.",
    earns=2,
)(edited(_layer_norm_vjp, ("g.mean(-1, keepdim=True)", "grad_output.mean(-1, keepdim=True)")))
layer_norm_vjp.misconception(
    "both means of the incoming gradient",
    "both corrections were made with the incoming gradient, before the weight.",
    earns=2,
)(
    edited(
        _layer_norm_vjp,
        ("g.mean(-1, keepdim=True)", "grad_output.mean(-1, keepdim=True)"),
        ("(g * normed).mean(-1, keepdim=True)", "(grad_output * normed).mean(-1, keepdim=True)"),
    )
)  # fmt: skip
layer_norm_vjp.misconception(
    "eps left out", "the variance was used without eps, which need not be small.", earns=1
)(edited(_layer_norm_vjp, (" + eps", "")))
layer_norm_vjp.misconception(
    "eps of its own", "the results are those of an eps of 1e-5, whatever eps is.", earns=1
)(edited(_layer_norm_vjp, ("+ eps", "+ 1e-5")))
layer_norm_vjp.misconception(
    "eps squared", "the square of eps was added to the variance.", earns=1
)(edited(_layer_norm_vjp, ("+ eps", "+ eps**2")))
layer_norm_vjp.misconception(
    "weight multiplied last",
    "the weight was multiplied into the result, after both corrections; it is in what arrives at "
    "the normed row, of which they are made.",
    earns=2,
)(
    edited(
        _layer_norm_vjp,
        ("g = grad_output * weight", "g = grad_output"),
        ("scale * grad_x", "scale * grad_x * weight"),
    )
)  # fmt: skip
layer_norm_vjp.misconception(
    "all that lies along the normed row",
    "all of g that points along the normed row was taken away; because of eps a part of it stays.",
    earns=2,
)(
    edited(
        _layer_norm_vjp,
        ("(g * normed).mean(-1, keepdim=True)",
         "(g * normed).sum(-1, keepdim=True) / normed.square().sum(-1, keepdim=True)"),
    )
)  # fmt: skip
layer_norm_vjp.misconception(
    "all that lies along the normed row, 0 where there is none",
    "all of g that points along the normed row was taken away; because of eps a part of it stays.",
    earns=2,
)(
    edited(
        _layer_norm_vjp,
        ("(g * normed).mean(-1, keepdim=True)",
         "(g * normed).sum(-1, keepdim=True) / normed.square().sum(-1, keepdim=True).clamp(1e-30)"),
    )
)  # fmt: skip
layer_norm_vjp.misconception(
    "float64 by way of float32",
    "float64 was rounded to float32 on the way, as `.float()` does: of rows far from 0 too few "
    "digits are left.",
    earns=1,
)(
    edited(
        _layer_norm_vjp,
        ("    centred = x -",
         "    dtype = x.dtype\n    grad_output, x = (grad_output.float(), x.float())\n"
         "    weight = weight.float()\n    centred = x -"),
        ("return (scale * grad_x, grad_weight, grad_output.flatten(0, -2).sum(0))",
         "found = (scale * grad_x, grad_weight, grad_output.flatten(0, -2).sum(0))\n"
         "    return tuple((t.to(dtype) for t in found))"),
    )
)  # fmt: skip
layer_norm_vjp.misconception(
    "a sum for the mean along the row",
    "the products of g and the normed row were summed over the row, not averaged.",
    earns=2,
)(edited(_layer_norm_vjp, ("(g * normed).mean(-1, keepdim=True)", "(g * normed).sum(-1, keepdim=True)")))
layer_norm_vjp.misconception(
    "no mean along the row",
    "the products of g and the normed row were used one by one, not averaged over the row.",
    earns=2,
)(edited(_layer_norm_vjp, ("(g * normed).mean(-1, keepdim=True)", "(g * normed)")))
layer_norm_vjp.misconception(
    "divided by the variance",
    "the gradient for `x` was divided by the variance, the square of the deviation.",
    earns=2,
)(edited(_layer_norm_vjp, ("scale * grad_x", "scale**2 * grad_x")))
layer_norm_vjp.misconception(
    "x for the normed row",
    "the gradient of the weight was made with `x` itself, neither centred nor scaled.",
    earns=3,
)(edited(_layer_norm_vjp, ("(grad_output * normed)", "(grad_output * x)")))
layer_norm_vjp.misconception(
    "the centred row for the normed one",
    "the gradient of the weight was made with a row that is centred and not scaled.",
    earns=3,
)(edited(_layer_norm_vjp, ("(grad_output * normed)", "(grad_output * centred)")))
layer_norm_vjp.misconception(
    "the weight in the bias",
    "the gradient of the bias has the weight in it; the bias is added after the weight.",
    earns=3,
)(edited(_layer_norm_vjp, ("grad_output.flatten(0, -2).sum(0)", "g.flatten(0, -2).sum(0)")))
layer_norm_vjp.misconception(
    "averaged over the rows",
    "the gradients of weight and bias are means over the rows, where they should be sums.",
    earns=2,
)(
    edited(
        _layer_norm_vjp,
        ("(grad_output * normed).flatten(0, -2).sum(0)", "(grad_output * normed).flatten(0, -2).mean(0)"),
        ("grad_output.flatten(0, -2).sum(0)", "grad_output.flatten(0, -2).mean(0)"),
    )
)  # fmt: skip
layer_norm_vjp.equivalent(
    ("n = x.shape[-1]", "n = grad_output.shape[-1]"),
    ("n = x.shape[-1]", "n = weight.shape[-1]"),
    ("range(x.dim() - 1)", "range(grad_output.dim() - 1)"),
    because="they agree in these sizes",
)


@layer_norm_vjp.alternate("one way after the other")
def _(grad_output, x, weight, eps):
    n = x.shape[-1]
    centred = x - x.mean(-1, keepdim=True)
    deviation = torch.sqrt(x.var(-1, keepdim=True, correction=0) + eps)
    g = grad_output * weight
    to_variance = (g * centred).sum(-1, keepdim=True) * -0.5 / deviation**3
    to_mean = (-g / deviation).sum(-1, keepdim=True)
    grad_x = g / deviation + to_variance * 2 * centred / n + to_mean / n
    rows = list(range(x.dim() - 1))
    return grad_x, (grad_output * centred / deviation).sum(rows), grad_output.sum(rows)
