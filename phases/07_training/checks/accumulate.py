"""Lab 07, exercise 6: A big batch in pieces"""

import torch
from torch.nn import functional as F

from hood.judge.checks.exercise import Case, Check, Place
from hood.judge.checks.words import counted, listed

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
        """Parts with ``rows`` rows. In each part, the first ``dropped`` rows have a target of -100."""
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

        size = f"{listed(rows)} rows" if len(rows) > 1 else counted(*rows, "row")
        shown = f"parts of {size}, of which {listed(dropped)} don't count"
        if not any(dropped):
            shown = f"parts of {size}, all of which count"
        places = {"[0]": "the rows of each call", "[1]": "how many graphs are alive when the model is called"}
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
