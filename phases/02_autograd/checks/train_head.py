"""Lab 02, exercise 13: The head learns"""

import torch

from hood.judge.checks.compare import Tolerance
from hood.judge.checks.exercise import Check, case
from utils.minigpt import load_minigpt

from .lm_head import SENTENCES, hidden
from .shared import BY_HAND, FLOATS, KINDS, laid_out

train_head = Check(
    "train_head",
    parts={
        "one step": 1,
        "several steps": 1,
        "large logits": 1,
        "MiniGPT's own head": 1,
    },
    reads="Cross-entropy: what came minus what should have come",
    by_hand=BY_HAND,
    tolerance=Tolerance(1e-4, 1e-5, "sums over rows and channels, added in any order, step by step"),
)


@train_head.reference
def _(x, weight, bias, targets, lr, steps):
    losses, trained = [], [weight, bias]
    for _ in range(steps):
        trained = [t.detach().requires_grad_() for t in trained]
        logits = torch.nn.functional.linear(x, *trained)
        loss = torch.nn.functional.cross_entropy(logits, targets)
        found = torch.autograd.grad(loss, trained)
        trained = [t.detach() - lr * g for t, g in zip(trained, found, strict=True)]
        losses.append(loss.item())
    return losses, *trained


@train_head.cases
def _(draw):
    places = {"[0]": "the losses", "[1]": "the weight", "[2]": "the bias"}
    one, several, wide, own = train_head.parts

    def trained(part, x, weight, bias, targets, lr, steps, shown=""):
        args = (x, weight, bias, torch.tensor(targets), lr, steps)
        return case(part, *args, places=places, shown=shown)

    def layer(rows, words, ins, dtype=torch.float32, layout="contiguous"):
        targets = [draw.integer(0, words - 1) for _ in range(rows)]
        x = laid_out(draw, (rows, ins), dtype, layout)
        return x, draw.tensor((words, ins), dtype), draw.tensor((words,), dtype), targets

    for dtype, layout in KINDS:
        sizes = draw.shape(3, low=3, high=9)
        yield trained(one, *layer(*sizes, dtype, layout), draw.integer(1, 8) / 8, 1)
        sizes = draw.shape(3, low=3, high=9)
        steps = draw.integer(3, 5)
        yield trained(several, *layer(*sizes, dtype, layout), draw.integer(1, 8) / 8, steps)
    x, weight, bias, _ = layer(4, 5, 3)
    yield trained(one, x, weight, bias, [2, 0, 2, 2], 0.5, 1, shown="equal targets")
    yield trained(one, *layer(1, 5, 3), 0.5, 1, shown="a single row")
    yield trained(one, *layer(4, 4, 4), 0.5, 1, shown="equal sizes")
    yield trained(several, *layer(3, 5, 2), 0.5, 0, shown="no step")
    yield trained(several, *layer(3, 1, 2), 0.5, 2, shown="a single word")
    # equal rows with different targets can't be learned, and each step goes too far
    x, bias = torch.ones(4, 1, dtype=torch.float64), draw.tensor((3,), torch.float64)
    weight = 4 * torch.eye(3, 1, dtype=torch.float64)
    yield trained(several, x, weight, bias, [1, 2, 2, 0], 16.0, 4, shown="a loss that rises")
    # A rounded loss is noticed only if the loss is small.
    weight = torch.diag(torch.tensor([draw.integer(40, 56) / 8 for _ in range(3)]).double())
    args = torch.eye(3, dtype=torch.float64), weight, 0 * bias, [0, 1, 2], 16.0, 4
    yield trained(several, *args, shown="small losses")
    # whole numbers, which are exact in float32
    for dtype in FLOATS:
        for targets, steps in (([1, 0, 0], 1), ([0, 2, 2], 3)):
            high, rate = draw.integer(900, 1000), draw.integer(2, 6) / 8
            levels = [[high, -high, 0], [high - 1, high, -high], [0, 1, 2]]
            x, bias = torch.eye(3, dtype=dtype), torch.zeros(3, dtype=dtype)
            weight = torch.tensor(levels, dtype=dtype).T
            yield trained(wide, x, weight, bias, targets, rate, steps)
    # MiniGPT's states are long vectors. A larger learning rate would learn them in one step.
    head = load_minigpt().lm_head
    weight, bias = head.weight.detach().clone(), head.bias.detach().clone()
    for sentence in SENTENCES:
        x, following = hidden(sentence)
        yield trained(own, x, weight, bias, following.tolist(), draw.integer(6, 12) / 1024, 3)
        following = draw.sample(range(len(bias)), len(x))  # surprising words, all different
        args = (x.double(), weight.double(), bias.double(), following)
        yield trained(own, *args, draw.integer(6, 12) / 1024, 4)
