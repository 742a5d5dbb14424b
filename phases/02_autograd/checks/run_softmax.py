"""Lab 02, exercise 10: A function that autograd can call"""

import torch

from utils.checks.exercise import ByHand, Case, Check, edited

from .shared import FLOATS, KINDS, SUMS, laid_out, sum_to

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
    def look(part, names, *args, shown=""):
        def play(subject):
            found = subject(*args)
            found = found | {"rows": sum_to(1, found["output"], SUMS)}
            # autograd calls a Function by its class, and its own nodes by a name that ends in 0
            is_a_function = {"node": found["node"].endswith("Backward")}
            return [(found | is_a_function)[name] for name in names]

        places = {f"[{k}]": told[name] for k, name in enumerate(names)}
        return Case(part, play, places=places, shown=shown)

    def along(x, upstream):
        """The gradient's part along a row of ones, which is nothing: float32 leaves more there."""

        def play(subject):
            return subject(x, upstream)["gradient"].sum(-1)

        shown = "large float64 gradients, and what backward returns summed over each row"
        return Case("backward", play, shown=shown)

    told = {
        "node": "the output does not come from a Function of your own.",
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
    "maximum left in", "large inputs overflow in the exponential and come out as NaN.", earns=1
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
MAX, BACK = "x.amax(-1, keepdim=True)", "y * (grad_output - (y * grad_output).sum(-1, keepdim=True))"
run_softmax.misconception(
    "one maximum for all rows",
    "the largest number of all rows was taken off each of them; rows far below it vanish.",
    earns=1,
)(edited(_run_softmax, (MAX, "(x.max() if x.numel() else 0)")))
run_softmax.misconception(
    "clamped", "different inputs far from 0 come out as equal, as where they are clamped.", earns=1
)(edited(_run_softmax, ("x - " + MAX, "x.clamp(-80, 80)")))
run_softmax.misconception(
    "over dimension 1", "the softmax runs over dimension 1, not over the last.", earns=0
)(
    edited(
        _run_softmax,
        (MAX, "x.amax(min(1, x.dim() - 1), keepdim=True)"),
        ("e.sum(-1", "e.sum(min(1, x.dim() - 1)"),
        ("(y * grad_output).sum(-1", "(y * grad_output).sum(min(1, y.dim() - 1)"),
    )
)  # fmt: skip
run_softmax.misconception(
    "over dimension 1 on the way back",
    "the sum in backward runs over dimension 1; each row is a softmax of its own.",
    earns=1,
)(
    edited(
        _run_softmax,
        ("(y * grad_output).sum(-1, keepdim=True)",
         "(y * grad_output).sum(1 if y.dim() > 1 else 0, keepdim=True)"),
    )
)  # fmt: skip
run_softmax.misconception(
    "one sum for all rows",
    "in backward the sum runs over the whole tensor; each row is a softmax of its own.",
    earns=1,
)(edited(_run_softmax, (BACK, "y * (grad_output - (y * grad_output).sum())")))
run_softmax.misconception(
    "the row's sum cut off",
    "in backward the sum over the row was cut off from the graph, so that a part of the second "
    "gradient is missing.",
    earns=2,
)(edited(_run_softmax, (BACK, "y * (grad_output - (y * grad_output).sum(-1, keepdim=True).detach())")))
run_softmax.misconception(
    "exponentials as they are on the way back",
    "backward takes the exponentials of large inputs as they are, and gives NaN where they overflow.",
    earns=2,
)(
    edited(
        _run_softmax,
        ("ctx.save_for_backward(y)", "ctx.save_for_backward(x)"),
        ("y = ctx.saved_tensors[0]",
         "e = torch.exp(ctx.saved_tensors[0])\n            y = e / e.sum(-1, keepdim=True)"),
    )
)  # fmt: skip
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


run_softmax.equivalent(
    ("@staticmethod", ""), because="torch asks the class for these functions, not an object of it"
)
run_softmax.equivalent(
    ("x = ctx.saved_tensors[0]", "pass"),
    ("y = torch.exp(x - torch.logsumexp(x, -1, keepdim=True))", "pass"),
    because="a class within the function sees its x and y, which are the very same",
    of="the input saved, the softmax computed again",
)
run_softmax.equivalent(
    ("saved_tensors[0]", "saved_tensors[-1]"), because="one tensor is saved, the first and the last"
)
run_softmax.equivalent(
    ("x = x.detach()", "x = x"),
    ("upstream = grad_output.detach()", "upstream = grad_output"),
    ("'output': y.detach()", "'output': y"),
    ("'gradient': first.detach()", "'gradient': first"),
    because="`run_softmax` is given: learners don't write it",
)
