"""Lab 09, exercise 6: Fewer, larger, later"""

import torch
from torch.nn import functional as F

from utils.checks.compare import Tolerance
from utils.checks.exercise import Case, Check, edited
from utils.checks.lab_solution import lab_solution

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
        """Sentences of which so many tokens count."""
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
        """What must be right for the costs to count, in whatever precision."""
        found = {name: came[name] for name in ("loss", "share", "gradient")}
        return {n: v.float() if isinstance(v, torch.Tensor) and v.is_floating_point() else v for n, v in found.items()}

    def asked(part, kept, tokens, size):
        logits, targets = batch(kept, tokens, size)

        def play(subject):
            came = subject.drive("profiling:counted", logits, targets)
            return {"share": came["share"]} if part == share else {name: came[name] for name in ("loss", "gradient")}

        shown = f"{len(kept)} sentences with {kept} targets that count, of {tokens}, {size} words"
        return Case(part, play, shown=shown, places=named())

    def named(*inside):
        """Words for the values, and for those that lie at a place ``inside`` of what comes back."""
        what = {"loss": "the loss", "share": "the share", "gradient": "the gradient of the loss"}
        return {f"{where}['{name}']": words for where in ("", *inside) for name, words in what.items()}

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
    one = torch.zeros(1, 1, 4)
    one[0, 0, 2] = draw.integer(1, 4)
    single = torch.tensor([[2]])
    yield Case(share, lambda subject: subject.drive("profiling:counted", one, single)["share"], shown="a single target, and right")
    words = "the word number 0"
    yield Case(share, lambda subject: subject.drive("profiling:counted", logits, targets)["share"], shown=words)
    yield Case(loss, lambda subject: subject.drive("profiling:counted", logits, targets)["loss"], shown=words)
    # logits that an exponential would make infinite
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
            "['there']": "The number of operators of the forward depends on the batch.",
            "['back']": "The number of operators of the backward depends on the batch.",
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

        words = "The forward makes tensors of more than 1.5 times the logits' bytes."
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
            "['elsewhere']": "A tensor is made on another device than the logits'.",
            "['asks']": "Called with tensors that have no values, on the device `meta`, it raises an error.",
            **named("['values']"),
        }
        yield Case(later, play, shown=f"{len(kept)} sentences of {kept[0]}", places=places)


_faster = lab_solution(__name__, "faster_loss")


def _misconception(name, explanation, earns, *edits):
    faster_loss.misconception(name, explanation, earns=earns)(edited(_faster, *edits))


_LOSS = "means.sum() / (in_sentence > 0).sum()"
_misconception(
    "the mean of all tokens",
    "each token has the same weight, and a long sentence counts more than a short one.",
    4,
    (_LOSS, "losses.sum() / counts.sum()"),
)
_misconception(
    "empty sentences counted",
    "sentences without a target that counts are counted with a loss of 0.",
    4,
    ("(in_sentence > 0).sum()", "len(targets)"),
)
_misconception(
    "divided by all tokens",
    "a sentence's losses are divided by its length, as if all of its targets counted.",
    4,
    ("in_sentence.clamp(min=1)", "targets.shape[1]"),
)
_misconception(
    "the share of all tokens",
    "right answers are divided by all targets, those with -100 included.",
    4,
    ("/ counts.sum()", "/ counts.numel()"),
)
_misconception(
    "asks for a number",
    "where no tensor has values it raises an error: as where a number is asked for, or a size depends on"
    " values.",
    4,
    ("(in_sentence > 0).sum()", "max(1, int((in_sentence > 0).sum()))"),
)
_misconception(
    "made on the host",
    "a tensor is made on the host, wherever the logits are, as where no device is named.",
    4,
    ("in_sentence.clamp(min=1)", "in_sentence.clamp(min=torch.tensor(1))"),
)
_misconception(
    "exponentials as they are",
    "large logits are exponentiated as they are, and become infinite.",
    4,
    (
        "F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction='none')",
        "counts * (logits.exp().sum(-1).log() - logits.gather(2, targets.clamp(min=0)[..., None])[..., 0])",
    ),
)
_misconception(
    "the logarithm of a probability",
    "the logarithm is taken of a probability that has become 0 where it is very small.",
    4,
    (
        "F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction='none')",
        "counts * -logits.softmax(-1).gather(2, targets.clamp(min=0)[..., None])[..., 0].log()",
    ),
)
_misconception(
    "more than one large tensor",
    "the forward makes more bytes than one tensor of the logits' size has: as where they are copied, or"
    " taken to float64.",
    4,
    ("logits.flatten(0, 1)", "logits.clone().flatten(0, 1)"),
)
_misconception(
    "one after the other",
    "the sentences are gone through one by one, so that more of them take more operators.",
    4,
    (
        "F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction='none')",
        "torch.stack([F.cross_entropy(row, target, reduction='none') for row, target in zip(logits, targets)])",
    ),
)
_misconception(
    "one word after the other",
    "the words of a sentence are gone through one by one, so that longer sentences take more operators.",
    4,
    (
        "F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction='none')",
        "torch.stack([F.cross_entropy(logits[:, t], targets[:, t], reduction='none') for t in range(targets.shape[1])], 1)",
    ),
)
_misconception(
    "a loss without a graph",
    "the loss has no gradient: it was cut off from the logits.",
    1,
    ("return (loss, right)", "return (loss.detach(), right)"),
)
_misconception(
    "a mean of shares",
    "the share is the mean over sentences of each one's share: a right answer in a short sentence counts"
    " more than one in a long sentence.",
    4,
    ("((logits.argmax(2) == targets) & counts).sum() / counts.sum()", "(((logits.argmax(2) == targets) & counts).sum(1) / in_sentence.clamp(min=1)).sum() / (in_sentence > 0).sum()"),
)
_misconception(
    "the word number 0 left out",
    "targets of 0 don't count, as if they were -100.",
    0,
    ("targets != -100", "targets > 0"),
)
_misconception(
    "-100 taken for 0",
    "where a target is -100 the word number 0 counts as a right answer.",
    4,
    ("((logits.argmax(2) == targets) & counts)", "(logits.argmax(2) == targets.clamp(min=0))"),
)
_misconception(
    "loss and share exchanged",
    "the share stands where the loss belongs.",
    0,
    ("return (loss, right)", "return (right, loss)"),
)
_misconception(
    "a sum for a mean",
    "the sentences' means are added up and never divided by their number.",
    1,
    (_LOSS, "means.sum()"),
)


