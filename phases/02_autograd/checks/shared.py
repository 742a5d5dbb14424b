"""What several exercises of lab 02 need."""

import torch

from hood.judge.checks.compare import Tolerance
from hood.judge.checks.exercise import ByHand

# Families, so that no fused backward and no wrapper of autograd need be listed.
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
    "the exercise is to derive the gradient; autograd may check you, but not answer for you",
    forbid_names=AUTOGRAD,
)
LAYOUTS = ("contiguous", "transposed", "sliced", "expanded")
FLOATS = (torch.float32, torch.float64)
# each layout once, and each dtype twice
KINDS = tuple(zip(FLOATS * 2, LAYOUTS, strict=True))
SUMS = Tolerance(1e-4, 1e-5, "sums of a few products, each in an order of its own")


def many_digits(draw):
    """A whole number that no float64 has."""
    return draw.integer(3, 30) * 2**70 + draw.integer(1, 2**20)


def whole(draw, shape, factors=2):
    """Whole numbers of int64; a product of so many has more digits than float64, and none too many."""
    return draw.tensor(shape, torch.int64) * 2 ** (50 // factors) + draw.tensor(shape, torch.int64)


def sum_to(total, rows, tolerance):
    """Whether no row has another sum than the tolerance lets entries have; so it is of NaN, too."""
    if not torch.is_tensor(rows) or rows.dim() == 0 or not rows.is_floating_point():
        return True  # a mistake of another kind, which is told
    allowed = 1.1 * (tolerance.rtol * rows.abs() + tolerance.atol).sum(-1)
    return not bool(((rows.sum(-1) - total).abs() > allowed).any())


def laid_out(draw, shape, dtype, layout):
    """Drawn values in one of `LAYOUTS`; an expanded tensor has one row, which it repeats."""
    if layout == "expanded":
        return draw.tensor((1, *shape[1:]), dtype).expand(shape)
    return draw.tensor(shape, dtype, layout)
