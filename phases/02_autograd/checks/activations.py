"""Lab 02, exercise 7: Two activations"""

from dataclasses import replace

import torch

from hood.judge.checks.exercise import Check, case

from .shared import BY_HAND, KINDS, SUMS, laid_out, whole

activations = Check(
    "activations",
    parts={"relu": 1, "relu at zero": 1, "softmax": 2},
    reads="Softmax: a Jacobian that nobody makes",
    # autograd can't differentiate a softmax of whole numbers, so the part `softmax` needs no rule
    by_hand=replace(BY_HAND, parts=frozenset({"relu", "relu at zero"})),
    tolerance=SUMS,
)


@activations.reference
class _:
    def relu_vjp(grad_output, x):
        x = x.detach().requires_grad_()
        return torch.autograd.grad(x.relu(), x, grad_output)[0]

    def softmax_vjp(grad_output, y):
        jacobian = torch.diag_embed(y) - y.unsqueeze(-1) * y.unsqueeze(-2)
        return torch.einsum("...i,...ij->...j", grad_output, jacobian)


@activations.cases
def _(draw):
    for dtype, layout in KINDS:
        shape = draw.shape(3)
        upstream, x = (laid_out(draw, shape, dtype, layout) for _ in range(2))
        yield case("relu", upstream, x, of="relu_vjp")
        zeros = draw.tensor(shape, dtype)
        zeros[..., ::2] = 0.0
        zeros[..., 0] = -0.0
        yield case("relu at zero", upstream, zeros, of="relu_vjp", shown="x with 0 and -0 in it")
        y = torch.softmax(2 * x, -1)
        yield case("softmax", upstream, y, of="softmax_vjp")
    tiny = torch.tensor([1e-30, -1e-30, 1e-7, -1e-7, 1e30, -1e30])
    yield case("relu", draw.tensor((6,)), tiny, of="relu_vjp", shown="x with numbers near 0 and far from 0")
    for shape in ((), (9,), (0, 3), (2, 3, 4, 5)):
        of = f"shape {shape}"
        yield case("relu", draw.tensor(shape), draw.tensor(shape), of="relu_vjp", shown=of)
        if shape:
            y = torch.softmax(draw.tensor(shape), -1)
            yield case("softmax", draw.tensor(shape), y, of="softmax_vjp", shown=of)
    yield case("softmax", draw.tensor((3, 1)), torch.ones(3, 1), of="softmax_vjp", shown="rows of 1")
    sure = torch.eye(4, dtype=torch.float64)[:3]
    upstream = draw.tensor((3, 4), torch.float64)
    yield case("softmax", upstream, sure, of="softmax_vjp", shown="probabilities of 0 and 1")
    y, large = torch.softmax(upstream, -1), 1e8 + upstream  # float32 loses all digits of `upstream`
    yield case("softmax", large, y, of="softmax_vjp", shown="float64, large gradients")
    for shape in ((4,), (3, 5), (2, 3, 4)):
        upstream, y = (whole(draw, shape, factors=3) for _ in range(2))
        yield case("softmax", upstream, y, of="softmax_vjp", shown="int64")
    square = torch.softmax(draw.tensor((4, 4)), -1)
    yield case("softmax", draw.tensor((4, 4)), square, of="softmax_vjp", shown="equal sizes")
