"""Lab 11, exercise 6: Attention without the matrix"""

import math

import torch

from hood.judge.checks.exercise import Case, Check

from .shared import ATTENTION, DOUBLE, FAR, doubly_exact, scored

flash = Check(
    "flash",
    parts={
        "all words": 1,
        "the past": 1,
        "ragged tiles": 1,
        "log-sum-exp": 1,
        "no T × T tensor": 1,
        "skipped tiles": 1,
    },
    reads="Attention without the matrix",
    tolerance=ATTENTION,
)


@flash.reference
def _(q, k, v, causal, block):
    """One query after another: the largest tensor of each has T numbers."""
    outputs, sums = [], []
    for place in range(q.shape[-2]):
        seen = slice(0, place + 1 if causal else None)
        scores = k[..., seen, :] @ q[..., place, :, None] / math.sqrt(q.shape[-1])
        outputs.append((torch.softmax(scores, -2) * v[..., seen, :]).sum(-2))
        sums.append(torch.logsumexp(scores.squeeze(-1), -1))
    return torch.stack(outputs, -2), torch.stack(sums, -1)


@flash.cases
def _(draw):
    every, past, ragged, lse, memory, skipped = flash.parts

    def drawn(B, H, T, D, dtype=torch.float32, spread=1.5):
        q, k, v = (draw.tensor((B, H, T, D), dtype) for _ in range(3))
        return spread * q, k, v

    def asked(part, tensors, causal, block, words=""):
        q, k, v = tensors
        right = flash.right(q, k, v, causal, block)

        def play(subject):
            came = subject(q, k, v, causal, block)
            at = 1 if part == lse else 0
            return doubly_exact([came[at]], [right[at]]), came[at]

        what = "the log-sum-exp" if part == lse else "the output"
        dtype = str(q.dtype).removeprefix("torch.")
        kind = "causal" if causal else "not causal"
        shown = f"{kind}, {dtype} {tuple(q.shape)}, block {block}{words}"
        return Case(part, play, shown=shown, places={"[0]": DOUBLE, "[1]": what})

    def rising(tensors, by):
        """Let the scores rise, or fall, from key to key."""
        q, k, v = (one.clone() for one in tensors)
        q[..., 0], q[..., 1:], steps = 1.0, q[..., 1:].abs() / 9, torch.arange(q.shape[-2], dtype=q.dtype)
        k[..., 0] += by * steps * math.sqrt(q.shape[-1])
        return q, k, v

    for part, causal in ((every, False), (past, True)):
        block, D = draw.choice((2, 3, 4)), draw.choice((2, 3, 5))
        yield asked(part, drawn(1, 1, 3 * block, D), causal, block)
        yield asked(part, drawn(2, 3, 2 * block, D), causal, block)
        yield asked(part, drawn(1, 2, 4 * block, 1), causal, block, ", one channel")
        yield asked(part, drawn(1, 1, 2 * block, D, torch.float64), causal, block)
        yield asked(part, rising(drawn(1, 1, 8, 2), 3.0), causal, 2, ", scores that rise from key to key")
        yield asked(part, rising(drawn(1, 1, 8, 2), -3.0), causal, 2, ", scores that fall from key to key")
        for by in (60.0, -60.0):  # exp overflows, or becomes 0, without the maximum
            yield asked(part, rising(drawn(1, 1, 6, 2), by), causal, 3, ", scores far apart")
        q, k, v = rising(drawn(1, 1, 6, 2), 2.0)
        yield asked(part, (q, k - 300, v), causal, 3, ", all scores far below 0")
        yield asked(part, rising(drawn(1, 1, 4, 2, torch.float64), 500.0), causal, 4, ", scores far apart, one tile")
        for scores, words in FAR:
            tensors = scored(drawn(1, 1, 6, 4, torch.float64), scores)
            yield asked(part, tensors, causal, 3, words)
        turned = [one.transpose(1, 2).contiguous().transpose(1, 2) for one in drawn(2, 2, 2 * block, D)]
        yield asked(part, turned, causal, block, ", heads side by side in memory")

    for causal in (False, True):
        block = draw.integer(3, 5)
        yield asked(ragged, drawn(1, 2, 2 * block + draw.integer(1, block - 1), 3), causal, block)
        yield asked(ragged, drawn(1, 1, block + 1, 2), causal, block, ", one word more than a tile")
        yield asked(ragged, drawn(1, 1, 2 * block - 1, 2), causal, block, ", one word less than two tiles")
        yield asked(ragged, drawn(2, 1, draw.integer(4, 6), 2), causal, 1, ", tiles of one word")
        yield asked(ragged, drawn(1, 2, 1, 3), causal, draw.integer(1, 4), ", one word")
        yield asked(ragged, drawn(1, 1, draw.integer(3, 6), 3), causal, 16, ", a block larger than T")
        # scores below 0: a place beside the end that counts as 0 would win the maximum
        q, k, v = drawn(1, 1, 7, 2)
        yield asked(ragged, (q.abs() + 2, -k.abs() - 2, v), causal, 4, ", all scores below 0")

        yield asked(lse, drawn(1, 2, 2 * block, 3), causal, block)
        yield asked(lse, drawn(1, 1, 2 * block, 2, torch.float64), causal, block)
        yield asked(lse, rising(drawn(2, 1, 8, 2), 3.0), causal, 2, ", scores that rise from key to key")
        yield asked(lse, rising(drawn(1, 1, 6, 2), 60.0), causal, 3, ", scores far apart")
        yield asked(lse, rising(drawn(1, 1, 6, 2), -60.0), causal, 3, ", scores far apart")
        q, k, v = drawn(1, 1, 1, 2)  # the score is below 0, so a second key of 0 would show
        yield asked(lse, (q.abs(), -k.abs(), v), causal, 2, ", one word")

    def counted(part, T, D, block, causal, look, says):
        tensors = drawn(1, 1, T, D)

        def play(subject):
            came = subject.drive("tiles:attention", *tensors, causal, block)
            return look(came), came["output"]

        places = {"[0]": says, "[1]": "the output"}
        kind = "causal" if causal else "not causal"
        return Case(part, play, shown=f"{kind}, T = {T}, D = {D}, block {block}", places=places)

    T, D = 8 * draw.integer(4, 5), draw.choice((2, 3, 4))
    says = "A tensor has T × T numbers, or more."
    other = 6 * draw.integer(6, 7)
    for causal in (False, True):
        yield counted(memory, T, D, 8, causal, lambda came: came["largest"] < T * T, says)
        yield counted(memory, other, D, 6, causal, lambda came: came["largest"] < other**2, says)

    def few(T, D, block):
        tiles = T // block
        most = 4 * D * block * block * tiles * (tiles + 1) // 2
        return lambda came: came["flops"] <= 1.05 * most

    says = "There are more multiplications than necessary. A tile needs products only if a query sees a key in it."
    yield counted(skipped, T, D, 8, True, few(T, D, 8), says)
    yield counted(skipped, 30, D, 5, True, few(30, D, 5), says)
    yield counted(skipped, 8, D, 1, True, few(8, D, 1), says)
