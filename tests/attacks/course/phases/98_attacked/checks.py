"""Three exercises to attack: one by its values, one in two parts, one that also asks for a view."""

import torch

from hood.judge.checks.exercise import ByHand, Check, case

# Tests search for this text in everything that leaves a sandbox.
CANARY = "canary-of-the-checks"

twice = Check("twice", parts={"any tensor": 2}, reads="Two times a tensor")


@twice.reference
def _(x):
    return 2 * x


@twice.cases
def _(draw):
    for _ in range(2):
        yield case("any tensor", draw.tensor(draw.shape(2)))


row_sums = Check("row_sums", parts={"floats": 1, "integers": 2}, reads="Sums along a dimension")


@row_sums.reference
def _(x):
    return x.sum(dim=1)


@row_sums.cases
def _(draw):
    yield case("floats", draw.tensor(draw.shape(2)))
    # All numbers are positive, because the lazy learner's zeros must never be right by chance.
    yield case("integers", draw.tensor(draw.shape(2), dtype=torch.int64).abs() + 1)


corner = Check(
    "corner",
    parts={"a view": 2},
    reads="Views",
    sharing=True,
    by_hand=ByHand(
        "the strides are yours to find",
        forbid_ops=frozenset({"aten.slice"}),
        forbid_names=frozenset({"unfold"}),
    ),
)


@corner.reference
def _(x):
    return x.as_strided((2, 2), x.stride(), x.storage_offset())


@corner.cases
def _(draw):
    yield case("a view", draw.tensor((4, 5)))
