"""Lab 09, exercise 7: Why did float16 make it worse?"""

import math

import torch

from hood.judge.checks.compare import Tolerance
from hood.judge.checks.exercise import Case, Check

worse_in_half = Check(
    "worse_in_half",
    parts={"overflow": 1, "underflow": 1, "rounding": 1},
    reads="Why fp16 made it worse",
    tolerance=Tolerance(2e-3, 1e-6, "the difference of two numbers that are nearly equal"),
)


@worse_in_half.reference
def _(steps, x):
    found = []
    for name, function in steps:
        right = function(x)
        pairs = zip(right.flatten().tolist(), function(x.half()).float().flatten().tolist(), strict=True)
        overflowed = vanished = 0
        worst = 0.0
        for true, half in pairs:
            if math.isfinite(true) and not math.isfinite(half):
                overflowed += 1
            elif half == 0 and true != 0:
                vanished += 1
            elif math.isfinite(true) and true != 0:
                worst = max(worst, abs(half - true) / abs(true))
        found.append((name, overflowed, vanished, worst))
        x = right
    return found


@worse_in_half.cases
def _(draw):
    over, under, rounding = worse_in_half.parts

    def asked(part, words, x, shown=""):
        def play(subject):
            came = subject.drive("profiling:in_half", words, x)
            chosen = {over: 1, under: 2, rounding: 3}[part]
            return [(row[0], row[chosen]) for row in came]

        what = {over: "overflowed", under: "vanished", rounding: "worst"}[part]
        places = {f"[{at}][1]": f"`{what}` of step {at}, {word}" for at, word in enumerate(words)}
        return Case(part, play, shown=shown or ", then ".join(words), places=places)

    def near(*numbers):
        return torch.tensor(numbers) * (1 + draw.integer(0, 40) / 100)

    wide = near(0.5, 3.0, 400.0, -500.0, 0.0)
    small = near(0.5, 2e-4, -3e-4, 1e-4, 0.0)
    yield asked(over, ["square"], wide)
    yield asked(over, ["square", "root", "square"], wide)
    yield asked(over, ["square", "times 1e-3", "plus 1"], wide, "a square that is scaled afterwards")
    yield asked(over, ["exp", "log"], near(5.0, 9.0, 12.0, 15.0))
    yield asked(over, ["square", "mean", "root"], near(300.0, 200.0, -400.0, 1.0, 2.0, 3.0).reshape(2, 3))
    yield asked(over, ["times 1000", "over 1000"], near(60.0, 70.0, -90.0, 1.0).reshape(2, 2))
    yield asked(over, ["exp", "times 2"], near(80.0, 200.0, 1.0), "some numbers are infinite in float32, too")
    yield asked(over, ["over itself", "times 2"], torch.tensor([0.0, 2.0, 70000.0]), "0 over 0")
    yield asked(over, ["times -1", "square"], torch.tensor([65504.0, 65000.0, 66000.0, 7.0]))
    # the first root is NaN in float32 and 0 in float16; the second number overflows
    yield asked(over, ["root"], torch.tensor([-1e-9, 70000.0, 4.0]), "a root of a small negative number")

    yield asked(under, ["square"], small)
    yield asked(under, ["square", "times 1e6", "square"], small, "a square that is scaled afterwards")
    yield asked(under, ["times 1e-5", "times 1e-5", "times 1e5"], near(0.3, 1e-3, 2.0, -1e-4))
    yield asked(under, ["exp", "plus 1"], near(-3.0, -14.0, -25.0, -200.0))
    yield asked(under, ["softmax", "log"], torch.tensor([[0.0, -12.0, -24.0, 3.0]]) * draw.choice((1.0, 1.25)))
    yield asked(under, ["plus -1", "relu"], torch.tensor([1.0001, 1.2, 0.5, 1.0]), "1.0001 - 1")
    yield asked(under, ["relu", "square"], near(-1e-4, 0.0, 1e-4, 2.0))
    yield asked(under, ["relu", "plus 0"], near(-1.0, 2.0), "a zero that is right")
    # in the first row, float16 gives no 0, and float32 gives a 0 at the beginning
    rows = torch.tensor([[2047.0, 2051.0, 2051.0, 2051.0, 2035.0], [1.0002, 1.0, 1.0, 1.0, 1.0]])
    yield asked(under, ["center"], rows, "a number that is 0 in float32 and not in float16")
    # inputs that are too small for float16
    yield asked(under, ["times 2", "keep"], torch.tensor([1e-9, -1e-9, 1.0, 2.0**-24]))

    yield asked(rounding, ["plus 1024", "plus -1024"], near(0.3, 0.4, 5.0))
    yield asked(rounding, ["tanh", "times 3", "exp"], near(0.3, -0.4, 2.0))
    yield asked(rounding, ["square", "plus 2"], wide, "some numbers overflow")
    yield asked(rounding, ["square", "times 100"], small, "some numbers vanish")
    yield asked(rounding, ["times -3", "plus 2048"], near(-1.0, 1.0, 0.0, -0.3))
    yield asked(rounding, ["times 1e-4", "times 1e4"], near(1e-2, 1e-3, 2.0), "subnormal numbers")
    yield asked(rounding, ["square"], near(400.0, 500.0), "no numbers are left")
    yield asked(rounding, ["tanh"], torch.zeros(0), "no numbers")
    below, above = torch.tensor([1024.6, -1024.0, 7.0]), torch.tensor([-1024.6, 1024.0, 7.0])
    yield asked(rounding, ["keep"], below, "the worst number is positive, and rounded up")
    yield asked(rounding, ["keep"], above, "the worst number is negative, and rounded down")
    yield asked(rounding, ["keep"], torch.tensor([1024.4, 3.0]), "the worst number is positive, and rounded down")
    yield asked(rounding, ["keep"], torch.tensor([-1024.4, 3.0]), "the worst number is negative, and rounded up")
    yield asked(rounding, ["times 0", "square"], near(1.0, 5.0), "only zeros")
    yield asked(rounding, ["exp"], near(100.0, 1.0, 0.1), "one number is infinite in float32, too")
    yield asked(rounding, ["log"], near(-1.0, 5.0, 0.3), "one number is NaN in float32, too")
    even = torch.tensor([[2048.0, 2050.0, 2052.0, 2053.0]])
    yield asked(rounding, ["center"], even, "differences of numbers near 2048")
    yield asked(rounding, ["center", "square"], near(100.0, 101.0, 102.5).reshape(1, 3))
