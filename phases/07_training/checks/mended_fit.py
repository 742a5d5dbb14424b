"""Lab 07, exercise 3: Five lines, five mistakes"""

import torch

from hood.judge.checks.compare import Tolerance
from hood.judge.checks.exercise import Case, Check
from hood.judge.checks.words import counted

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
        return Case(part, play, shown=f"{counted(points, 'point')}, {counted(steps, 'step')}", places=places)

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
