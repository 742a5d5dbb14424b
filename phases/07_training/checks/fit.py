"""Lab 07, exercise 9: The whole loop, on an empty page"""

import math
from itertools import groupby

import torch
from torch.nn import functional as F

from hood.judge.checks.compare import Tolerance
from hood.judge.checks.exercise import Case, Check
from hood.judge.checks.words import counted, listed
from utils.drivers.training import band, sentences, steps_of_lines
from utils.minigpt import MiniGPTConfig, training_lines

fit = Check(
    "fit",
    parts={
        "plain steps": 1,
        "parts": 1,
        "clipping": 1,
        "sixteen bits": 1,
        "an overflow": 1,
        "held out": 1,
        "MiniGPT": 1,
    },
    reads="Sixteen bits",
    reads_by_part={
        "plain steps": "The five lines",
        "parts": "A big batch in pieces",
        "clipping": "How far to step",
        "held out": "MiniGPT from nothing",
        "MiniGPT": "The same curve",
    },
    tolerance=Tolerance(2e-3, 1e-3, "sums in another order, rounded to 16 bits in some steps"),
)


@fit.reference
def _(model, epochs, held_out, lr, warmup, max_norm, dtype, scale):
    """Computes the steps by hand, without torch's optimizer, scaler or schedule."""
    parameters = list(model.parameters())
    memory = [None] * len(parameters)
    log = {"losses": [], "norms": [], "rates": [], "held out": []}

    def loss_of(parts, counted):
        for x, targets in parts:
            logits = model(x).float()
            wanted = F.one_hot(targets.clamp(min=0), logits.shape[1]) * (targets != -100)[:, None]
            yield -(logits.log_softmax(-1) * wanted).sum() / counted

    def counted(parts):
        return sum((targets != -100).sum().item() for _, targets in parts)

    for steps in epochs:
        for parts in steps:
            model.train()
            sums, total = [torch.zeros_like(p) for p in parameters], 0.0
            with torch.autocast("cpu", dtype, enabled=dtype is not torch.float32):
                for loss in loss_of(parts, counted(parts)):
                    total += loss.item()
                    factor = scale if dtype is torch.float16 else 1.0
                    found = torch.autograd.grad(loss * factor, parameters)
                    sums = [a + b / factor for a, b in zip(sums, found, strict=True)]
            rate = lr * min(1, (len(log["rates"]) + 1) / warmup)
            norm = math.sqrt(sum(g.double().square().sum().item() for g in sums))
            log["rates"].append(rate)
            log["losses"].append(total)
            if not math.isfinite(norm):
                scale /= 2
                log["norms"].append(None)
                continue
            log["norms"].append(norm)
            clipped = [g * min(1.0, max_norm / (norm + 1e-6)) for g in sums]
            with torch.no_grad():
                for i, (p, g) in enumerate(zip(parameters, clipped, strict=True)):
                    memory[i] = g if memory[i] is None else 0.9 * memory[i] + g
                    p -= rate * memory[i]
        model.eval()
        with torch.no_grad():
            log["held out"].append(sum(x.item() for x in loss_of(held_out, counted(held_out))))
    return log


PLACES = {
    "['returned']['losses']": "the losses",
    "['returned']['norms']": "the norms",
    "['returned']['rates']": "the rates",
    "['returned']['held out']": "the losses on `held_out`",
    "['weights']": "the weights afterwards",
    "['calls']": "how often the model was called",
}


CURVES = {
    "float32, in parts": (torch.float32, (9, 5, 2)),
    "bfloat16": (torch.bfloat16, (16,)),
    "float16, in parts": (torch.float16, (7, 9)),
}
COLUMNS, MAX_NORM = 18, 100.0


def _same_curve(whole, other, dtype):
    """Whether the losses of a run are in the band around the losses of a run in float32."""
    widths = band(whole, torch.finfo(dtype).eps / 2, MAX_NORM, momentum=0.9)
    pairs = zip(whole["losses"], other["losses"], widths, strict=True)
    return all(abs(loss - mine) <= width for loss, mine, width in pairs)


