"""Lab 07, exercise 3: Five lines, five mistakes"""

import torch
from torch.nn import functional as F

from utils.checks.compare import Tolerance
from utils.checks.exercise import Case, Check, edited

mended_fit = Check(
    "mended_fit",
    parts={"one step": 1, "many steps": 1, "the losses": 1},
    reads="The five lines",
    tolerance=Tolerance(1e-4, 1e-5, "float32, step after step"),
)


@mended_fit.reference
def _(x, y, steps, lr):
    x, y = x[:, 0].double(), y.double()
    w = b = 0.0
    losses = []
    for _ in range(steps):
        error = w * x + b - y
        losses.append(float((error * error).mean()))
        slope, height = float(2 * (error * x).mean()), float(2 * error.mean())
        w, b = w - lr * slope, b - lr * height
    return w, b, losses


@mended_fit.cases
def _(draw):
    one, many, found = mended_fit.parts

    def asked(part, points, steps, given=None):
        x, lr = draw.tensor((points, 1)), draw.choice((0.01, 0.02, 0.05))
        y = draw.integer(2, 4) * x[:, 0] + draw.integer(1, 3) + draw.tensor((points,)) / 8
        if given is not None:
            x, y = given

        def play(subject):
            w, b, losses = subject(x, y, steps, lr)
            return losses if part == found else (w, b)

        places = {"[0]": "w", "[1]": "b"} if part != found else {}
        return Case(part, play, shown=f"{points} points, {steps} steps", places=places)

    for points in (draw.integer(3, 9), 2, 1):
        yield asked(one, points, 1)
        yield asked(many, points, 2)
        yield asked(many, points, draw.integer(15, 40))
        yield asked(found, points, 1)
        yield asked(found, points, draw.integer(5, 12))
    yield asked(many, 4, 0)
    yield asked(found, 4, 0)
    x = torch.tensor([[0.0], [1.0], [3.0]])
    yield asked(one, 3, 1, (x, 2 * x[:, 0] + 1))
    yield asked(found, 3, 4, (x, torch.zeros(3)))  # nothing is left to learn


def _fit(x, y, steps, lr):
    w = torch.zeros(1, requires_grad=True)
    b = torch.zeros(1, requires_grad=True)
    optimizer = torch.optim.SGD([w, b], lr=lr)
    losses = []
    for _ in range(steps):
        prediction = x[:, 0] * w + b
        loss = (prediction - y).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return w.item(), b.item(), losses


def _misconception(name, explanation, earns, *edits):
    mended_fit.misconception(name, explanation, earns=earns)(edited(_fit, *edits))


_misconception(
    "every point against every other",
    "(N, 1) minus (N,) is (N, N): each prediction is held against all targets.",
    0,
    ("x[:, 0] * w", "x * w"),
)
_misconception(
    "gradients never cleared",
    "each step goes along the sum of all gradients so far.",
    1,
    ("optimizer.zero_grad()", "pass"),
)
_misconception(
    "b not handed over",
    "b stays where it began.",
    0,
    ("[w, b]", "[w]"),
)
_misconception(
    "step before backward",
    "each step uses the gradients of the steps before it, added up, and the first has none.",
    0,
    ("loss.backward()\n        optimizer.step()", "optimizer.step()\n        loss.backward()"),
    ("optimizer.zero_grad()", "pass"),
)
_misconception(
    "cleared before the step",
    "nothing moves, as where the gradients are cleared before the optimizer has seen them.",
    0,
    ("optimizer.zero_grad()\n        loss.backward()", "loss.backward()\n        optimizer.zero_grad()"),
)
_misconception(
    "the sum for the mean",
    "the errors are added up and not averaged, so that a step grows with the number of points.",
    0,
    (".mean()", ".sum()"),
)
_misconception(
    "one after the other",
    "w is moved first, and b by the gradient at the new w.",
    0,
    (
        "        optimizer.step()\n",
        "        with torch.no_grad():\n"
        "            w -= lr * w.grad\n"
        "            b -= lr * 2 * (x[:, 0] * w + b - y).mean()\n",
    ),
)
_misconception(
    "losses that are tensors",
    "the list holds tensors and not floats; with `loss` itself it would keep each step's graph, too.",
    2,
    ("losses.append(loss.item())", "losses.append(loss)"),
)
_misconception(
    "the losses of afterwards",
    "the losses are those after the update, and not those that the step found.",
    2,
    ("losses.append(loss.item())", "losses.append((x[:, 0] * w + b - y).square().mean().item())"),
)
_misconception(
    "the last loss alone",
    "it returns one loss, and not one for each step.",
    2,
    ("b.item(), losses)", "b.item(), losses[-1:])"),
)
_misconception(
    "a step too many",
    "it makes a step more than it was asked for.",
    0,
    ("range(steps)", "range(steps + 1)"),
)


@mended_fit.alternate("gradients worked out on paper")
def _(x, y, steps, lr):
    x = x.squeeze(1)
    w = b = 0.0
    losses = []
    for _ in range(steps):
        error = w * x + b - y
        losses.append(float(error.pow(2).mean()))
        w, b = w - lr * 2 * float((error * x).mean()), b - lr * 2 * float(error.mean())
    return w, b, losses


@mended_fit.alternate("a linear layer")
def _(x, y, steps, lr):
    layer = torch.nn.Linear(1, 1)
    torch.nn.init.zeros_(layer.weight)
    torch.nn.init.zeros_(layer.bias)
    optimizer = torch.optim.SGD(layer.parameters(), lr)
    losses = []
    for _ in range(steps):
        loss = F.mse_loss(layer(x), y.unsqueeze(1))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses += [loss.item()]
    return layer.weight.item(), layer.bias.item(), losses


@mended_fit.alternate("torch.autograd.grad")
def _(x, y, steps, lr):
    both = torch.zeros(2)
    losses = []
    for _ in range(steps):
        both.requires_grad_()
        loss = torch.mean((torch.cat([x, torch.ones_like(x)], 1) @ both - y) ** 2)
        (gradient,) = torch.autograd.grad(loss, both)
        both = both.detach() - lr * gradient
        losses.append(loss.item())
    w, b = both.tolist()
    return w, b, losses


mended_fit.equivalent(
    ("[w, b]", "[b, w]"),
    because="an optimizer takes its parameters in any order",
)
mended_fit.equivalent(
    ("F.mse_loss(layer(x), y.unsqueeze(1))", "F.mse_loss(y.unsqueeze(1), layer(x))"),
    ("x[:, 0] * w + b, y)", "y, x[:, 0] * w + b)"),
    ("torch.cat([x, torch.ones_like(x)], 1) @ both - y", "y - torch.cat([x, torch.ones_like(x)], 1) @ both"),
    because="an error is squared",
)
mended_fit.equivalent(("x[:, 0]", "x[:, -1]"), because="there is one column")
mended_fit.equivalent(
    ("both.detach() - lr", "both - lr"),
    because="the graph grows with each step, and the numbers are the same",
)
