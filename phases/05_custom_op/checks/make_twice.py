"""Lab 05, exercise 6: Differentiable twice"""

import torch

from hood.judge.checks.compare import Tolerance
from hood.judge.checks.exercise import Case, Check

from .make_softmax import _register

make_twice = Check(
    "make_twice",
    parts={"the gradient": 1, "its gradient of g": 1, "its gradient of x": 2},
    reads="Proofs, and what each does not see",
    reads_by_part={"the gradient": "How to go back"},
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
            if which == 0:  # alone, without the formula of the backward
                how = {"between": between}
                came = subject.drive("custom_op:run_operator", x, g, slope, **how)["gradient"]
            else:
                came = subject.drive("custom_op:run_twice", x, g, v, slope, between)[places[which]]
            if came is None:
                return False, True, True, came
            # Each row of a gradient from a softmax's backward sums to 0.
            sums = bool((came.sum(-1).abs() < 1e-6 + 1e-3 * came.abs().sum(-1)).all())
            nan = bool(came.isnan().any())
            return True, not nan, nan or sums, came

        words = f"float64 {shape}, {layout}" + ", with y = 0 in the first column" * far
        words += ", with another call before the backward" * between
        part = list(make_twice.parts)[which]
        said = {
            "[0]": f"No path leads back from the gradient to {'xgx'[which]}.",
            "[1]": f"There is NaN in {part}.",
            "[2]": f"The numbers of a row of {part} do not sum to 0.",
            "[3]": part,
        }
        return Case(part, play, shown=words, places=said)

    # In rows of two numbers, several wrong formulas give the right result.
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
            "[0]": f"No path leads back from the result of the backward's operator to {of}.",
            "[1]": (
                f"the gradient of {of} that the backward's operator gives for an incoming gradient "
                "v"
            ),
        }
        shown = f"the backward's operator, called with g and y: float64 {shape}"
        return Case(part, play, shown=shown, places=said)

    yield of_the_backward(1)
    yield of_the_backward(2)