def _called(number):
    """A message for each of the three facts about a call."""
    words = f"call {number + 1} of the model"
    return {
        f"['calls'][{number}][0]": f"{words} was not in the mode that the exercise asks for.",
        f"['calls'][{number}][1]": f"{words} built a graph where it must not, or built no graph where it must.",
        f"['calls'][{number}][2]": f"the dtype of the logits in {words}",
    }


def _left_out(number):
    """The message if a step was left out that must be made, or made that must be left out."""
    words = f"`norms[{number}]` is None, as if the step was left out, but the step must be made"
    return {f"['left out'][{number}]": f"{words}; or it is a number, but the step must be left out."}


def _step(parts):
    """The sizes of a step's parts in words."""
    rows = [len(x) for x, _ in parts]
    if len(rows) == 1:
        return f"of {counted(*rows, 'row')}"
    return f"in parts of {listed(rows)} rows"


def _in_words(epochs):
    """The steps of a run in words."""
    said = []
    for steps in epochs:
        runs = [(step, len(list(alike))) for step, alike in groupby(map(_step, steps))]
        said.append(
            ", ".join(f"{k} steps {step}" if k > 1 else f"a step {step}" for step, k in runs)
        )
    if len(said) == 1:
        return f"one epoch, {said[0]}"
    return "; ".join(f"epoch {number}, {steps}" for number, steps in enumerate(said, 1))


def _largest_scale(x, targets, first, second):
    """The scale that makes the largest number of the backward equal to float16's largest number."""
    weights = first.clone().requires_grad_(), second.clone().requires_grad_()
    sums = x @ weights[0]
    hidden = sums.tanh()
    logits = hidden @ weights[1]
    loss = F.cross_entropy(logits, targets)
    found = torch.autograd.grad(loss, [logits, hidden, sums, *weights])
    return torch.finfo(torch.float16).max / max(g.abs().max().item() for g in found)


