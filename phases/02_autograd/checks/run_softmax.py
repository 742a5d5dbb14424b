"""Lab 02, exercise 10: A function that autograd can call"""

import torch

from utils.checks import ByHand, Case, Check, edited

from .shared import FLOATS, KINDS, SUMS, laid_out

run_softmax = Check(
    "run_softmax",
    parts={"forward": 1, "backward": 1, "backward of backward": 1},
    reads="A Function of your own",
    tolerance=SUMS,
    by_hand=ByHand(
        "the exercise is to teach autograd your softmax, not to hand it torch's",
        forbid_ops=frozenset({"aten._softmax", "aten._softmax_backward_data", "aten._log_softmax"}),
        # ops are watched on the input alone: a difference or a copy of it is a new tensor
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
    def look(part, names, *args):
        def play(subject):
            found = subject(*args)
            # autograd calls a Function by its class, and its own nodes by a name that ends in 0
            is_a_function = {"node": found["node"].endswith("Backward")}
            return [(found | is_a_function)[name] for name in names]

        return Case(part, play, places={f"[{k}]": told[name] for k, name in enumerate(names)})

    told = {
        "node": "the output does not come from a Function of your own.",
        "output": "the output",
        "gradient": "the gradient for `x`",
        "of x": "the gradient of the gradient, with respect to `x`",
        "of upstream": "the gradient of the gradient, with respect to the incoming gradient",
    }
    for dtype, layout in KINDS:
        shape = draw.shape(3)
        x, upstream, direction = (laid_out(draw, shape, dtype, layout) for _ in range(3))
        yield look("forward", ("node", "output"), x, upstream)
        yield look("backward", ("node", "gradient"), x, upstream)
        yield look("backward of backward", ("of x", "of upstream"), x, upstream, direction)
    for shape in ((5,), (4, 4), (3, 1), (2, 3, 2, 4), (0, 3)):
        x, upstream, direction = (draw.tensor(shape, torch.float64) for _ in range(3))
        yield look("forward", ("node", "output"), x, upstream)
        yield look("backward", ("node", "gradient"), x, upstream)
        yield look("backward of backward", ("of x", "of upstream"), x, upstream, direction)
    steps = torch.arange(5.0)
    levels = torch.stack([1000 + steps, -1000 - steps, 1000 * (steps - 2), 0 * steps, steps])
    for dtype in FLOATS:
        yield look("forward", ("output",), levels.to(dtype), draw.tensor((5, 5), dtype))


def _run_softmax(x, grad_output, direction=None):
    class Softmax(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            e = torch.exp(x - x.amax(-1, keepdim=True))
            y = e / e.sum(-1, keepdim=True)
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, grad_output):
            y = ctx.saved_tensors[0]
            return y * (grad_output - (y * grad_output).sum(-1, keepdim=True))

    x = x.detach().requires_grad_()
    upstream = grad_output.detach().requires_grad_()
    y = Softmax.apply(x)
    (first,) = torch.autograd.grad(y, x, upstream, create_graph=True)
    found = {"node": y.grad_fn.name(), "output": y.detach(), "gradient": first.detach()}
    if direction is not None:
        found["of x"], found["of upstream"] = torch.autograd.grad(first, (x, upstream), direction)
    return found


run_softmax.misconception(
    "torch's own softmax",
    "forward gives what torch's softmax gives, node and all; it was to be computed here.",
    earns=0,
)(
    edited(
        _run_softmax,
        ("""            e = torch.exp(x - x.amax(-1, keepdim=True))
            y = e / e.sum(-1, keepdim=True)
""",
         """            y = torch.softmax(x, -1)
"""),
    )
)  # fmt: skip
run_softmax.misconception(
    "torch's own log softmax",
    "forward goes by way of torch's log softmax.",
    earns=0,
)(
    edited(
        _run_softmax,
        ("""            e = torch.exp(x - x.amax(-1, keepdim=True))
            y = e / e.sum(-1, keepdim=True)
""",
         """            y = torch.nn.functional.log_softmax(x, -1).exp()
"""),
    )
)  # fmt: skip
run_softmax.misconception(
    "cut off from x",
    "backward cannot be differentiated with respect to x: something in it is cut off from the graph "
    "(a detach, a .data, a saved tensor that forward neither got nor returned), or it is marked "
    "once_differentiable.",
    earns=2,
)(edited(_run_softmax, ("y = ctx.saved_tensors[0]", "y = ctx.saved_tensors[0].detach()")))
run_softmax.misconception(
    "cut off from the incoming gradient",
    "backward cannot be differentiated with respect to the incoming gradient: it is detached, or "
    "its numbers are read past autograd.",
    earns=2,
)(
    edited(
        _run_softmax,
        ("y = ctx.saved_tensors[0]",
         "y, grad_output = ctx.saved_tensors[0], grad_output.detach()"),
    )
)  # fmt: skip
run_softmax.misconception(
    "result of backward detached",
    "what backward returns was cut off from the graph as a whole, so nothing of it can be "
    "differentiated again.",
    earns=2,
)(
    edited(
        _run_softmax,
        ("y * (grad_output - (y * grad_output).sum(-1, keepdim=True))",
         "(y * (grad_output - (y * grad_output).sum(-1, keepdim=True))).detach()"),
    )
)  # fmt: skip
run_softmax.misconception(
    "maximum left in", "large inputs overflow in the exponential and come out as NaN.", earns=2
)(edited(_run_softmax, ("x - x.amax(-1, keepdim=True)", "x")))
run_softmax.misconception(
    "diagonal only",
    "backward differentiates each output for its own input alone; it moves with the whole row.",
    earns=1,
)(
    edited(
        _run_softmax,
        ("y * (grad_output - (y * grad_output).sum(-1, keepdim=True))",
         "grad_output * y * (1 - y)"),
    )
)  # fmt: skip
run_softmax.misconception(
    "input saved for output",
    "backward computes with the input where the output belongs.",
    earns=1,
)(edited(_run_softmax, ("ctx.save_for_backward(y)", "ctx.save_for_backward(x)")))
run_softmax.alternate("the input saved, the softmax computed again")(
    edited(
        _run_softmax,
        ("""            e = torch.exp(x - x.amax(-1, keepdim=True))
            y = e / e.sum(-1, keepdim=True)
            ctx.save_for_backward(y)
            return y
""",
         """            ctx.save_for_backward(x)
            return torch.exp(x - torch.logsumexp(x, -1, keepdim=True))
"""),
        ("""            y = ctx.saved_tensors[0]
""",
         """            x = ctx.saved_tensors[0]
            y = torch.exp(x - torch.logsumexp(x, -1, keepdim=True))
"""),
    )
)  # fmt: skip


@run_softmax.alternate("the output kept as an attribute")
def _(x, grad_output, direction=None):
    class Softmax(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            e = torch.exp(x - x.max(-1, keepdim=True).values)
            ctx.y = e / e.sum(-1, keepdim=True)
            return ctx.y

        @staticmethod
        def backward(ctx, grad_output):
            weighted = ctx.y * grad_output
            return weighted - ctx.y * weighted.sum(-1, keepdim=True)

    x = x.detach().requires_grad_()
    upstream = grad_output.detach().requires_grad_()
    y = Softmax.apply(x)
    (first,) = torch.autograd.grad(y, x, upstream, create_graph=True)
    found = {"node": y.grad_fn.name(), "output": y.detach(), "gradient": first.detach()}
    if direction is not None:
        found["of x"], found["of upstream"] = torch.autograd.grad(first, (x, upstream), direction)
    return found
