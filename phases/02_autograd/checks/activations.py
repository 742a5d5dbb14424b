"""Lab 02, exercise 7: Two activations"""

import torch

from utils.checks.exercise import Check, case

from .shared import BY_HAND, KINDS, SUMS, laid_out

activations = Check(
    "activations",
    parts={"relu": 1, "relu at zero": 1, "softmax": 2},
    reads="Softmax: a Jacobian that nobody makes",
    by_hand=BY_HAND,
    tolerance=SUMS,
)


@activations.reference
class _:
    def relu_vjp(grad_output, x):
        x = x.detach().requires_grad_()
        return torch.autograd.grad(x.relu(), x, grad_output)[0]

    def softmax_vjp(grad_output, y):
        x = y.detach().log().requires_grad_()
        return torch.autograd.grad(x.softmax(-1), x, grad_output)[0]


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
    yield case("relu", draw.tensor((6,)), tiny, of="relu_vjp", shown="x near 0, and far from it")
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
    y, large = torch.softmax(upstream, -1), 1e8 + upstream  # float32 has no digits left of it
    yield case("softmax", large, y, of="softmax_vjp", shown="float64, large gradients")
    square = torch.softmax(draw.tensor((4, 4)), -1)
    yield case("softmax", draw.tensor((4, 4)), square, of="softmax_vjp", shown="equal sizes")


@activations.misconception("open at zero", "at exactly 0 the gradient was let through.", earns=3)
class _:
    def relu_vjp(grad_output, x):
        return torch.where(x >= 0, grad_output, torch.zeros_like(grad_output))


@activations.misconception(
    "half open at zero", "at exactly 0 half of the gradient was let through.", earns=3
)
class _:
    def relu_vjp(grad_output, x):
        return grad_output * (torch.sign(x) + 1) / 2


@activations.misconception(
    "written into the incoming gradient",
    "the incoming gradient itself was changed; others may still have to read it.",
    earns=2,
)
class _:
    def relu_vjp(grad_output, x):
        grad_output[x <= 0] = 0
        return grad_output


@activations.misconception(
    "relu with its upstream dropped", "relu's own derivative, 0 or 1, was returned alone.", earns=2
)
class _:
    def relu_vjp(grad_output, x):
        return (x > 0).to(x.dtype)


@activations.misconception(
    "relu of the gradient",
    "relu was applied to the incoming gradient; the sign of the input decides, not that of the "
    "gradient.",
    earns=2,
)
class _:
    def relu_vjp(grad_output, x):
        return grad_output.clamp(min=0)


@activations.misconception(
    "relu of the gradient where x is above 0",
    "incoming gradients below 0 are gone as well, where only the sign of the input decides.",
    earns=2,
)
class _:
    def relu_vjp(grad_output, x):
        return torch.where(x > 0, grad_output.clamp(min=0), torch.zeros_like(grad_output))


@activations.misconception(
    "the sign bit",
    "the gradient was let through at 0 and held back at -0, as where the sign bit is asked.",
    earns=3,
)
class _:
    def relu_vjp(grad_output, x):
        return torch.where(torch.signbit(x), torch.zeros_like(grad_output), grad_output)


@activations.misconception(
    "diagonal only",
    "each output was differentiated for its own input alone; it moves with the whole row.",
    earns=2,
)
class _:
    def softmax_vjp(grad_output, y):
        return grad_output * y * (1 - y)


@activations.misconception(
    "softmax with upstream ones",
    "nothing arrives but rounding, as where the incoming gradient is taken to be 1 everywhere.",
    earns=2,
)
class _:
    def softmax_vjp(grad_output, y):
        return y * (1 - y.sum(-1, keepdim=True))


@activations.misconception(
    "gradients summed unweighted",
    "the row's number is a plain sum of the incoming gradients; each counts as much as its "
    "probability.",
    earns=2,
)
class _:
    def softmax_vjp(grad_output, y):
        return y * (grad_output - grad_output.sum(-1, keepdim=True) * y)


@activations.misconception(
    "gradients summed unweighted, and not times y",
    "a plain sum of the incoming gradients was taken away; each counts as much as its probability.",
    earns=2,
)
class _:
    def softmax_vjp(grad_output, y):
        return y * (grad_output - grad_output.sum(-1, keepdim=True))


@activations.misconception(
    "a mean for the row's sum",
    "the products of gradients and probabilities were averaged over the row, not summed.",
    earns=2,
)
class _:
    def softmax_vjp(grad_output, y):
        return y * (grad_output - (grad_output * y).mean(-1, keepdim=True))


@activations.misconception(
    "one sum for all rows",
    "the sum runs over the whole tensor; each row is a softmax of its own.",
    earns=2,
)
class _:
    def softmax_vjp(grad_output, y):
        return y * (grad_output - (grad_output * y).sum())


@activations.misconception(
    "sum over the wrong dimension",
    "the sum runs over the first dimension, and the softmax over the last.",
    earns=2,
)
class _:
    def softmax_vjp(grad_output, y):
        return y * (grad_output - (grad_output * y).sum(0, keepdim=True))


@activations.misconception(
    "sum over dimension 1",
    "the sum runs over dimension 1, and the softmax over the last.",
    earns=2,
)
class _:
    def softmax_vjp(grad_output, y):
        return y * (grad_output - (grad_output * y).sum(min(1, y.dim() - 1), keepdim=True))


@activations.misconception(
    "softmax once more",
    "the softmax was taken of what is its output already.",
    earns=2,
)
class _:
    def softmax_vjp(grad_output, y):
        y = torch.exp(y) / torch.exp(y).sum(-1, keepdim=True)
        return y * (grad_output - (grad_output * y).sum(-1, keepdim=True))


@activations.misconception(
    "log softmax", "this is what a log softmax sends back, not a softmax.", earns=2
)
class _:
    def softmax_vjp(grad_output, y):
        return grad_output - y * grad_output.sum(-1, keepdim=True)


@activations.misconception(
    "sign turned round", "the gradient of the softmax has the opposite sign.", earns=2
)
class _:
    def softmax_vjp(grad_output, y):
        return y * ((grad_output * y).sum(-1, keepdim=True) - grad_output)


@activations.alternate("a mask, and the whole Jacobian after all")
class _:
    def relu_vjp(grad_output, x):
        return grad_output * (x > 0)

    def softmax_vjp(grad_output, y):
        jacobian = torch.diag_embed(y) - y[..., :, None] * y[..., None, :]
        return (jacobian @ grad_output[..., None])[..., 0]


activations.equivalent(
    ("torch.zeros_like(grad_output)", "torch.zeros_like(x)"),
    because="x and its gradient have one shape and one dtype",
)
activations.equivalent(
    ("y[..., :, None]", "y[..., None]"),
    ("y[..., :, None]", "y[:, ..., None]"),
    ("[..., None])[..., 0]", "[..., None])[..., -1]"),
    because="the same tensor, indexed in another way",
)
