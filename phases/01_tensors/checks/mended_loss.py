"""Lab 01, exercise 7: The loss that would not fall"""

from functools import partial

import torch

from hood.judge.checks.exercise import Case, Check, Place, case

mended_loss = Check(
    "mended_loss",
    parts={"a column against a vector": 1, "equal shapes": 1, "shapes that cannot match": 1},
    reads="The silent (64, 64) bug",
)


@mended_loss.reference
def _mended_loss(prediction, target):
    for t in (prediction, target):
        if t.dim() == 0 or t.dim() > 2 or (t.dim() == 2 and t.shape[1] != 1):
            raise ValueError("expected (B,) or (B, 1)")
    if len(prediction) != len(target):
        raise ValueError("different batches")
    return ((prediction.reshape(-1) - target.reshape(-1)) ** 2).mean()


def _loss_case(part, prediction, target):
    """A case for the loss, and for whether a gradient can flow back through it."""

    told = {"[0]": "the loss", "[1]": "No gradient can flow back through the loss."}

    def play(subject):
        loss = subject(prediction.clone().requires_grad_(), target)
        return loss, getattr(loss, "requires_grad", None)

    return Case(part, play, places=told)


def _gradient_case(part, prediction, target):
    """A case for the prediction's gradient, because `requires_grad` can be True without a graph."""
    places = {"": Place("the gradient that reaches the prediction", returned=False)}
    play = lambda subject: subject.drive("functions:gradient", prediction, target)  # noqa: E731
    return Case(part, play, places=places)


@mended_loss.cases
def _(draw):
    for _ in range(2):
        batch = draw.integer(3, 12)
        column, vector = draw.tensor((batch, 1)), draw.tensor((batch,))
        double = draw.tensor((batch,), torch.float64, "sliced")
        yield _loss_case("a column against a vector", column, vector)
        yield _loss_case("a column against a vector", draw.tensor((batch,)), column.detach())
        yield _loss_case("equal shapes", double, draw.tensor((batch,), torch.float64))
        yield _loss_case("equal shapes", draw.tensor((batch, 1)), draw.tensor((batch, 1)))
    far = [draw.tensor((batch,), torch.float64) + 100_000 for _ in range(2)]
    yield _loss_case("equal shapes", *far)  # in float32, their difference has only two digits
    one, column = draw.tensor((1,), torch.float64), draw.tensor((batch, 1), torch.float64)
    yield _loss_case("a column against a vector", draw.tensor((1, 1), torch.float64), one)
    yield _loss_case("a column against a vector", column, double)
    yield _loss_case("equal shapes", draw.tensor((1,)), draw.tensor((1,)))
    yield _gradient_case("a column against a vector", column, double)
    yield _gradient_case("equal shapes", draw.tensor((4,)), draw.tensor((4,)))
    other = draw.tensor((batch + 1,))
    clash = partial(case, "shapes that cannot match", raises="ValueError")
    yield clash(draw.tensor((batch, 1)), other, shown="(B, 1) and (B + 1,)")
    yield clash(draw.tensor((1, 1)), vector, shown="(1, 1) and (B,)")
    yield clash(vector, draw.tensor((1,)), shown="(B,) and (1,)")
    for shape, shown in (((batch, 2), "(B, 2)"), ((batch, 0), "(B, 0)")):
        yield clash(draw.tensor(shape), draw.tensor(shape), shown=f"twice {shown}")
    yield clash(draw.tensor((1, batch)), vector, shown="(1, B) and (B,)")
    yield clash(vector, draw.tensor((1, batch)), shown="(B,) and (1, B)")
    for shape, shown in (((), "()"), ((batch, 1, 1), "(B, 1, 1)")):
        yield clash(draw.tensor(shape), draw.tensor(shape), shown=f"twice {shown}")
