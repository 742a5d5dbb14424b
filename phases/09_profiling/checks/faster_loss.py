"""Lab 09, exercise 5: Fewer, larger, later"""

import torch

from hood.judge.checks.compare import Tolerance
from hood.judge.checks.exercise import Case, Check
from hood.judge.checks.words import counted, listed

faster_loss = Check(
    "faster_loss",
    parts={"the loss": 1, "the share": 1, "fewer": 1, "larger, and not more": 1, "later": 1},
    reads="Fewer, larger, later",
    tolerance=Tolerance(1e-4, 1e-6, "float32 sums in another order"),
)


@faster_loss.reference
def _(logits, targets):
    chances = logits.log_softmax(-1)
    counts = (targets != -100).to(logits.dtype)
    chosen = chances.gather(2, targets.clamp(min=0)[..., None])[..., 0]
    inside = counts.sum(1)
    means = -(chosen * counts).sum(1) / inside.clamp(min=1)
    hits = (logits.argmax(-1) == targets).to(logits.dtype)
    return means.sum() / inside.clamp(max=1).sum(), hits.sum() / inside.sum()


@faster_loss.cases
def _(draw):
    loss, share, fewer, larger, later = faster_loss.parts

    def batch(kept, tokens, size):
        """Sentences with ``kept`` tokens that count."""
        logits = draw.tensor((len(kept), tokens, size))
        targets = draw.tensor((len(kept), tokens), torch.int64).abs() % size
        best = logits.argmax(-1)
        for b, count in enumerate(kept):
            right = draw.sample(range(tokens), draw.integer(0, tokens))
            targets[b, right] = best[b, right]
            targets[b, draw.sample(range(tokens), tokens - count)] = -100
        b, t = (targets != -100).nonzero()[0]
        targets[b, t] = 0  # the word number 0 counts
        return logits, targets

    def values(came):
        """The values that must be right before costs are judged. Their dtype doesn't matter."""
        found = {name: came[name] for name in ("loss", "share", "gradient")}
        return {n: v.float() if isinstance(v, torch.Tensor) and v.is_floating_point() else v for n, v in found.items()}

    def asked(part, kept, tokens, size):
        logits, targets = batch(kept, tokens, size)

        def play(subject):
            came = subject.drive("profiling:counted", logits, targets)
            return {"share": came["share"]} if part == share else {name: came[name] for name in ("loss", "gradient")}

        shown = f"{counted(len(kept), 'sentence')} of {counted(tokens, 'word')}, with {listed(kept)} that count, and a vocabulary of {size}"
        return Case(part, play, shown=shown, places=named())

    def named(*inside):
        """Words for the values at the top of the result, and at each place in ``inside``."""
        what = {"loss": "the loss", "share": "the share", "gradient": "the gradient of the loss"}
        return {f"{where}['{name}']": words for where in ("", *inside) for name, words in what.items()}

    n = draw.integer(3, 6)
    for part in (loss, share):
        yield asked(part, [n, n], n, draw.integer(4, 9))
        yield asked(part, [n, 1, 2], n, draw.integer(4, 9))
        yield asked(part, [0, n, 0, 1], n, 5)
        yield asked(part, [1], 1, 4)
        yield asked(part, [0, 1, 0], n, 4)
    # The word number 0 counts. Where no target counts, the largest logit doesn't matter. For any
    # random numbers, both words of the first sentence are right, and the only word of the second is
    # wrong.
    first, zeros = torch.zeros(2, 3, 4), torch.tensor([[0, 0, -100], [-100, 2, -100]])
    first[..., 0] = draw.integer(1, 4)
    one = torch.zeros(1, 1, 4)
    one[0, 0, 2] = draw.integer(1, 4)
    single = torch.tensor([[2]])
    yield Case(share, lambda subject: subject.drive("profiling:counted", one, single)["share"], shown="a single target, with a right answer")
    words = "the word number 0"
    yield Case(share, lambda subject: subject.drive("profiling:counted", first, zeros)["share"], shown=words)
    yield Case(loss, lambda subject: subject.drive("profiling:counted", first, zeros)["loss"], shown=words)
    # logits for which an exponential is infinite
    huge = draw.tensor((2, 2, 5)) * 300
    some = torch.tensor([[0, 4], [-100, 2]])
    yield Case(loss, lambda subject: subject.drive("profiling:counted", huge, some)["loss"], shown="large logits")
    high, both = draw.tensor((1, 2, 3)) + 200, torch.tensor([[0, 2]])
    yield Case(loss, lambda subject: subject.drive("profiling:counted", high, both)["loss"], shown="logits near 200")
    unlikely = torch.zeros(1, 2, 3)
    unlikely[..., 0] = -200.0
    yield Case(loss, lambda subject: subject.drive("profiling:counted", unlikely, both)["loss"], shown="a logit of -200")

    def costs(part, kept, tokens, size, more_kept, more_tokens):
        few, many = batch(kept, tokens, size), batch(more_kept, more_tokens, size)

        def play(subject):
            one = subject.drive("profiling:counted", *few)
            other = subject.drive("profiling:counted", *many)
            there, back = ([came["operators"][k] for came in (one, other)] for k in (0, 1))
            return {
                "there": there[0] == there[1],
                "back": back[0] == back[1],
                "values": (values(one), values(other)),
            }

        places = {
            "['there']": "The number of operators in the forward depends on the batch.",
            "['back']": "The number of operators in the backward depends on the batch.",
            **named("['values'][0]", "['values'][1]"),
        }
        shown = f"({len(kept)}, {tokens}) and ({len(more_kept)}, {more_tokens}) targets"
        return Case(part, play, shown=shown, places=places)

    yield costs(fewer, [4] * 3, 4, 6, [4] * 12, 4)
    yield costs(fewer, [4, 4], 4, 6, [9, 9], 9)
    yield costs(fewer, [n] * 2, n, 6, [n + 3] * 5, n + 3)
    yield costs(fewer, [2] * 2, 2, 5, [3] * 4, 3)

    for kept, tokens in (([4] * 3, 4), ([n] * 5, n), ([3, 3], 3)):
        logits, targets = batch(kept, tokens, 256)

        def play(subject, logits=logits, targets=targets):
            came = subject.drive("profiling:counted", logits, targets)
            return {"few bytes": came["bytes"][0] <= 1.5 * logits.nbytes, "values": values(came)}

        words = "The forward makes tensors with more than 1.5 times the logits' bytes in all."
        shown = f"logits of {tuple(logits.shape)}"
        yield Case(larger, play, shown=shown, places={"['few bytes']": words, **named("['values']")})

    for kept in ([3] * n, [1, 1], [4]):
        logits, targets = batch(kept, kept[0], 6)

        def play(subject, logits=logits, targets=targets):
            said = subject.drive("profiling:asks", logits, targets)
            elsewhere = isinstance(said, str) and said.startswith("OtherDevice")
            return {
                "elsewhere": elsewhere,
                "asks": said is not None and not elsewhere,
                "values": values(subject.drive("profiling:counted", logits, targets)),
            }

        places = {
            "['elsewhere']": "The function makes a tensor on a different device from the logits.",
            "['asks']": "The function raises an error if its tensors are on the device `meta` and have no values.",
            **named("['values']"),
        }
        yield Case(later, play, shown=f"{len(kept)} sentences of {kept[0]}", places=places)
