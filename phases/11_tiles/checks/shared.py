"""Code for several exercises of lab 11."""

import math

import torch

from hood.judge.checks.compare import Tolerance
from hood.judge.checks.exercise import ByHand
from utils.instruments.launching import INTERPRETER_OPS

# The exercise is to write a kernel, so only the kernel may compute with the tensors. A view, or an
# empty tensor of the same dtype, computes nothing.
VIEWS = "t transpose permute select slice view as_strided expand unsqueeze squeeze unbind split alias"
HARMLESS = ("empty_like", "new_zeros", "zeros_like", *VIEWS.split())
IN_A_KERNEL = ByHand(
    because="the exercise is to compute it in your own Triton kernel",
    allow_ops=INTERPRETER_OPS | {f"aten.{name}" for name in HARMLESS},
    forbid_names=frozenset({"interpreted", "custom_op"}),
    allow_names=frozenset(
        {"triton.next_power_of_2", "triton.cdiv", "utils.instruments.launching.launch"}
    ),
)

# Half a unit in the last place, and a little more for the sums before it.
ROUNDED = {torch.float16: 1.05 * 2.0**-11, torch.bfloat16: 1.05 * 2.0**-8}
# Triton's interpreter truncates bfloat16, and a GPU rounds it.
TRUNCATED = {torch.float16: 1.05 * 2.0**-11, torch.bfloat16: 1.05 * 2.0**-7}
INSIDE = {torch.float64: 64 * 2.0**-52}
TINY = {torch.float16: 2.0**-24}

# A larger error is no rounding error. With a smaller error, the result must be `precise`.
EXACTNESS_IS_A_FACT = Tolerance(0.05, 5e-3, "whether it is exact enough is a separate fact")


def off(got, exact, scale, rounding=ROUNDED):
    """How far values are from exact ones, in units of what sums in float32 and one rounding allow.

    scale: for each element, the sum of the sizes of the numbers that were added.
    """
    if not isinstance(got, torch.Tensor) or got.shape != exact.shape:
        return 0.0  # the comparison of the values says so
    allowed = rounding.get(got.dtype, 0.0) * exact.abs() + TINY.get(got.dtype, 0.0)
    allowed += INSIDE.get(got.dtype, 16 * 2.0**-23) * scale + 1e-30
    return float(((got.double() - exact).abs() / allowed).nan_to_num(float("inf")).max())


def exactness(got, exact, scale, rounding=ROUNDED):
    """True unless a result is nearly right, but less exact than its dtype allows."""
    if not isinstance(got, torch.Tensor) or got.shape != exact.shape:
        return True
    nearly = bool(((got.double() - exact).abs() <= 0.05 * exact.abs() + 0.01 * scale + 1e-3).all())
    return off(got, exact, scale, rounding) <= 1 or not nearly


ATTENTION = Tolerance(1e-4, 1e-5, "float32 sums in another order")
# Six scores that float32 represents exactly, and words for the case. A hidden score that gets a
# finite number, or a smaller number than it has, would count. The first scores are equal or far
# apart, so that rounding does not change their weights much.
FAR = (
    ([-1100.0, -1100.0, -1300.0, -1100.0, -1300.0, -1100.0], ", all scores below -1,000"),
    ([0.0, 30_000.0, 60_000.0, 90_000.0, 120_000.0, 150_000.0], ", each score 30,000 larger"),
)


def scored(tensors, scores):
    """Return q, k and further tensors, with the same scores for all queries.

    The scores are exact if √D is a whole number.
    """
    q, k, *others = tensors
    q, k = torch.zeros_like(q), torch.zeros_like(k)
    q[..., 0], k[..., 0] = math.sqrt(q.shape[-1]), torch.tensor(scores)
    return q, k, *others


DOUBLE = "A float64 result is right only to the digits of float32."


def doubly_exact(got, exact):
    """False if float64 results are right to the digits of float32, but not to those of float64."""
    for one, right in zip(got, exact, strict=False):
        if not isinstance(one, torch.Tensor) or one.dtype != torch.float64:
            continue
        if one.dtype == right.dtype and one.shape == right.shape:
            apart = (one - right).abs().nan_to_num(0.0) / (right.abs() + 1e-3).nan_to_num()
            if 1e-10 < float(apart.max()) < 1e-4:
                return False
    return True
