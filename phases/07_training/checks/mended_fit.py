"""Lab 07, exercise 3: Five lines, five mistakes"""

import torch

from utils.checks import Case, Check, edited
from utils.compare import Tolerance

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

    def asked(part, points, steps):
        x, lr = draw.tensor((points, 1)), draw.choice((0.01, 0.02, 0.05))
        y = draw.integer(2, 4) * x[:, 0] + draw.integer(1, 3) + draw.tensor((points,)) / 8

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
