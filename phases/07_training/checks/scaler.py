"""Lab 07, exercise 7: A scale for small gradients"""

import math

import torch

from utils.checks.exercise import Case, Check, Place, edited
from utils.checks.lab_solution import lab_solution

scaler = Check(
    "Scaler",
    parts={"scaled and unscaled": 1, "skipped steps": 1, "growth": 1},
    reads="Sixteen bits",
)


@scaler.reference
class Scaler:
    def __init__(self, scale, growth, backoff, interval):
        self.scale = scale
        self.factors = growth, backoff
        self.interval, self.row = interval, 0

    def scaled(self, loss):
        return self.scale * loss

    def unscaled(self, grads):
        wide = [None if g is None else g.to(torch.float32) for g in grads]
        finite = all(math.isfinite(n) for g in wide if g is not None for n in g.flatten().tolist())
        found = [None if g is None else g / self.scale for g in wide] if finite else None
        self.row = self.row + 1 if finite else 0
        if not finite:
            self.scale = self.scale * self.factors[1]
        elif self.row == self.interval:
            self.scale, self.row = self.scale * self.factors[0], 0
        return found


@scaler.cases
def _(draw):
    both, skipped, growth = scaler.parts
    inf = math.inf

    def good(dtype=torch.float32):
        return [draw.tensor((3,), dtype), None, draw.tensor((2, 2), dtype)]

    def bad(value, where):
        grads = good()
        grads[where].view(-1)[draw.integer(0, 2)] = value
        return grads

    def history(part, lists, interval, scale=1024.0, factors=(2.0, 0.5), shown=""):
        """One call after the other: what it returns; or whether it is None, and the scale."""

        def play(subject):
            made = subject(scale, *factors, interval)
            came = []
            for grads in lists:
                found = made.call("unscaled", grads)
                came.append(found if part == both else (found is None, made.get("scale")))
            return came

        places = {}
        for at in range(len(lists)):
            places[f"[{at}][0]"] = f"whether step {at + 1} returns None"
            places[f"[{at}][1]"] = f"the scale after step {at + 1}"
        if part == both:
            places = {f"[{at}]": f"what step {at + 1} returns" for at in range(len(lists))}
        return Case(part, play, shown=shown, places=places)

    for scale in (1.0, 4096.0, 0.25):
        loss = draw.tensor(())

        def scaled(subject, scale=scale, loss=loss):
            return subject(scale, 2.0, 0.5, 9).call("scaled", loss)

        yield Case(both, scaled, shown=f"a loss, scale {scale}")
    weight = draw.tensor((3,))

    def backwards(subject):
        return subject.drive("training:scaled_gradient", (4096.0, 2.0, 0.5, 9), weight)

    where = Place("the gradient that `scaled(loss).backward()` leaves in a weight", returned=False)
    yield Case(both, backwards, shown="a loss with a graph", places={"": where})
    tiny = torch.tensor([2.0**-24, 3 * 2.0**-20, 1.0, -(2.0**-24)], dtype=torch.float16)
    yield history(both, [[tiny, None]], 9, 2.0**16, shown="tiny gradients in float16")
    yield history(both, [good(torch.float16)], 9, 8.0, shown="gradients in float16")
    yield history(both, [[*good(), *good(torch.float16)]], 9, 3.0, shown="both dtypes")
    yield history(both, [good(torch.float16)], 9, 1.0, shown="float16, a scale of 1")
    yield history(both, [[None, None], []], 9, shown="no gradients")
    yield history(both, [good()], 1, 8.0, shown="a step after which the scale grows")
    large = [torch.tensor([60000.0], dtype=torch.float16)]
    yield history(both, [large], 9, 2.0**-4, shown="a scale below 1")
    for value, where in ((inf, 0), (-inf, 2), (math.nan, 0), (math.nan, 2)):
        lists = [good(), bad(value, where), good()]
        yield history(skipped, lists, 9, shown=f"{value} in the second of three")
    half = [torch.ones(2, dtype=torch.float16), torch.tensor([[1.0, inf]], dtype=torch.float16)]
    yield history(skipped, [half, half], 9, 8.0, (4.0, 0.25), shown="two steps in float16")
    yield history(skipped, [bad(inf, 2)] * 3, 1, 8.0, (4.0, 0.25), shown="three steps, none good")
    many = [torch.full((2,), 60000.0, dtype=torch.float16), torch.full((2, 2), 3e38)]
    shown = "large gradients, each of them finite"
    yield history(skipped, [many, [many[0]], [many[1]]], 9, 8.0, shown=shown)
    yield history(growth, [good() for _ in range(7)], 3, shown="seven good steps, interval 3")
    yield history(growth, [good() for _ in range(3)], 1, 3.0, (4.0, 0.5), shown="interval 1")
    lists = [good() for _ in range(3)]
    yield history(growth, lists, 1, 2.0**23, shown="interval 1, a large scale")
    lists = [good(), good(), bad(inf, 2), good(), good(), good(), good()]
    yield history(growth, lists, 3, shown="two good steps, a bad one, four good ones")
    lists = [good(), good(), bad(inf, 2), bad(math.nan, 0), good(), good()]
    yield history(growth, lists, 2, 64.0, (8.0, 0.25), shown="two good, two bad, two good")
    yield history(growth, [[None], [], good()], 2, shown="steps without gradients")


_Right = lab_solution(__name__, "Scaler")


def _misconception(name, explanation, earns, *edits):
    scaler.misconception(name, explanation, earns=earns)(edited(_Right, *edits))


