"""Lab 09, exercise 8: Why did float16 make it worse?"""

import math
from collections import Counter

import torch

from utils.checks.compare import Tolerance
from utils.checks.exercise import Case, Check, edited
from utils.checks.lab_solution import lab_solution

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
    yield asked(over, ["exp", "times 2"], near(80.0, 200.0, 1.0), "some are infinite in float32, too")
    yield asked(over, ["over itself", "times 2"], torch.tensor([0.0, 2.0, 70000.0]), "0 over 0")
    yield asked(over, ["times -1", "square"], torch.tensor([65504.0, 65000.0, 66000.0, 7.0]))
    # the first is no number in float32, and 0 in float16; the second overflows
    yield asked(over, ["root"], torch.tensor([-1e-9, 70000.0, 4.0]), "a root of a small negative number")

    yield asked(under, ["square"], small)
    yield asked(under, ["square", "times 1e6", "square"], small, "a square that is scaled afterwards")
    yield asked(under, ["times 1e-5", "times 1e-5", "times 1e5"], near(0.3, 1e-3, 2.0, -1e-4))
    yield asked(under, ["exp", "plus 1"], near(-3.0, -14.0, -25.0, -200.0))
    yield asked(under, ["softmax", "log"], torch.tensor([[0.0, -12.0, -24.0, 3.0]]) * draw.choice((1.0, 1.25)))
    yield asked(under, ["plus -1", "relu"], torch.tensor([1.0001, 1.2, 0.5, 1.0]), "1.0001 - 1")
    yield asked(under, ["relu", "square"], near(-1e-4, 0.0, 1e-4, 2.0))
    yield asked(under, ["relu", "plus 0"], near(-1.0, 2.0), "a zero that is right")
    # float16 has a 0 nowhere in the first row, float32 at the beginning
    rows = torch.tensor([[2047.0, 2051.0, 2051.0, 2051.0, 2035.0], [1.0002, 1.0, 1.0, 1.0, 1.0]])
    yield asked(under, ["center"], rows, "a 0 that float16 does not have")
    # too small for float16 already
    yield asked(under, ["times 2", "keep"], torch.tensor([1e-9, -1e-9, 1.0, 2.0**-24]))

    yield asked(rounding, ["plus 1024", "plus -1024"], near(0.3, 0.4, 5.0))
    yield asked(rounding, ["tanh", "times 3", "exp"], near(0.3, -0.4, 2.0))
    yield asked(rounding, ["square", "plus 2"], wide, "some overflow")
    yield asked(rounding, ["square", "times 100"], small, "some vanish")
    yield asked(rounding, ["times -3", "plus 2048"], near(-1.0, 1.0, 0.0, -0.3))
    yield asked(rounding, ["times 1e-4", "times 1e4"], near(1e-2, 1e-3, 2.0), "subnormal numbers")
    yield asked(rounding, ["square"], near(400.0, 500.0), "nothing is left")
    yield asked(rounding, ["tanh"], torch.zeros(0), "no numbers")
    below, above = torch.tensor([1024.6, -1024.0, 7.0]), torch.tensor([-1024.6, 1024.0, 7.0])
    yield asked(rounding, ["keep"], below, "the worst is above 0, and rounded up")
    yield asked(rounding, ["keep"], above, "the worst is below 0, and rounded down")
    yield asked(rounding, ["keep"], torch.tensor([1024.4, 3.0]), "the worst is above 0, and rounded down")
    yield asked(rounding, ["keep"], torch.tensor([-1024.4, 3.0]), "the worst is below 0, and rounded up")
    yield asked(rounding, ["times 0", "square"], near(1.0, 5.0), "zeros alone")
    yield asked(rounding, ["exp"], near(100.0, 1.0, 0.1), "one is infinite in float32, too")
    yield asked(rounding, ["log"], near(-1.0, 5.0, 0.3), "one is NaN in float32, too")
    even = torch.tensor([[2048.0, 2050.0, 2052.0, 2053.0]])
    yield asked(rounding, ["center"], even, "differences of numbers near 2048")
    yield asked(rounding, ["center", "square"], near(100.0, 101.0, 102.5).reshape(1, 3))


