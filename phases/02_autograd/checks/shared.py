"""What several exercises of lab 02 need."""

import torch

from hood.judge.checks.compare import Tolerance
from hood.judge.checks.exercise import ByHand

# Patterns, so that the list does not have to name each fused backward and each wrapper of autograd.
AUTOGRAD = frozenset(
    {
        "torch.autograd",
        "torch.func",
        "functorch",
        "*backward*",
        "grad",
        "grad_fn",
        "grad_and_value",
        "gradcheck",
        "requires_grad_",
        "retain_grad",
        "vjp",
        "jvp",
        "jac*",
        "hessian*",
        "hvp",
        "vhp",
    }
)
BY_HAND = ByHand(
    "the exercise is to derive the gradient: autograd may check your answer, but not compute it",
    forbid_names=AUTOGRAD,
)
LAYOUTS = ("contiguous", "transposed", "sliced", "expanded")
FLOATS = (torch.float32, torch.float64)
# four pairs: each layout is in one of them, and each dtype in two
KINDS = tuple(zip(FLOATS * 2, LAYOUTS, strict=True))
SUMS = Tolerance(1e-4, 1e-5, "sums of a few products, added in any order")


def many_digits(draw):
    """A whole number with more digits than float64 has."""
    return draw.integer(3, 30) * 2**70 + draw.integer(1, 2**20)


def whole(draw, shape, factors=2):
    """Whole numbers. A product of `factors` such numbers has too many digits for float64, but fits int64."""
    return draw.tensor(shape, torch.int64) * 2 ** (50 // factors) + draw.tensor(shape, torch.int64)


def sum_to(total, rows, tolerance):
    """Whether each row sums to `total` within the tolerance. True for NaN, too."""
    if not torch.is_tensor(rows) or rows.dim() == 0 or not rows.is_floating_point():
        return True  # a mistake of another kind, which has another message
    allowed = 1.1 * (tolerance.rtol * rows.abs() + tolerance.atol).sum(-1)
    return not bool(((rows.sum(-1) - total).abs() > allowed).any())


def laid_out(draw, shape, dtype, layout):
    """Random values in one of `LAYOUTS`. An expanded tensor repeats one row."""
    if layout == "expanded":
        return draw.tensor((1, *shape[1:]), dtype).expand(shape)
    return draw.tensor(shape, dtype, layout)