_misconception(
    "divided in float16",
    "gradients are divided before they are widened, and the small ones are lost once more.",
    2,
    ("g.float() / self.scale", "(g / self.scale).float()"),
)
_misconception(
    "left in float16",
    "gradients come back in the dtype in which they came.",
    2,
    ("g.float() / self.scale", "g / self.scale"),
)
_misconception(
    "multiplied once more",
    "gradients are multiplied by the scale, and not divided.",
    2,
    ("g.float() / self.scale", "g.float() * self.scale"),
)
_misconception(
    "None left out",
    "parameters without a gradient are left out, and all after them get another's.",
    2,
    (
        "[None if g is None else g.float() / self.scale for g in grads]",
        "[g.float() / self.scale for g in grads if g is not None]",
    ),
)
_misconception(
    "NaN is finite",
    "gradients with a NaN are handed on.",
    {"scaled and unscaled": 1},
    ("torch.isfinite(g).all()", "not torch.isinf(g).any()"),
)
_misconception(
    "minus infinity is finite",
    "gradients with -inf are handed on.",
    {"scaled and unscaled": 1, "growth": 1},
    ("torch.isfinite(g).all()", "not (g.isnan() | (g == float('inf'))).any()"),
)
_misconception(
    "the first gradient alone",
    "only the first gradient is looked at.",
    {"scaled and unscaled": 1},
    ("for g in grads if g is not None))", "for g in grads[:1] if g is not None))"),
)
_misconception(
    "the last gradient alone",
    "only the last gradient that is there is looked at.",
    {"scaled and unscaled": 1},
    (
        "all((torch.isfinite(g).all() for g in grads if g is not None))",
        "all([True, *(torch.isfinite(g).all() for g in grads if g is not None)][-1:])",
    ),
)
_misconception(
    "a loss without its graph",
    "what `scaled` returns has no graph, and `backward` can't go back from it.",
    2,
    ("return loss * self.scale", "return torch.tensor(loss.item() * self.scale)"),
)
_misconception(
    "a sum that overflows",
    "a step is skipped where all numbers are finite and only what is summed over them is not.",
    2,
    ("torch.isfinite(g).all()", "torch.isfinite(g.sum())"),
)
_misconception(
    "no backing off",
    "a step is skipped, and the next one overflows again: the scale stays.",
    1,
    ("self.scale *= self.backoff", "pass"),
)
_misconception(
    "grows after a skip",
    "the scale is multiplied by `growth` after a step that overflowed.",
    1,
    ("self.scale *= self.backoff", "self.scale *= self.growth"),
)
_misconception(
    "good steps, not in a row",
    "a skipped step does not begin the count anew.",
    2,
    ("            self.good = 0\n            return None", "            return None"),
)
_misconception(
    "the count never begins anew",
    "the scale grows once, after `interval` steps, and then never again.",
    2,
    ("            self.scale *= self.growth\n            self.good = 0", "            self.scale *= self.growth"),
)
_misconception(
    "grows after each good step",
    "the interval is not waited for.",
    1,
    ("if self.good == self.interval:", "if True:"),
)
_misconception(
    "one step late",
    "the scale grows one step after the interval is full.",
    2,
    ("self.good == self.interval", "self.good > self.interval"),
)
_misconception(
    "divided by the new scale",
    "gradients are divided by the scale after it has grown, and not by that of their loss.",
    2,
    (
        "        found = [None if g is None else g.float() / self.scale for g in grads]\n",
        "",
    ),
    ("return found", "return [None if g is None else g.float() / self.scale for g in grads]"),
)


@scaler.alternate("a history")
class _History:
    def __init__(self, scale, growth, backoff, interval):
        self.scale = scale
        self.rules = growth, backoff, interval
        self.history = []

    def scaled(self, loss):
        return self.scale * loss

    def unscaled(self, grads):
        growth, backoff, interval = self.rules
        wide = [g.to(torch.float32) / self.scale if g is not None else None for g in grads]
        there = [g.flatten() for g in grads if g is not None]
        if there and not torch.cat([g.float() for g in there]).isfinite().all().item():
            self.history.clear()
            self.scale = self.scale * backoff
            return None
        self.history.append(True)
        if len(self.history) >= interval:
            self.history, self.scale = [], self.scale * growth
        return wide


@scaler.alternate("a sum that is not finite")
class _Sum:
    def __init__(self, scale, growth, backoff, interval):
        self.scale, self.left = scale, interval
        self.growth, self.backoff, self.interval = growth, backoff, interval

    def scaled(self, loss):
        return loss.mul(self.scale)

    def unscaled(self, grads):
        total = sum((g * 0).sum() for g in grads if g is not None)
        if math.isnan(total):
            self.scale, self.left = self.scale * self.backoff, self.interval
            return None
        before = self.scale
        self.left -= 1
        if not self.left:
            self.scale, self.left = self.scale * self.growth, self.interval
        return [g if g is None else g.float().mul(1 / before) for g in grads]


scaler.equivalent(
    ("loss * self.scale", "(loss * self.scale).float()"),
    ("self.scale * loss", "(self.scale * loss).float()"),
    ("loss.mul(self.scale)", "loss.mul(self.scale).float()"),
    because="the losses are float32",
)
scaler.equivalent(
    ("self.good == self.interval", "self.good >= self.interval"),
    ("len(self.history) >= interval", "len(self.history) == interval"),
    because="the count begins anew when it has got there",
)
scaler.equivalent(
    (".all().item()", ".all()"),
    ("g.float() for g in there", "g for g in there"),
    ("g.float() for g in there", "g.double() for g in there"),
    ("append(True)", "append(False)"),
    because="what is asked is whether all are finite, and how many there were",
)

scaler.equivalent(
    ("(g * 0).sum()", "(g * 0).mean()"),
    ("math.isnan(total)", "total"),
    because="the total is NaN where a number is not finite, and otherwise 0",
)
