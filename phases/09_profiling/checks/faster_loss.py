"""Lab 09, exercise 6: Fewer, larger, later"""

import torch
from torch.nn import functional as F

from utils.checks import Case, Check, edited
from utils.compare import Tolerance

faster_loss = Check(
    "faster_loss",
    parts={"the loss": 1, "the share": 1, "fewer": 1, "larger, and not more": 1, "later": 1},
    reads="Fewer, larger, later",
    tolerance=Tolerance(1e-4, 1e-6, "float32 sums in another order"),
    claims=("how many operators ran and how many bytes they made", "that no number was asked for"),
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
        """Sentences of which so many tokens count."""
        logits = draw.tensor((len(kept), tokens, size))
        targets = draw.tensor((len(kept), tokens), torch.int64).abs() % size
        best = logits.argmax(-1)
        for b, count in enumerate(kept):
            right = draw.sample(range(tokens), draw.integer(0, tokens))
            targets[b, right] = best[b, right]
            targets[b, draw.sample(range(tokens), tokens - count)] = -100
        return logits, targets

    def values(came):
        return {name: came[name] for name in ("loss", "share", "gradient")}

    def asked(part, kept, tokens, size):
        logits, targets = batch(kept, tokens, size)

        def play(subject):
            came = subject.drive("profiling:counted", logits, targets)
            return {"share": came["share"]} if part == share else {name: came[name] for name in ("loss", "gradient")}

        shown = f"{len(kept)} sentences with {kept} targets that count, of {tokens}, {size} words"
        return Case(part, play, shown=shown)

    n = draw.integer(3, 6)
    for part in (loss, share):
        yield asked(part, [n, n], n, draw.integer(4, 9))
        yield asked(part, [n, 1, 2], n, draw.integer(4, 9))
        yield asked(part, [0, n, 0, 1], n, 5)
        yield asked(part, [1], 1, 4)
        yield asked(part, [0, 1, 0], n, 4)
    # the word number 0 counts, and where nothing counts the largest logit may be anything
    logits, targets = torch.zeros(2, 3, 4), torch.tensor([[0, 0, -100], [-100, 2, 0]])
    logits[..., 0] = draw.integer(1, 4)
    yield Case(share, lambda subject: subject.drive("profiling:counted", logits, targets)["share"], shown="the word number 0")
    # logits that an exponential would make infinite
    huge = draw.tensor((2, 2, 5)) * 300
    some = torch.tensor([[0, 4], [-100, 2]])
    yield Case(loss, lambda subject: subject.drive("profiling:counted", huge, some)["loss"], shown="large logits")

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
            "['there']": "The number of operators of the forward depends on the batch.",
            "['back']": "The number of operators of the backward depends on the batch.",
        }
        shown = f"({len(kept)}, {tokens}) and ({len(more_kept)}, {more_tokens}) targets"
        return Case(part, play, shown=shown, places=places)

    yield costs(fewer, [2, 3, 1], 4, 6, [4, 1, 2, 3] * 3, 4)
    yield costs(fewer, [2, 3], 4, 6, [7, n], 9)
    yield costs(fewer, [3, 3], 3, 5, [0, 3], 3)
    yield costs(fewer, [2], 2, 5, [1], 2)

    for kept, tokens in (([4, 2, 3], 4), ([n] * 5, n + 2), ([1, 0], 3)):
        logits, targets = batch(kept, tokens, 256)

        def play(subject, logits=logits, targets=targets):
            came = subject.drive("profiling:counted", logits, targets)
            return {"few bytes": came["bytes"][0] <= 1.5 * logits.nbytes, "values": values(came)}

        words = "The forward makes tensors of more than 1.5 times the logits' bytes."
        shown = f"logits of {tuple(logits.shape)}"
        yield Case(larger, play, shown=shown, places={"['few bytes']": words})

    for kept in ([2, 3, 1], [0, 3], [4] * 4):
        logits, targets = batch(kept, 4, 6)

        def play(subject, logits=logits, targets=targets):
            said = subject.drive("profiling:asks", logits, targets)
            return {"asks": said is not None, "values": values(subject.drive("profiling:counted", logits, targets))}

        words = "Called with tensors that have no values, on the device `meta`, it raises an error."
        yield Case(later, play, shown=f"targets that count: {kept}, of 4", places={"['asks']": words})
