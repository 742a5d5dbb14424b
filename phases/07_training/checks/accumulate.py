"""Lab 07, exercise 6: A big batch in pieces"""

import torch
from torch.nn import functional as F

from utils.checks.exercise import Case, Check, Place, edited
from utils.checks.lab_solution import lab_solution

from .shared import SUMS

accumulate = Check(
    "accumulate",
    parts={"unequal parts": 1, "old gradients": 1, "one graph at a time": 1},
    reads="A big batch in pieces",
    tolerance=SUMS,
)


@accumulate.reference
def _(model, parts):
    counted = sum(int((targets != -100).sum()) for _, targets in parts)
    for parameter in model.parameters():
        parameter.grad = None
    found = 0.0
    for x, targets in parts:
        logits = model(x)
        wanted = F.one_hot(targets.clamp(min=0), logits.shape[1]) * (targets != -100)[:, None]
        loss = -(logits.log_softmax(-1) * wanted).sum() / counted
        loss.backward()
        found += loss.item()
    return found


@accumulate.cases
def _(draw):
    unequal, old, alive = accumulate.parts

    def asked(part, rows, dropped, before=None):
        """Parts of so many rows, of which so many count for nothing."""
        weights = [draw.tensor((3, 4)), draw.tensor((4, 5))]
        parts = []
        for n, without in zip(rows, dropped, strict=True):
            targets = draw.tensor((n,), torch.int64).abs() % 5
            targets[:without] = -100
            parts.append((draw.tensor((n, 3)), targets))

        def play(subject):
            came = subject.drive("training:accumulated", weights, parts, before)
            names = ("rows", "alive") if part == alive else ("loss", "gradients")
            return [came[name] for name in names]

        shown = f"parts of {rows} rows, {dropped} of which don't count"
        places = {"[0]": "the rows of each call", "[1]": "graphs alive when the model is called"}
        if part != alive:
            places = {"[0]": "the loss", "[1]": Place("the gradients", returned=False)}
        return Case(part, play, shown=shown, places=places)

    n = draw.integer(4, 7)
    yield asked(unequal, [n, 2, 1], [0, 0, 0])
    yield asked(unequal, [n, n], [n - 1, 1])
    yield asked(unequal, [3, 2, 4], [1, 2, 0])
    yield asked(unequal, [2, 3], [2, 0])
    yield asked(unequal, [n], [2])
    yield asked(unequal, [3, 3, 3], [0, 0, 0])
    yield asked(old, [n, 2], [1, 0], 1.0)
    yield asked(old, [1, 2, n], [0, 2, 1], -0.5)
    yield asked(alive, [n, 2, 3], [0, 0, 0])
    yield asked(alive, [2, n, 1, 2], [0, 1, 0, 2], 1.0)
    yield asked(alive, [2, 3, n, 1], [2, 3, 1, 0])  # none counts, and others follow


_accumulate = lab_solution(__name__, "accumulate")


def _misconception(name, explanation, earns, *edits):
    accumulate.misconception(name, explanation, earns=earns)(edited(_accumulate, *edits))


_COUNTED = "sum((int((targets != -100).sum()) for _, targets in parts))"
_misconception(
    "the mean of the means",
    "each part has the same weight, however many of its rows count; and a part in which none does"
    " makes the loss NaN.",
    1,
    (_COUNTED, "len(parts)"),
    ("reduction='sum'", "reduction='mean'"),
)
_misconception(
    "the sum of the means",
    "the parts' means are added up, so that more parts make a larger gradient.",
    1,
    (_COUNTED, "1"),
    ("reduction='sum'", "reduction='mean'"),
)
_misconception(
    "the sum over all rows",
    "the losses of all rows are added up and never divided by their number.",
    1,
    (_COUNTED, "1"),
)
_misconception(
    "rows that don't count are counted",
    "the sum is divided by all rows, those with -100 included.",
    1,
    (_COUNTED, "sum((len(targets) for _, targets in parts))"),
)
_misconception(
    "the last part alone",
    "the gradients are those of the last part alone, as where they are cleared before each.",
    1,
    ("        loss = F", "        model.zero_grad()\n        loss = F"),
)
_misconception(
    "old gradients kept",
    "what was in `.grad` before is added to.",
    2,
    ("model.zero_grad()", "pass"),
)
_misconception(
    "graphs of earlier parts",
    "a part's graph is still alive when the next begins, as where it is walked back later, or kept after it was.",
    2,
    ("        loss.backward()\n        total += loss.item()", "        total = total + loss"),
    ("return total", "total.backward()\n    return total.item()"),
)
_misconception(
    "a graph that nobody walks back",
    "where no row of a part counts, `backward` is left out, and its graph is alive when the next begins.",
    2,
    ("        loss.backward()", "        if loss == 0:\n            continue\n        loss.backward()"),
)
_misconception(
    "one big batch",
    "all parts are put together again, and the model is called once.",
    2,
    ("for x, targets in parts:", "for x, targets in [tuple(map(torch.cat, zip(*parts)))]:"),
)
_misconception(
    "a tensor for a float",
    "the loss that is returned is a tensor.",
    1,
    ("return total", "return torch.tensor(total)"),
)
_misconception(
    "the last part's loss",
    "the loss that is returned is that of one part.",
    1,
    ("total += loss.item()", "total = loss.item()"),
)


@accumulate.alternate("weighted means")
def _(model, parts):
    rows = [int(targets.ne(-100).sum()) for _, targets in parts]
    for parameter in model.parameters():
        parameter.grad = None
    found = 0.0
    for (x, targets), n in zip(parts, rows):
        with torch.set_grad_enabled(n > 0):  # nobody would walk back through its graph
            logits = model(x)
        if n > 0:
            share = F.cross_entropy(logits, targets) * (n / sum(rows))
            share.backward()
            found += float(share.detach())
    return found


@accumulate.alternate("sums first, divided in the end")
def _(model, parts):
    weights = list(model.parameters())
    sums = [torch.zeros_like(w) for w in weights]
    total, count = 0.0, 0
    for x, targets in parts:
        loss = F.cross_entropy(model(x), targets, reduction="none").sum()
        for kept, g in zip(sums, torch.autograd.grad(loss, weights)):
            kept += g
        total += loss.item()
        count += int((targets >= 0).sum())
    for w, g in zip(weights, sums):
        w.grad = g / count
    return total / count


accumulate.equivalent(
    ("int((targets != -100).sum())", "(targets != -100).sum()"),
    ("(targets != -100)", "(targets > -100)"),
    ("targets >= 0", "targets >= -1"),
    ("n > 0", "n != 0"),
    because="it is the same number: a target is a class or -100",
)
accumulate.equivalent(
    ("float(share.detach())", "float(share)"),
    ("(0.0, 0)", "(0, 0.0)"),
    because="the number is the same",
)
