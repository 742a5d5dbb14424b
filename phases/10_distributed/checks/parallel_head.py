"""Lab 10, exercise 6: The LM head, cut two ways"""

import torch
from torch.nn import functional as F

from hood.judge.checks.compare import Tolerance
from hood.judge.checks.exercise import Case, Check

from .shared import as_run, counted, drawn_counts, others, ranks

parallel_head = Check(
    "parallel_head",
    parts={"the loss": 1, "its gradient": 1, "large logits": 1, "few bytes": 1, "rows": 1},
    reads="The LM head cut two ways",
    tolerance=Tolerance(1e-3, 3e-3, "float32, where logits are thousands"),
)

PLACES = {
    "['other requests']": "a request other than all_reduce was made.",
    "['loss']": "the loss of each rank",
    "['gradient']": "the gradient for x that each rank returned",
    "['finite']": "whether each rank's gradient is finite",
    "['too much']": "more than T · D + 3 · T numbers were put into the network.",
    "['logits']": "the logits of each rank",
    "['times']": "how many times a rank put numbers into the network",
    "['numbers']": "how many numbers a rank put into the network, in all",
}


@parallel_head.reference
class _:
    def column_loss(rank, world, x, weight, bias, first, targets):
        logits = F.linear(x, weight, bias)
        inside = (targets >= first) & (targets < first + len(bias))
        own = torch.where(inside, targets - first, 0)
        chosen = torch.where(inside, logits.gather(1, own[:, None])[:, 0], 0.0)
        largest = yield "all_reduce", logits.max(1).values, "max"
        total = torch.exp(logits - largest[:, None]).sum(1)
        both = yield "all_reduce", torch.stack([total, chosen]), "sum"
        loss = (largest + both[0].log() - both[1]).sum() / len(x)
        share = torch.exp(logits - largest[:, None] - both[0].log()[:, None])
        share = share - F.one_hot(own, len(bias)) * inside[:, None]
        gradient = yield "all_reduce", share @ weight, "sum"
        return loss, gradient / len(x)

    def row_logits(rank, world, x, weight, bias):
        return (yield "all_reduce", F.linear(x, weight), "sum") + bias


@parallel_head.cases
def _(draw):
    lost, gradient, large, few, rows = parallel_head.parts

    def columns(part, words, tokens=3, width=2, scale=1.0, shift=0.0, targets=None):
        """words: the number of words of each rank."""
        world, vocabulary = len(words), sum(words)
        x = draw.tensor((tokens, width))
        weight, bias = draw.tensor((vocabulary, width)), draw.tensor((vocabulary,))
        if scale != 1.0:
            x, weight = torch.ones(tokens, width), torch.zeros(vocabulary, width)
            weight[:, 0] = torch.arange(vocabulary) % 3 * scale + shift
            x[1:, 0] = -1.0  # what is large for the first token is very negative for the others
        if targets is None:
            targets = [draw.integer(0, vocabulary - 1) for _ in range(tokens)]
        firsts = [sum(words[:rank]) for rank in range(world)]
        each = [
            (x, weight[a : a + n].clone(), bias[a : a + n].clone(), a, torch.tensor(targets))
            for a, n in zip(firsts, words, strict=True)
        ]

        # A rank that counts twice is like two ranks with the same words. So a rank with a target
        # counts once.
        counts = [
            1 if any(a <= target < a + n for target in targets) else draw.integer(2, 3)
            for a, n in zip(firsts, words, strict=True)
        ]

        def play(subject):
            came = ranks(subject, each, of="column_loss", counts=counts)
            found = {}
            if part == gradient:
                found["gradient"] = [result[1] for result in came.results]
            else:
                found["loss"] = [result[0] for result in came.results]
            if part == large:
                found["finite"] = [bool(result[1].isfinite().all()) for result in came.results]
            if part == few:
                found["other requests"] = others(came, "all_reduce")
                numbers = sum(event.bytes for event in came.collectives) / 4
                found["too much"] = numbers > tokens * width + 3 * tokens
            return found

        shown = f"{world} rank{'s' * (world > 1)} with {', '.join(map(str, words))} words, {tokens} tokens"
        shown += f", logits around {shift + scale:,.0f}" if scale != 1.0 else ""
        shown += counted(counts)
        shows = {"gradient": "{}.results[{at}][1]", "loss": "{}.results[{at}][0]"}
        paste = as_run("column_loss", each, shows, counts=counts)
        return Case(part, play, of="column_loss", shown=shown, places=PLACES, paste=paste)

    def channels(widths, tokens=3, vocabulary=5):
        world = len(widths)
        bias = draw.tensor((vocabulary,))
        each = [(draw.tensor((tokens, d)), draw.tensor((vocabulary, d)), bias) for d in widths]
        # The bias may be added by the first rank, by the last, or in parts by all ranks.
        counts = [1, *drawn_counts(draw, world - 2), 1] if world > 3 else [1] * world

        def play(subject):
            came = ranks(subject, each, of="row_logits", counts=counts)
            numbers = sum(event.bytes for event in came.collectives) // 4
            return {
                "logits": came.results,
                "other requests": others(came, "all_reduce"),
                "numbers": numbers,
                "times": len(came.collectives),
            }

        shown = f"{world} rank{'s' * (world > 1)} with {', '.join(map(str, widths))} channels"
        shown += counted(counts)
        shows = {"logits": "{}.results", "times": "len({}.collectives)"}
        paste = as_run("row_logits", each, shows, counts=counts)
        return Case(rows, play, of="row_logits", shown=shown, places=PLACES, paste=paste)

    n = draw.integer(2, 4)
    for part in (lost, gradient):
        yield columns(part, [3, 3])
        yield columns(part, [n, 1, 2])
        yield columns(part, [2, 3], tokens=4, targets=[0, 1, 2, 4])
        yield columns(part, [5], tokens=n)
        yield columns(part, [2, 4], tokens=1, width=n)
        yield columns(part, [3, 2], tokens=4, targets=[4, 4, 2, 4])
        yield columns(part, [2, 3, n], targets=[3, 2, 4])
    yield columns(large, [3, 3], scale=2000.0)
    yield columns(large, [2, 1, 3], scale=1000.0, shift=-3000.0, targets=[2, 2, 5])
    yield columns(large, [4, 2], scale=2.0, shift=-4000.0)
    yield columns(large, [3, 2], scale=3.0, shift=5000.0)
    yield columns(large, [2, 2], scale=n * 900.0, targets=[2, 2, 2])
    yield columns(large, [2, 1], scale=1500.0, tokens=1, targets=[0])
    yield columns(large, [3], scale=2000.0)
    yield columns(large, [2, 2, n], scale=1000.0, targets=[0, 1, 0])
    # logits far from 0 and near each other: the loss depends on how often a rank counts
    yield columns(large, [2, 3, n], scale=2.0, shift=-4000.0, targets=[0, 1, 0])
    yield columns(few, [30, 20], tokens=4, width=3, targets=[0, 29, 30, 49])
    yield columns(few, [8, 9, 10], tokens=2, width=n, targets=[8, 26])
    yield columns(few, [25, 25], tokens=1, width=2)
    yield columns(few, [9, 7, 8], targets=[10, 12, 9])
    yield channels([2, 2])
    yield channels([n, 1, 2])
    yield channels([3])
    yield channels([1, 1, 2, 1], tokens=1)
    yield channels([2, 1, n, 2])
