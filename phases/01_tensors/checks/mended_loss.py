"""Lab 01, exercise 7: The loss that would not fall"""

from functools import partial

import torch

from utils.checks.exercise import Case, Check, Place, case, edited

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
    """The loss, and whether autograd can still see through it."""

    told = {"[0]": "the loss", "[1]": "No gradient can flow back through the loss."}

    def play(subject):
        loss = subject(prediction.clone().requires_grad_(), target)
        return loss, getattr(loss, "requires_grad", None)

    return Case(part, play, places=told)


def _gradient_case(part, prediction, target):
    """What comes back to the prediction: a loss may say that it has a graph, and have none."""
    places = {"": Place("the gradient that comes back to the prediction", returned=False)}
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
    yield _loss_case("equal shapes", *far)  # float32 keeps two digits of their difference
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


@mended_loss.misconception(
    "left as it was",
    "a (B, 1) column and a (B,) vector still meet in a (B, B) table of every pair, and no shape "
    "is refused but what cannot be broadcast.",
    earns=1,
)
def _(prediction, target):
    return ((prediction - target) ** 2).mean()


@mended_loss.misconception(
    "flattened, batches not compared",
    "shapes that cannot match are let through: a batch of 1 is still stretched over the other "
    "one in silence.",
    earns=2,
)
def _(prediction, target):
    return ((prediction.flatten() - target.flatten()) ** 2).mean()


@mended_loss.misconception(
    "equal counts are not enough",
    "shapes that are neither (B,) nor (B, 1) are let through where both hold as many numbers.",
    earns=2,
)
def _(prediction, target):
    if prediction.numel() != target.numel():
        raise ValueError("different batches")
    return ((prediction.flatten() - target.flatten()) ** 2).mean()


@mended_loss.misconception(
    "only the prediction looked at",
    "predictions of a wrong shape are refused, and targets of one are let through where they "
    "hold as many numbers.",
    earns=2,
)
def _(prediction, target):
    if prediction.dim() not in (1, 2) or (prediction.dim() == 2 and prediction.shape[1] != 1):
        raise ValueError("expected (B,) or (B, 1)")
    if prediction.numel() != target.numel():
        raise ValueError("different batches")
    return ((prediction.flatten() - target.flatten()) ** 2).mean()


mended_loss.misconception(
    "cut off from autograd",
    "the number is right, but no gradient can flow back through it: nothing would be trained.",
    earns=1,
)(edited(_mended_loss, ("prediction.reshape(-1)", "prediction.detach().reshape(-1)")))


@mended_loss.misconception(
    "only one order mended",
    "the loss is as if the target always got a new dimension, which mends one order of the two "
    "and breaks another.",
    earns=0,
)
def _(prediction, target):
    return ((prediction - target.unsqueeze(1)) ** 2).mean()


mended_loss.misconception(
    "summed, not averaged",
    "the squared errors are summed, so that the loss grows with the batch.",
    earns=1,
)(edited(_mended_loss, (".mean()", ".sum()")))

mended_loss.misconception(
    "the root taken",
    "the loss is the root of the mean squared error.",
    earns=1,
)(edited(_mended_loss, (".mean()", ".mean().sqrt()")))
mended_loss.misconception(
    "absolute errors",
    "the loss is the mean of the errors' absolute values; they were not squared.",
    earns=1,
)(edited(_mended_loss, (" ** 2)", ").abs()")))
mended_loss.misconception(
    "half of the mean",
    "the loss is half of the mean squared error.",
    earns=1,
)(edited(_mended_loss, (".mean()", ".mean() / 2")))


@mended_loss.misconception(
    "any shape is refused that differs",
    "a column and a vector of one batch were refused, though they hold the same numbers.",
    earns=1,
)
def _(prediction, target):
    if prediction.shape != target.shape:
        raise ValueError("the shapes differ")
    return ((prediction - target) ** 2).mean()


@mended_loss.alternate("mse_loss after a look at the shapes")
def _(prediction, target):
    def as_vector(t):
        if t.dim() == 2 and t.shape[1] == 1:
            t = t[:, 0]
        if t.dim() != 1:
            raise ValueError(f"expected (B,) or (B, 1), got {tuple(t.shape)}")
        return t

    prediction, target = as_vector(prediction), as_vector(target)
    if prediction.shape != target.shape:
        raise ValueError(f"{len(prediction)} predictions for {len(target)} targets")
    return torch.nn.functional.mse_loss(prediction, target)


mended_loss.equivalent(
    ("t.dim() == 2 and t.size(1) == 1", "t.dim() == 2"),
    ("t.dim() == 2 and t.size(1) == 1", "t.dim() == 2 and t.size(1) <= 1"),
    ("t.dim() == 2 and t.size(1) == 1", "t.dim() == 2 and t.size(1) >= 1"),
    ("t.dim() == 2 and t.size(1) == 1", "t.dim() == 2 and 1 == 1"),
    because="`squeeze(1)` leaves another size as it is, and two dimensions are refused after it",
)
mended_loss.equivalent(
    ("t.dim() == 2", "t.dim() >= 2"),
    because="of three dimensions at least two are left, which are refused after it",
)
mended_loss.equivalent(("t[:, 0]", "t[:, -1]"), because="the first column is the last")
mended_loss.equivalent(
    ("as_vector(prediction), as_vector(target)", "as_vector(target), as_vector(prediction)"),
    ("prediction - target", "target - prediction"),
    ("mse_loss(prediction, target)", "mse_loss(target, prediction)"),
    because="a square is the same whichever is taken from the other",
)
