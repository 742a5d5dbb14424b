"""Lab 09, exercise 7: The NaN hunt"""

import math

import torch

from utils.checks import Case, Check, edited
from utils.compare import Tolerance

first_bad = Check(
    "first_bad",
    parts={"the first one": 2, "no trace left": 1, "the root": 1, "its gradient": 1},
    reads="The NaN hunt",
    tolerance=Tolerance(1e-5, 1e-30, "a root in float32"),
    claims=("that no hook is left",),
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

    def hunted(part, chain, x, shown, last="keep", times=1):
        arguments = {"parts": chain, "last": last}

        def play(subject):
            came = subject.drive("profiling:hunted", arguments, x, times, of="first_bad")
            return {"found": came["found"], "left": came["hooks left"]} if part == left else came["found"]

        places = {"['left']": "the number of hooks left on the model"}
        return Case(part, play, "first_bad", shown, places)

    a, b, c, d = draw.sample(("embed", "up", "down", "norm", "head", "mix"), 4)
    good = (draw.tensor((2, 3)) / 4).abs() + 0.5
    huge, zero, minus = good * 100, good * 0, -good
    n = draw.integer(2, 6)
    yield hunted(first, {a: "exp", b: "log"}, huge, f"{a}: exp, {b}: log, of large numbers")
    yield hunted(first, {a: "tanh", b: "exp"}, good, f"{a}: tanh, {b}: exp, all finite")
    yield hunted(first, {a: "relu", b: "log", c: "tanh"}, minus, f"{a}: relu, {b}: log, {c}: tanh, below 0")
    yield hunted(first, {a: f"times {n}", b: "log", c: "tanh"}, minus, f"{a}: times, {b}: log, {c}: tanh, below 0")
    mixed = good.clone()
    mixed[0, 0], mixed[1, 1] = 0.0, -1.0
    yield hunted(first, {a: "tanh", b: "log"}, mixed, f"{a}: tanh, {b}: log, of 0 and of less")
    yield hunted(first, {a: {b: "exp", c: "log"}, d: "log"}, huge, f"{a} with {b}: exp and {c}: log inside")
    deep = {a: {b: {c: "tanh", d: "log"}, d: "tanh"}, b: "tanh"}
    yield hunted(first, deep, minus, "three deep")
    yield hunted(first, {a: "tanh"}, zero, "the model's own last operation", last="over itself")
    inner = {a: {"parts": {b: "tanh"}, "last": "log"}, c: "tanh"}
    yield hunted(first, inner, minus, f"{a}'s own last operation")
    bad = good.clone()
    bad[0, draw.integer(0, 2)] = draw.choice((math.nan, math.inf))
    yield hunted(first, {a: "keep", b: "tanh"}, bad, "an input that isn't finite")
    infinite = good.clone()
    infinite[1, 0] = -math.inf
    yield hunted(first, {a: "tanh", b: "keep"}, infinite, "an input of -inf, which tanh makes finite")
    yield hunted(first, {a: "keep", b: "tanh"}, infinite, "an input of -inf, kept")
    yield hunted(first, {a: "exp", b: "over itself"}, huge, "inf first, then NaN")
    # the same module twice: the second call goes wrong
    yield hunted(first, {a: "exp", b: "times 300", c: f"same as {a}"}, good, f"{a} is called twice, the second time with large numbers")
    yield hunted(first, {a: "tanh", b: "over 0", c: f"same as {a}"}, zero, f"{a} is called twice, around {b}")
    one = torch.zeros(2, 3) + 0.5
    one[draw.integer(0, 1), draw.integer(0, 2)] = 0.0
    yield hunted(first, {a: "keep", b: "log", c: "exp"}, one, "a single infinity")

    yield hunted(left, {a: "exp", b: {c: "log"}}, huge, "one call", times=1)
    yield hunted(left, {a: {b: "tanh"}, c: "tanh"}, good, "two calls, all finite", times=2)
    yield hunted(left, {a: "tanh", b: {c: "log"}}, minus, "three calls", times=3)

    def rooted(part, x, upstream, shown):
        entry = "value" if part == root else "gradient"

        def play(subject):
            return subject.drive("profiling:rooted", x, upstream, of="safe_root")[entry]

        return Case(part, play, "safe_root", shown)

    for dtype in (torch.float32, torch.float64):
        x = draw.tensor((3, 4), dtype)
        x[0, 0] = 0
        x[1, :2] = torch.tensor([9.0, -4.0])
        yield rooted(root, x, torch.ones_like(x), f"{dtype}, both signs, and 0")
        yield rooted(slope, x, draw.tensor((3, 4), dtype), f"{dtype}, both signs, and 0")
    tiny = torch.tensor([1e-30, 4e-12, 1e-6, 0.0])
    line = torch.tensor([2.0, 0.0, -0.0, -3.0, 1e30])
    for part in (root, slope):
        yield rooted(part, tiny, torch.ones(4), "numbers near 0")
        yield rooted(part, line, draw.tensor((5,)), "0, -0, and a large one")
        yield rooted(part, torch.tensor(float(draw.integer(-4, 4))), torch.tensor(2.0), "no dimensions")
        yield rooted(part, torch.zeros(2, 0), torch.zeros(2, 0), "no elements")
        yield rooted(part, -good, draw.tensor((2, 3)), "all negative")
        yield rooted(part, good, draw.tensor((2, 3)), "all positive")
    yield rooted(root, torch.tensor([math.nan, 4.0, -1.0, 0.0]), torch.ones(4), "a NaN among them")
    yield rooted(root, torch.tensor([math.inf, -math.inf, 4.0]), torch.ones(3), "infinities")
