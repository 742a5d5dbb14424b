"""Lab 05, exercise 6: Differentiable twice"""

import torch

from utils.checks.compare import Tolerance
from utils.checks.exercise import Case, Check, edited
from utils.checks.lab_solution import lab_solution

from .make_softmax import _register

make_twice = Check(
    "make_twice",
    parts={"the gradient": 1, "its gradient of g": 1, "its gradient of x": 2},
    reads="Proofs, and what each does not see",
    tolerance=Tolerance(1e-9, 1e-10, "float64 sums in another order"),
)


@make_twice.reference
def _(name, forward, backward):
    def back(g, y):
        return (y * (g - (g * y).sum(-1, keepdim=True))).contiguous()

    def second(ctx, v):
        with torch.enable_grad():
            g, y = (t.detach().requires_grad_() for t in ctx.saved_tensors)
            return torch.autograd.grad(back(g, y), (g, y), v)

    _register(name, forward, back, second)


@make_twice.cases
def _(draw):
    places = ("gradient", "of_g", "of_x")
    slope = draw.choice((-0.5, 0.25, 0.75))

    def asked(which, shape, layout, far=False, between=False):
        x, g, v = (draw.tensor(shape, torch.float64, layout) for _ in "xgv")
        if far:
            x[..., 0] -= 2000

        def play(subject):
            if which == 0:  # asked for alone, which takes no formula of the backward's
                how = {"between": between}
                came = subject.drive("custom_op:run_operator", x, g, slope, **how)["gradient"]
            else:
                came = subject.drive("custom_op:run_twice", x, g, v, slope, between)[places[which]]
            if came is None:
                return False, True, True, came
            # The sums of every gradient that went through a softmax's backward.
            sums = bool((came.sum(-1).abs() < 1e-6 + 1e-3 * came.abs().sum(-1)).all())
            nan = bool(came.isnan().any())
            return True, not nan, nan or sums, came

        words = f"float64 {shape}, {layout}" + ", y 0 in the first column" * far
        words += ", with another call before the way back" * between
        part = list(make_twice.parts)[which]
        said = {
            "[0]": f"Nothing leads back from the gradient to {'xgx'[which]}.",
            "[1]": f"There is NaN in {part}.",
            "[2]": f"The numbers of a row of {part} do not sum to 0.",
            "[3]": part,
        }
        return Case(part, play, shown=words, places=said)

    # In rows of two numbers several wrong formulas give the same.
    yield asked(0, draw.shape(2, 3, 6), "transposed")
    for which in (0, 1, 2):
        yield asked(which, draw.shape(2, 3, 6), "contiguous", between=True)
    for which in (1, 2):
        yield asked(which, draw.shape(2, 3, 6), "contiguous")
        yield asked(which, (2, *draw.shape(2, 3, 6)), "transposed")
    yield asked(2, draw.shape(2, 3, 6), "contiguous", far=True)

    shape = draw.shape(2, 3, 6)
    g, x, v = (draw.tensor(shape, torch.float64) for _ in "gxv")
    y = torch.softmax(x, -1)

    def of_the_backward(which):
        part, of = list(make_twice.parts)[which], "xgy"[which]

        def play(subject):
            came = subject.drive("custom_op:run_backward", g, y, 1.0, v)[f"of_{of}"]
            return came is not None, came

        said = {
            "[0]": f"Nothing leads back from the result of the backward's operator to {of}.",
            "[1]": f"the gradient of {of} that the backward's operator has for v",
        }
        shown = f"the backward's operator, called with g and y: float64 {shape}"
        return Case(part, play, shown=shown, places=said)

    yield of_the_backward(1)
    yield of_the_backward(2)


_make = lab_solution(__name__, "make_twice")


def _misconception(name, explanation, earns, *edits):
    make_twice.misconception(name, explanation, earns=earns)(edited(_make, *edits))