@faster_loss.misconception("slow_loss", "operators grow with the batch, and each token is waited for.", earns=2)
def _(logits, targets):
    means, right, counted = [], 0, 0
    for b in range(len(logits)):
        losses = []
        for t in range(logits.shape[1]):
            if targets[b, t].item() == -100:
                continue
            row = logits.clone()[b, t]
            losses.append(row.double().logsumexp(0) - row[targets[b, t]])
            right += int(row.argmax() == targets[b, t])
            counted += 1
        if losses:
            means.append(torch.stack(losses).mean().float())
    return torch.stack(means).mean(), torch.tensor(right / counted)


@faster_loss.alternate("logsumexp and gather")
def _(logits, targets):
    mask = targets.ne(-100)
    word = targets.where(mask, 0).unsqueeze(-1)
    each = logits.logsumexp(-1) - logits.gather(-1, word).squeeze(-1)
    length = mask.sum(-1)
    weight = mask / length.clamp(min=1).unsqueeze(-1)
    there = length.gt(0).sum()
    hit = logits.argmax(-1).eq(targets).logical_and(mask)
    return (each * weight).sum() / there, hit.sum().float() / mask.sum()


@faster_loss.alternate("a weighted sum of log-probabilities")
def _(logits, targets):
    counts = (targets != -100).float()
    per_sentence = counts.sum(dim=1, keepdim=True)
    is_there = (per_sentence > 0).float()
    weights = counts / per_sentence.clamp(min=1.0) / is_there.sum()
    logp = F.log_softmax(logits, dim=2)
    nll = F.nll_loss(logp.flatten(0, 1), targets.flatten(), reduction="none").reshape(targets.shape)
    best = torch.argmax(logits, dim=2)
    right = torch.where(best == targets, counts, torch.zeros_like(counts)).sum() / counts.sum()
    return (nll * weights).sum(), right


faster_loss.equivalent(
    ("targets != -100", "targets > -100"),
    ("in_sentence > 0", "in_sentence != 0"),
    ("per_sentence > 0", "per_sentence != 0"),
    because="other targets and all counts are at least 0",
)
faster_loss.equivalent(
    ("((logits.argmax(2) == targets) & counts).sum()", "(logits.argmax(2) == targets).sum()"),
    (".eq(targets).logical_and(mask)", ".eq(targets)"),
    (
        "torch.where(best == targets, counts, torch.zeros_like(counts)).sum()",
        "(best == targets).sum()",
    ),
    because="no word has the number -100",
)
faster_loss.equivalent(
    ("targets.where(mask, 0)", "targets.where(mask, 1)"),
    because="what is gathered there counts for nothing",
)
faster_loss.equivalent(
    ("mask.sum(-1)", "mask.sum(1)"),
    (".clamp(min=1).unsqueeze(-1)", ".clamp(min=1).unsqueeze(1)"),
    because="of two dimensions the second is the last",
)
faster_loss.equivalent(
    ("hit.sum().float()", "hit.sum()"),
    ("(targets != -100).float()", "targets != -100"),
    ("(per_sentence > 0).float()", "per_sentence > 0"),
    ("(per_sentence > 0).float()", "(per_sentence > 0).double()"),
    because="a division makes a float32 of counts, and a number without dimensions keeps float32",
)
