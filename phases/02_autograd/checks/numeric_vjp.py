"""Lab 02, exercise 9: Trust, but check"""

import math

import torch

from hood.judge.checks.compare import Tolerance
from hood.judge.checks.exercise import ByHand, Case, Check, case

from .shared import AUTOGRAD

numeric_vjp = Check(
    "numeric_vjp",
    parts={"one number out": 1, "many out, any upstream": 1, "float32 in": 1},
    reads="Nudging: how far is far enough",
    tolerance=Tolerance(1e-6, 1e-8, "differences of float64 divided by a small h"),
    by_hand=ByHand(
        "the point of a numeric gradient is that it needs no autograd",
        forbid_names=AUTOGRAD,
        looks_up="torch",
    ),
)


@numeric_vjp.reference
def _(name, x, grad_output, h=1e-6):
    f, x = getattr(torch, name), x.double()
    nudges = h * torch.eye(x.numel(), dtype=torch.float64).view(-1, *x.shape)
    pairs = [f(x + nudge) - f(x - nudge) for nudge in nudges]
    found = [(grad_output.double() * pair).sum() / (2 * h) for pair in pairs]
    return torch.stack(found).view(x.shape)


@numeric_vjp.cases
def _(draw):
    def matrix(dtype, layout="contiguous"):
        return draw.tensor((3, 3), dtype, layout) / 3 + 2 * torch.eye(3, dtype=dtype)

    def digits(x, upstream, h):
        """The error of an answer for exp. In float32, this error is far larger.
        """
        known = upstream * torch.exp(x) * math.sinh(h) / h

        def play(subject):
            return subject("exp", x, upstream, h) - known

        shown = (
            "torch.exp with large gradients: the result minus the right answer, with digits that "
            "float32 lacks"
        )
        return Case("many out, any upstream", play, shown=shown)

    double = torch.float64
    for name, h in (("det", 1e-2), ("trace", 1e-3), ("logdet", 0.1)):
        upstream = draw.tensor((), double) + 3
        yield case("one number out", name, matrix(double), upstream, h, shown=f"torch.{name}")
    for name, h, layout in (
        ("inverse", 1e-2, "contiguous"), ("exp", 0.1, "transposed"), ("tanh", 0.05, "sliced"),
        ("matrix_exp", 0.05, "transposed"),
    ):  # fmt: skip
        x, upstream = matrix(double, layout), draw.tensor((3, 3), double, layout)
        of = f"torch.{name}" + f", x and grad_output {layout}" * (layout != "contiguous")
        yield case("many out, any upstream", name, x, upstream, h, shown=of)
    wide = draw.tensor((2, 3), double)
    part = "many out, any upstream"
    yield case(part, "sin", wide, draw.tensor((2, 3), double), 0.25)
    yield case(part, "sin", wide, draw.tensor((2, 3), double), shown="no h given")
    for name, shape in (("inverse", (2, 3, 3)), ("exp", ()), ("cos", (4,)), ("sin", (1, 2, 1, 2))):
        x = matrix(double).expand(shape) if name == "inverse" else draw.tensor(shape, double)
        upstream, of = draw.tensor(shape, double), f"torch.{name}, shape {shape}"
        yield case(part, name, x, upstream, 0.05, shown=of)
    upstream = draw.tensor((3, 2), double)
    yield case(part, "t", wide, upstream, 0.25, shown="torch.t, whose output is a view")
    yield case(part, "sin", wide, upstream.T, 2.0, shown="a step of 2")
    yield digits(wide, 1e3 * draw.tensor((2, 3), double), 0.1)
    low = draw.tensor((2, 2))
    yield case("float32 in", "exp", low.double(), low, 1e-4, shown="float64 x, float32 upstream")
    yield case("float32 in", "exp", low, low.double(), 1e-4, shown="float32 x, float64 upstream")
    for name in ("inverse", "sin"):
        x = matrix(torch.float32)
        yield case("float32 in", name, x, draw.tensor((3, 3)), 1e-4, shown=f"torch.{name}")