_worse = lab_solution(__name__, "worse_in_half")


def _misconception(name, explanation, earns, *edits):
    worse_in_half.misconception(name, explanation, earns=earns)(edited(_worse, *edits))


_misconception(
    "float16 all the way",
    "each step gets what float16 has made of the steps before: one error is counted in all after it.",
    0,
    ("    found = []", "    found, spoilt = ([], x.half())"),
    ("function(x.half()).float()", "function(spoilt).float()"),
    ("x = right", "x, spoilt = (right, function(spoilt))"),
)
_misconception(
    "only the result is float16",
    "a step is computed in float32, and its result converted: what happens to the input is not seen.",
    0,
    ("function(x.half()).float()", "function(x).half().float()"),
)
_misconception(
    "float16's numbers handed on",
    "the next step's right input is what float16 has made of this one.",
    0,
    ("x = right", "x = half"),
)
_misconception(
    "the first input for all",
    "every step gets the first input.",
    0,
    ("        x = right\n", ""),
)
_misconception(
    "bfloat16",
    "the other format of 16 bits was taken: nothing overflows in it, and much is rounded.",
    0,
    ("x.half()", "x.bfloat16()"),
)
_misconception(
    "the first input rounded",
    "the right results are those of an input that was rounded to float16 first.",
    0,
    ("    found = []", "    found, x = ([], x.half().float())"),
)
_misconception(
    "both from the rounded input",
    "a step's right result is computed from the input as float16 rounds it: what that does is not seen.",
    0,
    ("(function(x), function(x.half()).float())", "(function(x.half().float()), function(x.half()).float())"),
)
_misconception(
    "rounded at both ends",
    "a step's input and result are rounded, and what it does in between is computed in float32.",
    2,
    ("function(x.half()).float()", "function(x.half().float()).half().float()"),
)
_misconception(
    "by the size of the right one",
    "a number counts as overflowed if the right one is too large for float16, whatever float16 has"
    " made of it.",
    2,
    ("right.isfinite() & ~half.isfinite()", "right.isfinite() & (right.abs() > 65504)"),
)
_misconception(
    "less than a normal number",
    "numbers count as vanished that are small in float16, and not 0.",
    1,
    ("(half == 0)", "(half.abs() < 2 ** -14)"),
)
_misconception(
    "only what lies above counts",
    "numbers that lie below the right one have negative errors, which are never the largest.",
    2,
    ("((half - right) / right).abs()", "((half - right) / right.abs())"),
)
_misconception(
    "compared in float16",
    "the difference is that from the right number as float16 rounds it.",
    2,
    ("((half - right) / right).abs()", "((half - right.half().float()).half().float() / right).abs()"),
)
_misconception(
    "what float32 can't hold is counted",
    "numbers that are not finite in float32 either are counted as overflowed.",
    2,
    ("overflowed = right.isfinite() & ~half.isfinite()", "overflowed = ~half.isfinite()"),
)
_misconception(
    "infinities only",
    "a number that is NaN in float16 alone is not counted as overflowed.",
    2,
    ("right.isfinite() & ~half.isfinite()", "right.isfinite() & half.isinf()"),
)
_misconception(
    "a difference of two counts",
    "what is not finite in float32 is taken off the count, though float16 may have made something"
    " finite of it.",
    2,
    ("int(overflowed.sum())", "int((~half.isfinite()).sum() - (~right.isfinite()).sum())"),
)
_misconception(
    "a difference of two counts of zeros",
    "what is 0 in float32 is taken off the count, though it may be none in float16.",
    2,
    ("int(vanished.sum())", "int((half == 0).sum() - (right == 0).sum())"),
)
_misconception(
    "zeros that are right",
    "numbers that are 0 in float32, too, are counted as vanished.",
    2,
    ("(half == 0) & (right != 0)", "half == 0"),
)
_misconception(
    "vanished counts as an error",
    "numbers that have vanished make the largest relative error 1.",
    2,
    (" & ~overflowed & ~vanished", " & ~overflowed"),
)
_misconception(
    "overflow counts as an error",
    "numbers that have overflowed make the largest relative error infinite.",
    2,
    (" & ~overflowed & ~vanished", " & ~vanished"),
)
_misconception(
    "NaN counts as an error",
    "where the right number is NaN the largest relative error is NaN.",
    2,
    ("rest = right.isfinite() &", "rest = ~right.isinf() &"),
)
_misconception(
    "a sign in the divisor",
    "the error is divided by the right number and not by its size: errors of negative numbers are"
    " negative, and never the largest.",
    2,
    ("((half - right) / right).abs()", "((half - right).abs() / right)"),
)
_misconception(
    "the absolute error",
    "the error is not divided by the size of the right number.",
    2,
    ("((half - right) / right).abs()", "(half - right).abs()"),
)
_misconception(
    "the mean error",
    "the errors are averaged, so that one bad number among many is hardly seen.",
    2,
    ("max(errors, default=0.0)", "sum(errors) / max(1, len(errors))"),
)
_misconception(
    "by the size of the wrong one",
    "the error is divided by float16's number and not by the right one.",
    2,
    ("(half - right) / right", "(half - right) / half"),
)
_misconception(
    "one sign of errors",
    "only numbers that have become larger count as errors.",
    2,
    ("((half - right) / right).abs()", "((half - right) / right)"),
)
_misconception(
    "counts exchanged",
    "what has vanished stands where what overflowed belongs.",
    1,
    ("int(overflowed.sum()), int(vanished.sum())", "int(vanished.sum()), int(overflowed.sum())"),
)


