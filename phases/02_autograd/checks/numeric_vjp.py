"""Lab 02, exercise 9: Trust, but check"""

import math

import torch

from utils.checks.compare import Tolerance
from utils.checks.exercise import ByHand, Case, Check, case, edited

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
        """Of exp the right answer is known: what is left of it, and float32 leaves far more."""
        known = upstream * torch.exp(x) * math.sinh(h) / h

        def play(subject):
            return subject("exp", x, upstream, h) - known

        shown = "torch.exp with large gradients, less the right answer: digits that float32 lacks"
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


def _numeric_vjp(name, x, grad_output, h=1e-6):
    f, x = getattr(torch, name), x.double()
    found = []
    for i in range(x.numel()):
        nudge = torch.zeros(x.numel(), dtype=torch.float64)
        nudge[i] = h
        nudge = nudge.view(x.shape)
        found.append((grad_output * (f(x + nudge) - f(x - nudge))).sum() / (2 * h))
    return torch.stack(found).view(x.shape)


numeric_vjp.misconception(
    "forward difference",
    "the function was nudged to one side only, which is off by a term that is linear in h.",
    earns=0,
)(edited(_numeric_vjp, ("f(x - nudge)", "f(x)"), ("(2 * h)", "h")))


@numeric_vjp.misconception(
    "all entries nudged at once",
    "every entry was nudged at the same time; that is right for elementwise functions alone.",
    earns=0,
)
def _(name, x, grad_output, h=1e-6):
    f, x = getattr(torch, name), x.double()
    return grad_output.double() * (f(x + h) - f(x - h)) / (2 * h)


numeric_vjp.misconception(
    "divided by h", "the two points are 2h apart, and their difference was divided by h.", earns=0
)(edited(_numeric_vjp, ("(2 * h)", "h")))
numeric_vjp.misconception(
    "upstream of ones",
    "the outputs were summed as they are, without the incoming gradient.",
    earns=0,
)(edited(_numeric_vjp, ("grad_output * ", "")))
numeric_vjp.misconception(
    "float32 arithmetic",
    "the digits are those of a difference in float32, which has lost most of them: the function "
    "must be computed in float64, not only its result.",
    earns=2,
)(
    edited(
        _numeric_vjp,
        ("x.double()", "x"),
        ("dtype=torch.float64", "dtype=x.dtype"),
        ("torch.stack(found).view(x.shape)", "torch.stack(found).view(x.shape).double()"),
    )
)  # fmt: skip


@numeric_vjp.misconception(
    "nudged in place and left there",
    "the input has other values afterwards, as where it is nudged in place and does not get the "
    "old ones back.",
    earns=0,
)
def _(name, x, grad_output, h=1e-6):
    f, x, grad_output = getattr(torch, name), x.double(), grad_output.double()
    grad = torch.zeros(x.shape, dtype=torch.float64)
    for index in torch.cartesian_prod(*[torch.arange(n) for n in x.shape]).tolist():
        place = tuple(index)
        x[place] += h
        above = f(x)
        x[place] -= 2 * h
        below = f(x)
        grad[place] = (grad_output * (above - below)).sum() / (2 * h)
    return grad


numeric_vjp.misconception(
    "h of its own choice", "the result is that of a step of 0.2, whatever h is.", earns=0
)(edited(_numeric_vjp, ("nudge[i] = h", "nudge[i] = 0.2"), ("(2 * h)", "0.4")))
numeric_vjp.misconception(
    "a small h of its own",
    "the result is that of a very small step, whatever h is.",
    earns=1,
)(edited(_numeric_vjp, ("nudge[i] = h", "nudge[i] = 1e-6"), ("(2 * h)", "2e-6")))
numeric_vjp.misconception(
    "nudged in float32",
    "the nudge was added in float32, which rounds it, and only then came float64.",
    earns=2,
)(
    edited(
        _numeric_vjp,
        ("x.double()", "x"),
        ("nudge.view(x.shape)", "nudge.view(x.shape).to(x.dtype)"),
        ("f(x + nudge) - f(x - nudge)", "f((x + nudge).double()) - f((x - nudge).double())"),
    )
)  # fmt: skip
numeric_vjp.misconception(
    "a step that grows with the entry",
    "entries larger than 1 were nudged by more than h.",
    earns=1,
)(
    edited(
        _numeric_vjp,
        ("nudge[i] = h", "nudge[i] = h * max(1.0, x.reshape(-1)[i].abs().item())"),
        ("(2 * h)", "(2 * nudge.sum())"),
    )
)  # fmt: skip
numeric_vjp.equivalent(
    ("x, grad_output = (x.double(), grad_output.double())", "pass"),
    ("x, grad_output = (x.double(), grad_output.double())", "x, grad_output = (x, grad_output.double())"),
    ("x, grad_output = (x.double(), grad_output.double())", "x, grad_output = (x.double(), grad_output)"),
    ("grad_output.double()", "grad_output"),
    because="what a float32 tensor and a float64 one make together is float64, with all its digits",
)
numeric_vjp.equivalent(
    ("grad = torch.zeros", "grad = torch.ones"), because="every entry of it is written over"
)
numeric_vjp.equivalent(("h=1e-06", "h=2e-06"), because="both are too small to be told apart")
numeric_vjp.equivalent(
    (".sum().item() /", ".sum() /"), because="`torch.tensor` takes the numbers out itself"
)


@numeric_vjp.alternate("a copy, nudged through a flat view")
def _(name, x, grad_output, h=1e-6):
    f = getattr(torch, name)
    moved = x.double().clone(memory_format=torch.contiguous_format)
    flat, found = moved.view(-1), []
    for i in range(flat.numel()):
        old = flat[i].item()
        flat[i] = old + h
        above = f(moved).clone()
        flat[i] = old - h
        below = f(moved).clone()
        flat[i] = old
        found.append(((above - below) * grad_output.double()).sum().item() / (2 * h))
    return torch.tensor(found, dtype=torch.float64).view(x.shape)