@fit.cases
def _(draw):
    plain, parts, clipping, bits, overflow, held, minigpt = fit.parts

    def part(n, without=0):
        """A part of ``n`` rows, of which the last ``without`` rows don't count."""
        targets = draw.tensor((n,), torch.int64).abs() % 4
        targets[n - without :] = -100
        return draw.tensor((n, 3)) * 0.5, targets

    def asked(
        of, epochs, held_out, words, dropout=0.0, dtype=torch.float32, by=1.0, up=1.0, **more
    ):
        settings = {
            "epochs": epochs,
            "held_out": held_out,
            "lr": draw.choice((0.25, 0.5)),
            "warmup": 1,
            "max_norm": 100.0,
            "dtype": dtype,
            "scale": 1024.0,
            **more,
        }
        seed = draw.integer(0, 999)

        def play(subject):
            layers = [weights[0] * torch.tensor([[by], [1.0], [1.0]]), weights[1] * up]
            came = subject.drive("training:fitted", layers, dropout, settings, seed)
            if of not in (parts, bits, held):  # the values tell what the calls of the model would
                came = {"returned": came["returned"], "weights": came["weights"]}
            norms = came["returned"]["norms"]
            if len(norms) != sum(map(len, epochs)):
                return came
            return {"left out": [norm is None for norm in norms], **came}

        shown = f"{_in_words(epochs)}; {words}"
        calls = sum(len(step) for epoch in epochs for step in epoch) + len(epochs) * len(held_out)
        places = {**PLACES, **{k: v for n in range(calls) for k, v in _called(n).items()}}
        for number in range(sum(map(len, epochs))):
            places |= _left_out(number)
        return Case(of, play, shown=shown, places=places)

    weights = [draw.tensor((3, 5)) * 0.5, draw.tensor((5, 4)) * 0.5]
    n = draw.integer(4, 7)
    one = [part(3)]
    yield asked(plain, [[[part(n)]]], one, "warmup 1")
    yield asked(plain, [[[part(n)], [part(n)], [part(3)]]], one, "warmup 1")
    yield asked(plain, [[[part(4)]], [[part(n)], [part(n)]]], one, "warmup 2", warmup=2)
    yield asked(plain, [[[part(4)], [part(4)]], [[part(4)], [part(4)]]], one, "warmup 6", warmup=6)
    yield asked(plain, [[[part(4)], [part(n)]], [[part(4)], [part(4)]]], one, "warmup 3", warmup=3)
    yield asked(parts, [[[part(n), part(2), part(1)]]], one, "no target is -100")
    yield asked(parts, [[[part(n, n - 1), part(n, 1)]]], one, "some targets are -100")
    yield asked(
        parts,
        [[[part(2, 2), part(3)], [part(4, 1), part(1, 1)]]],
        one,
        "in some parts all targets are -100",
    )
    yield asked(parts, [[[part(n), part(2), part(3)]]], one, "dropout 0.5", dropout=0.5)
    for most in (0.05, 0.2):
        step = [part(n), part(2), part(3, 1)]
        # the rate is so large that even a clipped step changes the loss on `held_out`
        yield asked(clipping, [[step, [part(n)]]], one, f"max_norm {most}", max_norm=most, lr=2.0)
    for dtype in (torch.bfloat16, torch.float16):
        words = str(dtype).removeprefix("torch.")
        yield asked(bits, [[[part(n), part(3)]], [[part(4)]]], one, words, dtype=dtype)
        yield asked(bits, [[[part(n)], [part(n, 2), part(2)]]], one, f"{words}, max_norm 0.1", dtype=dtype, max_norm=0.1)  # fmt: skip
    # A row adds about 1.4 to the loss. If very many rows are added up in bfloat16, the sum stops at
    # 512. `cross_entropy` adds in blocks, which avoids this, but it never ends a block at a row
    # that doesn't count (here each 16th row).
    many = part(640)
    many[1][::16] = -100
    yield asked(bits, [[[many, part(3)]]], one, "bfloat16", dtype=torch.bfloat16)
    # only float16 uses the scale, so for bfloat16 it may be too large for float32
    words = "bfloat16, with a scale of 2^200"
    steps = [[[part(n)], [part(3)]]]
    yield asked(bits, steps, one, words, dtype=torch.bfloat16, scale=2.0**200)
    # If the target of a single row has a probability of at most 1/4, its logit has a gradient of
    # 3/4 or more. Times 2^17, this is too large for float16. With 24 rows and 2^16, all gradients
    # are far below the limit.
    x = part(1)[0]
    wrong = [(x, ((x @ weights[0]).tanh() @ weights[1]).argmin(1))]
    for warmup in (1, 4):
        epochs = [[wrong, [part(12), part(12)], [part(14), part(10)]], [[part(24)]]]
        yield asked(
            overflow, epochs, one, f"float16, warmup {warmup}",
            dtype=torch.float16, scale=2.0**17, warmup=warmup,
        )  # fmt: skip
    # The gradients of four steps are too large. The gradients of the fifth step and of the next
    # epoch fit, but with the first scale they would be too large.
    few = [(torch.cat([x, y]), torch.cat([wrong[0][1], t])) for y, t in (part(7), part(7))]
    again = [[wrong, wrong, wrong, wrong, [few[0]]], [[few[1]]]]
    yield asked(overflow, again, one, "float16", dtype=torch.float16, scale=2.0**20)
    # Both parts of a step are too large. The scale is halved only once for this step, so the next
    # step is too large, too.
    both = [[[*wrong, *wrong], wrong, [part(24)]]]
    words = "two parts of a step overflow"
    fits = _largest_scale(*wrong[0], *weights)
    yield asked(overflow, both, one, words, dtype=torch.float16, scale=2.8 * fits)
    # twice this scale is too large, and the weights hardly change
    row, words = [[wrong] * 12], "twelve good steps"
    yield asked(overflow, row, one, words, dtype=torch.float16, scale=0.7 * fits, lr=2.0**-20)
    # A gradient that is too large for 16 bits even with a scale of 1. With the scale, it is 6 times
    # too large, then 3 times, then 1.5 times, and then it fits. The rate is so small that clipping
    # makes no difference.
    loud = torch.cat([torch.tensor([[2.0**15]]), part(1)[0][:, 1:]], 1)
    first, up = weights[0] * torch.tensor([[2.0**-15], [1.0], [1.0]]), 32.0
    aim = ((loud @ first).tanh() @ weights[1]).argmin(1)
    fits = _largest_scale(loud, aim, first, weights[1] * up)
    yield asked(
        overflow, [[[(loud, aim)]] * 4], one, "the scale falls below 1", dtype=torch.float16, by=2.0**-15,
        up=up, scale=6 * fits, max_norm=0.05, lr=2.0**-20,
    )  # fmt: skip
    # only one row of one gradient is too large, because its weights are tiny and its inputs are
    # large
    x, targets = part(6)
    far = [[[(x * torch.tensor([2.0**14, 1.0, 1.0]), targets)], [part(8)], [part(8)]]]
    yield asked(overflow, far, one, "one row overflows", dtype=torch.float16, by=2.0**-14)
    # the optimizer has momentum from a first step, and one of two parts of the second step is too
    # large
    (quiet, aims), (x, targets) = part(4), part(6)
    quiet, loud = quiet * torch.tensor([0.0, 1.0, 1.0]), x * torch.tensor([2.0**14, 1.0, 1.0])
    later = [[[(quiet, aims)], [(loud, targets), part(4)], [part(8)]], [[part(8)]]]
    words = "one part of the second step overflows"
    yield asked(overflow, later, one, words, dtype=torch.float16, scale=2.0**13, by=2.0**-14)
    two = [part(n), part(2, 1)]
    yield asked(held, [[[part(4)]], [[part(4)]]], two, "no dropout")
    yield asked(held, [[[part(6)], [part(n)]], [[part(4)]]], two, "dropout 0.5", dropout=0.5)
    yield asked(held, [[[many]], [[part(n)]]], [part(3, 3), part(5)], "bfloat16, dropout 0.25", dropout=0.25, dtype=torch.bfloat16)  # fmt: skip

    inputs, targets = sentences(*training_lines(), COLUMNS)
    config = MiniGPTConfig(
        d_model=8, n_heads=draw.choice((2, 4)), n_layers=1, d_ff=16, context=COLUMNS
    )
    settings = {
        "lr": 0.05,
        "warmup": 4,
        "max_norm": MAX_NORM,
        "dtype": torch.float32,
        "scale": 1024.0,
    }
    seed = draw.integer(0, 10**6)

    def run(subject, steps, **more):
        given = {**settings, "epochs": [steps], "held_out": of_lines(1, (16,))[0], **more}
        return subject.drive("training:minigpt_fitted", config, given, seed)

    def of_lines(steps, cuts):
        return steps_of_lines(inputs, targets, steps, cuts, seed)

    def curves(subject):
        whole = run(subject, of_lines(6, (16,)))
        others = {
            name: _same_curve(whole, run(subject, of_lines(6, cuts), dtype=dtype), dtype)
            for name, (dtype, cuts) in CURVES.items()
        }
        return {"returned": whole, **others}

    places = {key: words for key, words in PLACES.items() if key.startswith("['returned']")}
    for name in CURVES:
        places[f"['{name}']"] = (
            f"The losses of the run {name!r} are outside the band around the losses in float32."
        )
    places["['float32, in parts']"] = (
        "If the same lines come in parts, the losses are outside the band around the losses of "
        "whole steps."
    )
    yield Case(minigpt, curves, shown="6 steps of 16 lines", places=places)