@worse_in_half.alternate("number by number")
def _(steps, x):
    report = []
    for name, function in steps:
        exact = function(x)
        rough = function(x.to(torch.float16))
        counts = Counter()
        errors = [0.0]
        for a, b in zip(exact.flatten().tolist(), rough.flatten().tolist()):
            if not math.isfinite(a):
                continue
            if not math.isfinite(b):
                counts["overflowed"] += 1
            elif a != 0 and b == 0:
                counts["vanished"] += 1
            elif a != 0:
                errors.append(abs((b - a) / a))
        report.append((name, counts["overflowed"], counts["vanished"], max(errors)))
        x = exact
    return report


@worse_in_half.alternate("first all right inputs")
def _(steps, x):
    inputs = [x]
    for _, function in steps:
        inputs.append(function(inputs[-1]))

    def judged(name, function, given, right):
        half = function(given.half()).double()
        right = right.double()
        fine = torch.isfinite(right)
        lost = fine & ~torch.isfinite(half)
        gone = (right != 0) & (half == 0) & fine
        kept = fine & ~lost & ~gone & (right != 0)
        error = torch.zeros_like(right)
        error[kept] = (half[kept] / right[kept] - 1).abs()
        worst = max(error.flatten().tolist(), default=0.0)
        return name, lost.count_nonzero().item(), gone.count_nonzero().item(), worst

    return [judged(*step, given, right) for step, given, right in zip(steps, inputs, inputs[1:])]


worse_in_half.equivalent(
    ("function(x.half()).float()", "function(x.half())"),
    ("function(x.half()).float()", "function(x.half()).double()"),
    ("function(given.half()).double()", "function(given.half())"),
    ("function(given.half()).double()", "function(given.half()).float()"),
    because="where the two meet float16 is widened in any case",
)
worse_in_half.equivalent(
    ("(half - right) / right", "(right - half) / right"),
    ("(b - a) / a", "(a - b) / a"),
    ("half[kept] / right[kept] - 1", "1 - half[kept] / right[kept]"),
    because="its size is taken",
)
worse_in_half.equivalent(
    (" & (half == 0) & fine", " & (half == 0)"),
    because="what is infinite in float32 is not 0 in float16",
)
