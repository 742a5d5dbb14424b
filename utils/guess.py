"""Guess what a learner did from how the result looks: transposed, not summed, scaled, off by one.

A guess is a hint and is worded as one. It is drawn from the two results alone, so it never needs
the code, and it names relations ("4 times too large"), never a value.
"""

from __future__ import annotations

import itertools
import math

import torch

_LARGEST = 1_000_000  # elements; a guess must stay cheap beside the comparison itself


def guess_shape(got: torch.Tensor, want: torch.Tensor) -> str:
    """Why two tensors of different shapes might differ; an empty string when nothing fits."""
    if got.numel() > _LARGEST or want.numel() > _LARGEST:
        return ""
    g, w = tuple(got.shape), tuple(want.shape)
    squeezed = tuple(size for size in g if size != 1)
    if squeezed == tuple(size for size in w if size != 1):
        return "the same sizes but for dimensions of size 1: a keepdim or an unsqueeze"
    for dim in range(got.dim()):
        if g[:dim] + g[dim + 1 :] == w and _same(got.sum(dim), want):
            return f"not summed: summing your result over dim {dim} gives the expected one"
    if len(g) == 2 and len(w) == 1 and g == (w[0], w[0]):
        return "two vectors of shapes (N,) and (N, 1) broadcast to (N, N): an outer product"
    if sorted(g) == sorted(w):
        return "the same sizes in another order: transposed"
    if math.prod(g) == math.prod(w):
        return "as many elements, grouped into other dimensions"
    return ""


def guess_values(got: torch.Tensor, want: torch.Tensor) -> str:
    """Why two tensors of one shape might differ in values; empty when nothing fits."""
    if got.shape != want.shape or want.numel() == 0 or want.numel() > _LARGEST:
        return ""
    if got.is_complex() or want.is_complex():
        return ""
    integers = not (got.is_floating_point() or want.is_floating_point())
    g, w = got.to(torch.float64), want.to(torch.float64)
    if bool(torch.isnan(g).any()) and not bool(torch.isnan(w).any()):
        return "there are NaNs in your result: 0/0, inf - inf, or an element never written"
    if not integers and _same(g, w):  # and so nearly any order or scale of itself, too
        close = bool((g - w).abs().max() <= 1e-4 * w.abs().max())
        return "nearly right: rounding, or a precision that is too low somewhere" if close else ""
    for relation in (_constant, _reordered, _scaled, _shifted):
        found = relation(g, w, integers)
        if found:
            return found
    return _partly(g, w)


def _same(a: torch.Tensor, b: torch.Tensor) -> bool:
    a, b = a.to(torch.float64), b.to(torch.float64)
    return a.shape == b.shape and torch.allclose(a, b, rtol=1e-5, atol=1e-6, equal_nan=True)


def _constant(g: torch.Tensor, w: torch.Tensor, integers: bool) -> str:
    if g.numel() > 1:
        for value, word in ((0.0, "zero"), (1.0, "one")):
            if bool((g == value).all()):
                return f"every element of your result is {word}"
    return ""


def _reordered(g: torch.Tensor, w: torch.Tensor, integers: bool) -> str:
    if g.numel() < 3:  # two numbers exchanged may be chance
        return ""
    for a, b in itertools.combinations(range(g.dim()), 2):
        if _same(g.transpose(a, b), w):
            return f"transposed: dims {a} and {b} are exchanged"
    for dim in range(g.dim()):
        if _same(g.flip(dim), w):
            return "the right values in reverse order" + (f" along dim {dim}" * (g.dim() > 1))
    for dim, shift in itertools.product(range(g.dim()), (1, -1)):
        if _same(g.roll(shift, dim), w):
            return "off by one: the right values, one place further along" + (
                f" dim {dim}" if g.dim() > 1 else ""
            )
    if _same(g.flatten().sort().values, w.flatten().sort().values):
        return "the right values in another order"
    return ""


def _scaled(g: torch.Tensor, w: torch.Tensor, integers: bool) -> str:
    nonzero = (w != 0) & torch.isfinite(w)
    if not bool(nonzero.any()):
        return ""
    # one non-zero element fits any factor: believe it only when the factor is a round one
    ratio = float(g[nonzero][0] / w[nonzero][0])
    if not math.isfinite(ratio) or ratio == 0 or not _same(g, w * ratio):
        return ""
    if math.isclose(ratio, -1, rel_tol=1e-5):
        return "the sign is flipped"
    factor = abs(ratio) if abs(ratio) > 1 else 1 / abs(ratio)
    whole = math.isclose(factor, round(factor), rel_tol=1e-4) and round(factor) > 1
    if not whole and int(nonzero.sum()) < 2:
        return ""
    size = f"{round(factor)}" if whole else f"{factor:.4g}"
    sign = ", and with the sign flipped" if ratio < 0 else ""
    return f"scaled: {size} times too {'large' if abs(ratio) > 1 else 'small'}{sign}"


def _shifted(g: torch.Tensor, w: torch.Tensor, integers: bool) -> str:
    difference = g - w
    if integers and bool((difference.abs() == 1).all()):
        return "off by one"
    several = g.numel() > 1 and bool(torch.isfinite(difference).all())
    if several and _same(difference, difference.flatten()[0].expand_as(difference)):
        return "every element is off by the same amount"
    return ""


def _partly(g: torch.Tensor, w: torch.Tensor) -> str:
    """Errors at one end of a dimension point at a boundary."""
    wrong = ~torch.isclose(g, w, rtol=1e-5, atol=1e-6, equal_nan=True)
    for dim in range(g.dim()):
        if g.shape[dim] < 5:  # in a short row one end is as likely as anything
            continue
        others = [d for d in range(g.dim()) if d != dim]
        lines = wrong.any(dim=tuple(others)) if others else wrong
        for end, word in ((0, "first"), (-1, "last")):
            if bool(lines[end]) and int(lines.sum()) == 1:
                along = f" along dim {dim}" if g.dim() > 1 else ""
                return f"only the {word} entries{along} are wrong: look at the boundary"
    return ""