_misconception(
    "a kernel in the backward",
    "nothing leads back through the gradient, as where a kernel that is no operator computes it.",
    1,
    ("return back(g, y)", "return backward(g, y)"),
)
_misconception(
    "the backward has no formula",
    "the backward is an operator that has no gradient of its own.",
    1,
    ("back.register_autograd(vjp_of_back, setup_context=keep_both)", "pass"),
)
_misconception(
    "v taken for g",
    "the second gradient's way back starts with g in place of what arrived.",
    1,
    (
        "g, y = ctx.saved_tensors\n        of_g",
        "g, y = ctx.saved_tensors\n        v = g\n        of_g",
    ),
)
_misconception(
    "y a constant",
    "the gradient is differentiated by g alone, as where y did not depend on x.",
    2,
    ("return (of_g, of_y)", "return (of_g, None)"),
)
_misconception(
    "g a constant",
    "the gradient is differentiated by y alone.",
    3,
    ("return (of_g, of_y)", "return (None, of_y)"),
)
_misconception(
    "the sum a constant",
    "of the gradient of y one term is missing: y is in the sum, too.",
    2,
    (" - g * (v * y).sum(-1, keepdim=True)", ""),
)
_misconception(
    "the sum alone",
    "of the gradient of y one term is missing: y also stands outside of the sum.",
    2,
    ("v * (g - (g * y).sum(-1, keepdim=True)) - g", "-g"),
)
_misconception(
    "the backward of the backward",
    "the gradient of y is taken to be the backward, once more.",
    2,
    ("return (of_g, of_y)", "return (of_g, back(v, back(g, y)))"),
)
_misconception(
    "a sign",
    "of the two terms of the gradient of y one has the wrong sign.",
    2,
    (" - g * (v * y)", " + g * (v * y)"),
)
_misconception(
    "v times g alone",
    "in the gradient of y, v is multiplied by g alone, and not by g less its sum.",
    2,
    ("v * (g - (g * y).sum(-1, keepdim=True)) - g", "v * g - g"),
)
_misconception(
    "on to x",
    "the way from y to x is gone twice: autograd goes it, too.",
    2,
    ("return (of_g, of_y)", "return (of_g, back(of_y, y))"),
)
_misconception(
    "y cut off",
    "y is cut off before it gets to the backward, so nothing leads from the gradient to x.",
    2,
    ("return back(g, y)", "return back(g, y.detach())"),
)
_misconception(
    "g, once more",
    "the gradient of g is made of g, and not of what arrived.",
    3,
    ("of_g = back(v, y)", "of_g = back(g, y)"),
)
_misconception(
    "the sum over all rows",
    "the sum of v * y goes over all rows at once, as where they were one softmax.",
    1,
    (
        "of_g = back(v, y)",
        "vy = (v * y).sum()\n        of_g = y * (v - vy)",
    ),
    ("g * (v * y).sum(-1, keepdim=True)", "g * vy"),
)
_misconception(
    "one sum for all rows",
    "in the gradient of y both sums go over all rows at once, as where they were one softmax.",
    2,
    (
        "v * (g - (g * y).sum(-1, keepdim=True)) - g * (v * y).sum(-1, keepdim=True)",
        "v * (g - (g * y).sum()) - g * (v * y).sum()",
    ),
)
_misconception(
    "the two exchanged",
    "the gradient of g is handed to y, and that of y to g.",
    1,
    ("return (of_g, of_y)", "return (of_y, of_g)"),
)


@make_twice.alternate("in strings, and the second derivative left to autograd")
def _(name, forward, backward):
    torch.library.define(name, "(Tensor x) -> Tensor")
    torch.library.define(name + "_backward", "(Tensor g, Tensor y) -> Tensor")
    torch.library.impl(name, "CPU")(forward)
    torch.library.impl(name + "_backward", "CPU")(backward)
    space, short = name.split("::")

    def formula(ctx, g):
        return getattr(getattr(torch.ops, space), short + "_backward")(g, ctx.y)

    def keep(ctx, inputs, output):
        ctx.y = output

    def both(ctx, inputs, output):
        ctx.g, ctx.y = inputs

    def again(ctx, v):
        with torch.enable_grad():
            g = ctx.g.detach().requires_grad_()
            y = ctx.y.detach().requires_grad_()
            dx = y * g - y * (y * g).sum(-1, keepdim=True)
        return torch.autograd.grad(dx, (g, y), v)

    torch.library.register_autograd(name, formula, setup_context=keep)
    torch.library.register_autograd(name + "_backward", again, setup_context=both)


@make_twice.alternate("the terms one by one")
def _(name, forward, backward):
    # The schemas are read from the annotations of what was given.
    op = torch.library.custom_op(name, forward, mutates_args=())
    second = torch.library.custom_op(name + "_backward", backward, mutates_args=())

    def of_second(ctx, v):
        g, y = ctx.saved_tensors
        inner = (v * y).sum(dim=-1, keepdim=True)
        of_y = v * g
        of_y = of_y - v * (g * y).sum(dim=-1, keepdim=True)
        of_y = of_y - g * inner
        return y * (v - inner), of_y

    op.register_autograd(
        lambda ctx, g: second(g, ctx.saved_tensors[0]),
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(output),
    )
    second.register_autograd(
        of_second, setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs)
    )


make_twice.equivalent(
    ("ctx.g.detach()", "ctx.g"),
    ("ctx.y.detach()", "ctx.y"),
    because="what is kept of a step that is not differentiated once more has no history",
)


make_twice.equivalent(
    ("ctx.saved_tensors[0]", "ctx.saved_tensors[-1]"),
    because="one tensor is saved",
)
