"""Lab 09, exercise 6: The NaN hunt"""

import math

import torch

from hood.judge.checks.compare import Tolerance
from hood.judge.checks.exercise import Case, Check
from utils.drivers.profiling import Chain

first_bad = Check(
    "first_bad",
    parts={"the first one": 2, "no trace left": 1, "the root": 1, "its gradient": 1},
    reads="The NaN hunt",
    tolerance=Tolerance(1e-5, 1e-30, "a root in float32"),
)


@first_bad.reference
class _:
    def first_bad(model, x):
        names = {module: name for name, module in model.named_modules()}
        found, handles = [], []

        def hook(module, args, output):
            numbers = output.detach().double().flatten().tolist()
            if not all(map(math.isfinite, numbers)):
                fine = all(map(math.isfinite, args[0].detach().double().flatten().tolist()))
                what = "nan" if any(map(math.isnan, numbers)) else "inf"
                found.append((names[module], what, fine))

        for module in names:
            handles.append(module.register_forward_hook(hook))
        model(x)
        for handle in handles:
            handle.remove()
        return (found + [None])[0]

    def safe_root(x):
        class Root(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                root = x.sqrt()
                root[x <= 0] = 0
                ctx.save_for_backward(x, root)
                return root

            @staticmethod
            def backward(ctx, grad):
                x, root = ctx.saved_tensors
                slope = 1 / (2 * root)
                slope[x <= 0] = 0
                return grad * slope

        return Root.apply(x)


@first_bad.cases
def _(draw):
    first, left, root, slope = first_bad.parts

    def hunted(part, chain, x, shown, last="keep", first="keep", times=1, training=True):
        arguments = {"parts": chain, "last": last, "first": first}

        def play(subject):
            came = subject.drive("profiling:hunted", arguments, x, times, training, of="first_bad")
            fact = {"named": all(named(one) for one in came["found"])}
            return fact | came if part == left else fact | {"found": came["found"]}

        def named(one):
            """Whether the result's name is a module's name. If the result has no name, this is True, too."""
            return not (isinstance(one, (tuple, list)) and one and isinstance(one[0], str)) or one[0] in names

        names = {name for name, _ in Chain(**arguments).named_modules()}
        places = {
            "['named']": "The returned name is not in `model.named_modules()`.",
            **{
                f"['found'][{at}][{k}]": what
                for at in range(times)
                for k, what in enumerate(("the module's name", "whether the output has NaN or inf", "whether its input was finite"))
            },
            "['found']": "the result of `first_bad`",
            "['hooks left']": "A hook remains, on the model or for all modules.",
            "['as before']": (
                "The model has changed: its mode or one of its attributes differs from before."
            ),
        }
        return Case(part, play, "first_bad", shown, places)

    a, b, c, d = draw.sample(("embed", "up", "down", "norm", "head", "mix"), 4)
    good = (draw.tensor((2, 3)) / 4).abs() + 0.5
    huge, zero, minus = good * 200, good * 0, -good
    n = draw.integer(2, 6)
    yield hunted(first, {a: "exp", b: "log"}, huge, f"{a}: exp, {b}: log, given large numbers")
    yield hunted(first, {a: "tanh", b: "exp"}, good, f"{a}: tanh, {b}: exp, all finite")
    yield hunted(first, {a: "relu", b: "log", c: "tanh"}, minus, f"{a}: relu, {b}: log, {c}: tanh, given numbers below 0")
    yield hunted(first, {a: f"times {n}", b: "log", c: "tanh"}, minus, f"{a}: times, {b}: log, {c}: tanh, given numbers below 0")
    mixed = good.clone()
    mixed[0, 0], mixed[1, 1] = 0.0, -1.0
    yield hunted(first, {a: "tanh", b: "log"}, mixed, f"{a}: tanh, {b}: log, given 0 and a negative number")
    yield hunted(first, {a: {b: "exp", c: "log"}, d: "log"}, huge, f"{a} with {b}: exp and {c}: log inside")
    deep = {a: {b: {c: "tanh", d: "log"}, d: "tanh"}, b: "tanh"}
    yield hunted(first, deep, minus, "three levels deep")
    yield hunted(first, {a: "tanh"}, zero, "the model's own last operation", last="over itself")
    inner = {a: {"parts": {b: "tanh"}, "last": "log"}, c: "tanh"}
    yield hunted(first, inner, minus, f"{a}'s own last operation")
    for one in (math.nan, math.inf):
        bad = good.clone()
        bad[0, draw.integer(0, 2)] = one
        yield hunted(first, {a: "keep", b: "tanh"}, bad, f"an input with {one}")
    infinite = good.clone()
    infinite[1, 0] = -math.inf
    yield hunted(first, {a: "tanh", b: "log"}, infinite, "an input of -inf, which tanh makes finite before the log")
    yield hunted(first, {a: "keep", b: "tanh"}, zero, "the model's own first operation", first="over 0")
    signs = huge.clone()
    signs[draw.integer(0, 1)] *= -1
    yield hunted(first, {a: "times 3e38", b: "tanh"}, signs, "infinities of both signs")
    yield hunted(first, {a: "log", b: "keep", c: "relu"}, zero, f"{a}: log of 0, and {c}: relu makes it finite")
    yield hunted(first, {a: {b: "log"}, c: "relu"}, zero, f"log of 0 in {a}, and {c}: relu makes it finite")
    yield hunted(first, {a: "keep", b: "tanh"}, torch.full((2, 2), 3e38), "finite numbers with a huge sum")
    yield hunted(first, {a: "times 10", b: "tanh"}, torch.full((2, 2), 3e38), "finite numbers with a huge sum, which a module makes infinite")
    yield hunted(first, {a: "tanh", b: "keep"}, infinite, "an input of -inf, which tanh makes finite")
    yield hunted(first, {a: "keep", b: "tanh"}, infinite, "an input of -inf, which no module changes")
    yield hunted(first, {a: "exp", b: "over itself"}, huge, "inf first, then NaN")
    # the same module is called twice, and the second call goes wrong
    yield hunted(first, {a: "exp", b: "times 300", c: f"same as {a}"}, good, f"{a} is called twice, the second time with large numbers")
    yield hunted(first, {a: "tanh", b: "over 0", c: f"same as {a}"}, zero, f"{a} is called twice, around {b}")
    one = torch.zeros(2, 3) + 0.5
    one[draw.integer(0, 1), draw.integer(0, 2)] = 0.0
    yield hunted(first, {a: "keep", b: "log", c: "exp"}, one, "a single infinity")

    yield hunted(left, {a: "exp", b: {c: "log"}}, huge, "one call", times=1)
    yield hunted(left, {a: {b: "tanh"}, c: "tanh"}, good, "two calls, all finite", times=2)
    yield hunted(left, {a: "tanh", b: {c: "log"}}, minus, "three calls", times=3)
    yield hunted(left, {a: "tanh", b: "log"}, minus, "a model in evaluation mode", training=False)

    def rooted(part, x, upstream, shown):
        entry = "value" if part == root else "gradient"
        low, above = x <= 0, (x > 0) & (upstream != 0)

        def play(subject):
            came = subject.drive("profiling:rooted", x, upstream, of="safe_root")[entry]
            whole = isinstance(came, torch.Tensor) and came.shape == x.shape
            zeros = came == 0 if whole else low
            return {"zero": bool(zeros[low].all()), "more": not bool(zeros[above].any()) or not whole, "all": came}

        what = "root" if part == root else "gradient"
        places = {
            "['zero']": f"The {what} must be 0 wherever x is 0 or negative. At some places it is not 0.",
            "['more']": f"The {what} is 0 at a place where x is positive.",
            "['all']": f"the {what}",
        }
        return Case(part, play, "safe_root", shown, places)

    for dtype in (torch.float32, torch.float64):
        x = draw.tensor((3, 4), dtype)
        x[0, 0] = 0
        x[1, :2] = torch.tensor([9.0, -4.0])
        yield rooted(root, x, torch.ones_like(x), f"{dtype}, both signs, and 0")
        yield rooted(slope, x, draw.tensor((3, 4), dtype), f"{dtype}, both signs, and 0")
    tiny = torch.tensor([1e-40, 1e-30, 4e-12, 1e-6, 0.0])
    line = torch.tensor([2.0, 0.0, -0.0, -3.0, 1e30])
    wide = torch.tensor([1e-200, 1e-60, 2.0, 1e300], dtype=torch.float64)
    for part in (root, slope):
        yield rooted(part, wide, torch.ones_like(wide), "float64, beyond float32")
        yield rooted(part, tiny, torch.ones(5), "numbers near 0")
        yield rooted(part, line, draw.tensor((5,)), "0, -0, and a large one")
        yield rooted(part, torch.tensor(float(draw.integer(-4, 4))), torch.tensor(2.0), "no dimensions")
        yield rooted(part, torch.zeros(2, 0), torch.zeros(2, 0), "no elements")
        yield rooted(part, -good, draw.tensor((2, 3)), "all negative")
        yield rooted(part, good, draw.tensor((2, 3)), "all positive")
    yield rooted(root, torch.tensor([math.nan, 4.0, -1.0, 0.0]), torch.ones(4), "one number is NaN")
    yield rooted(root, torch.tensor([math.inf, -math.inf, 4.0]), torch.ones(3), "infinities")
