"""Lab 02, exercise 10: A function that autograd can call"""

import torch

from hood.judge.checks.exercise import ByHand, Case, Check

from .shared import FLOATS, KINDS, SUMS, laid_out, sum_to

run_softmax = Check(
    "run_softmax",
    parts={"forward": 1, "backward": 1, "backward of backward": 1},
    reads="A Function of your own",
    tolerance=SUMS,
    by_hand=ByHand(
        "the exercise is to teach autograd your own softmax, not to call torch's",
        forbid_ops=frozenset({"aten._softmax", "aten._softmax_backward_data", "aten._log_softmax"}),
        # operators are watched only if they get the input itself, and not a difference or a copy of
        # the input
        forbid_names=frozenset(
            {
                "*softmax*",
                "*Softmax*",
                "softmin",
                "Softmin",
                "*cross_entropy*",
                "CrossEntropyLoss",
                "*attention*",
                "*Attention*",
                "*Transformer*",
                "torch.distributions",
            }
        ),
    ),
)


@run_softmax.reference
def _(x, grad_output, direction=None):
    x = x.detach().requires_grad_()
    upstream = grad_output.detach().requires_grad_()
    y = torch.softmax(x, -1)
    (first,) = torch.autograd.grad(y, x, upstream, create_graph=True)
    found = {"node": "SoftmaxBackward", "output": y.detach(), "gradient": first.detach()}
    if direction is not None:
        found["of x"], found["of upstream"] = torch.autograd.grad(first, (x, upstream), direction)
    return found


@run_softmax.cases
def _(draw):
    def look(part, names, *args, shown=""):
        def play(subject):
            found = subject(*args)
            found = found | {"rows": sum_to(1, found["output"], SUMS)}
            # the node of a Function has the name of its class; names of autograd's own nodes end in 0
            is_a_function = {"node": found["node"].endswith("Backward")}
            return [(found | is_a_function)[name] for name in names]

        places = {f"[{k}]": told[name] for k, name in enumerate(names)}
        return Case(part, play, places=places, shown=shown)

    def along(x, upstream):
        """The sum of each row of the gradient. It should be 0. In float32, its error is too large."""

        def play(subject):
            return subject(x, upstream)["gradient"].sum(-1)

        shown = "large float64 gradients: the result of backward, summed over each row"
        return Case("backward", play, shown=shown)

    told = {
        "node": "the output does not come from your own Function.",
        "rows": "a row of the output does not sum to 1.",
        "output": "the output",
        "gradient": "the gradient for `x`",
        "of x": "the gradient of the gradient, with respect to `x`",
        "of upstream": "the gradient of the gradient, with respect to the incoming gradient",
    }
    for dtype, layout in KINDS:
        shape = draw.shape(3)
        x, upstream, direction = (laid_out(draw, shape, dtype, layout) for _ in range(3))
        yield look("forward", ("node", "rows", "output"), x, upstream)
        yield look("backward", ("node", "gradient"), x, upstream)
        if layout in ("transposed", "sliced"):
            yield look("backward of backward", ("of x", "of upstream"), x, upstream, direction)
    for shape in ((5,), (4, 4), (3, 1), (2, 3, 2, 4), (0, 3)):
        x, upstream, direction = (draw.tensor(shape, torch.float64) for _ in range(3))
        yield look("forward", ("node", "rows", "output"), x, upstream)
        yield look("backward", ("node", "gradient"), x, upstream)
        if shape not in ((4, 4), (3, 1)):
            yield look("backward of backward", ("of x", "of upstream"), x, upstream, direction)
    steps = torch.arange(5.0)
    levels = torch.stack([1000 + steps, -1000 - steps, 1000 * (steps - 2), 0 * steps, steps])
    for dtype in FLOATS:
        x, upstream = levels.to(dtype), draw.tensor((5, 5), dtype)
        yield look("forward", ("rows", "output"), x, upstream, shown="rows at different levels")
        yield look("backward", ("gradient",), x, upstream, shown="rows at different levels")
    yield along(draw.tensor((3, 5), torch.float64), 1e6 * draw.tensor((3, 5), torch.float64))


MAX, BACK = "x.amax(-1, keepdim=True)", "y * (grad_output - (y * grad_output).sum(-1, keepdim=True))"
