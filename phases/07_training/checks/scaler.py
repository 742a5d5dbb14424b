"""Lab 07, exercise 7: A scale for small gradients"""

import math

import torch

from hood.judge.checks.exercise import Case, Check, Place

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
        """A case about several calls: what each returns, or whether it returns None and the scale after it."""

        def play(subject):
            made = subject(scale, *factors, interval)
            came = []
            for grads in lists:
                found = made.call("unscaled", grads)
                came.append(found if part == both else (found is None, made.get("scale")))
            return came

        places = {}
        for at in range(len(lists)):
            places[f"[{at}][0]"] = f"step {at + 1} should return None, but returns gradients, or the other way round."
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
    yield history(growth, lists, 2, 64.0, (8.0, 0.25), shown="two good steps, two bad, two good")
    yield history(growth, [[None], [], good()], 2, shown="steps without gradients")
    yield history(growth, [bad(inf, 2), good(), good()], 2, shown="a bad step, two good ones")
