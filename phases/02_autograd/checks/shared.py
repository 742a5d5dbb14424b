"""What several exercises of lab 02 need."""

import torch

from utils.checks import ByHand
from utils.compare import Tolerance

AUTOGRAD = frozenset(
    {
        "autograd", "backward", "grad", "vjp", "jvp", "jacrev", "jacfwd", "jacobian",
        "requires_grad_", "grad_fn", "native_layer_norm_backward", "_softmax_backward_data",
        "threshold_backward",
    }
)  # fmt: skip
BY_HAND = ByHand(
    "the exercise is to derive the gradient; autograd may check you, but not answer for you",
    forbid_names=AUTOGRAD,
)
FLOATS = (torch.float32, torch.float64)
LAYOUTS = ("contiguous", "transposed", "sliced")
SUMS = Tolerance(1e-4, 1e-5, "sums of a few products, each in an order of its own")
