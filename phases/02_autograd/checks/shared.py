"""What several exercises of lab 02 need."""

import dataclasses

import torch

from utils.checks import ByHand
from utils.compare import Tolerance

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
BY_HAND_WITH_NUMBERS = dataclasses.replace(BY_HAND, tensors=False)
FLOATS = (torch.float32, torch.float64)
LAYOUTS = ("contiguous", "transposed", "sliced")
SUMS = Tolerance(1e-4, 1e-5, "sums of a few products, each in an order of its own")
