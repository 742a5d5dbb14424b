"""Describe how a wrong result relates to the right one: transposed, not summed, scaled, off by one.

A guess is made from the two results alone, never from the code, and names a relation, never a
value. It is not made if chance alone would often produce the relation: the right result must have
enough different values, and the relation must hold for all elements.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import torch

_LARGEST = 1_000_000  # elements; a guess must stay cheap beside the comparison itself


# How guesses begin that are seen in the result itself
_SEEN = ("there are NaNs", "every element of your result is", "only the ")


def hedged(guess: str) -> str:
    """Return a guess with ``perhaps``, unless it says what can be seen in the result itself."""
    return guess if guess.startswith(_SEEN) else f"perhaps {guess}"


def guess_shape(got: torch.Tensor, want: torch.Tensor) -> str:
    """Return why two tensors of different shapes might differ; empty if nothing fits."""
    if got.numel() > _LARGEST or want.numel() > _LARGEST:
        return ""
    g, w = tuple(got.shape), tuple(want.shape)
    squeezed = tuple(size for size in g if size != 1)
    if squeezed == tuple(size for size in w if size != 1):
        return "the same sizes but for dimensions of size 1, as `keepdim` or `unsqueeze` make them"
    for dim in range(got.dim()):
        if g[:dim] + g[dim + 1 :] == w and _varied(want, 2) and _same(got.sum(dim), want):
            return f"not summed: summing your result over dim {dim} gives the expected one"
    if len(g) == 2 and len(w) == 1 and g == (w[0], w[0]):
        return "what shapes (N,) and (N, 1) broadcast to: (N, N), as in an outer product"
    if sorted(g) == sorted(w):
        orders = itertools.permutations(range(len(g))) if len(g) < 5 and _varied(want, 3) else ()
        turned = any(_same(got.permute(order), want) for order in orders)
        return "transposed" if turned else "the same sizes in another order"
    if math.prod(g) == math.prod(w):
        return "as many elements, grouped into other dimensions"
    return ""


def guess_values(got: torch.Tensor, want: torch.Tensor) -> str:
    """Return why two tensors of one shape might differ in values; empty if nothing fits."""
    if got.shape != want.shape or want.numel() == 0 or want.numel() > _LARGEST:
        return ""
    if got.is_complex() or want.is_complex():
        return ""
    integers = not (got.is_floating_point() or want.is_floating_point())
    g, w = got.to(torch.float64), want.to(torch.float64)
    if bool(torch.isnan(g).any()) and not bool(torch.isnan(w).any()):
        brings = "0/0, 0 * inf, inf - inf or unwritten memory bring them"
        return f"there are NaNs in your result, as {brings}"
    if not integers and _same(g, w):  # and so nearly any order or scale of itself, too
        close = bool((g - w).abs().max() <= 1e-4 * w.abs().max())
        return "nearly right: rounding, or a precision that is too low somewhere" if close else ""
    for relation in (_constant, _reordered, _scaled, _shifted):
        found = relation(g, w, integers)
        if found:
            return found
    return _partly(g, w)


def _varied(values: torch.Tensor, count: int) -> bool:
    """Return whether a tensor has at least ``count`` different values, apart from zero."""
    if values.is_complex():
        return False
    distinct = values.to(torch.float64).unique()
    return int((distinct != 0).sum()) >= count


def _same(a: torch.Tensor, b: torch.Tensor) -> bool:
    if a.shape != b.shape or a.is_complex() or b.is_complex():
        return False
    a, b = a.to(torch.float64), b.to(torch.float64)
    return torch.allclose(a, b, rtol=1e-5, atol=1e-6, equal_nan=True)


def _constant(g: torch.Tensor, w: torch.Tensor, integers: bool) -> str:
    if g.numel() > 1:
        for value, word in ((0.0, "zero"), (1.0, "one")):
            if bool((g == value).all()):
                return f"every element of your result is {word}"
    return ""


def _reordered(g: torch.Tensor, w: torch.Tensor, integers: bool) -> str:
    if not _varied(w, 3) or not _same(g.flatten().sort().values, w.flatten().sort().values):
        return ""
    found = list(_orders(g, w))
    return found[0] if len(found) == 1 else "the right values in another order"


def _orders(g: torch.Tensor, w: torch.Tensor) -> Iterator[str]:
    """Yield each simple reordering that turns one tensor into the other."""
    for a, b in itertools.combinations(range(g.dim()), 2):
        if _same(g.transpose(a, b), w):
            yield f"transposed: dims {a} and {b} are exchanged"
    for dim in range(g.dim()):
        if _same(g.flip(dim), w):
            yield "the right values in reverse order" + (f" along dim {dim}" * (g.dim() > 1))
    for dim, shift in itertools.product(range(g.dim()), (1, -1)):
        if g.shape[dim] > 2 and _same(g.roll(shift, dim), w):
            way = "back" if shift > 0 else "further"
            yield f"off by one: the right values, one place {way} along dim {dim}"


def _scaled(g: torch.Tensor, w: torch.Tensor, integers: bool) -> str:
    finite = w[(w != 0) & torch.isfinite(w)]
    if not _varied(finite.abs(), 2):
        return ""
    ratio = float(g[(w != 0) & torch.isfinite(w)][0] / finite[0])
    if not math.isfinite(ratio) or ratio == 0:
        return ""
    # measured against the result itself: beside 1, all small numbers look alike
    if not torch.allclose(
        g, w * ratio, rtol=1e-5, atol=1e-6 * float(g[torch.isfinite(g)].abs().max())
    ):
        return ""
    if math.isclose(ratio, -1, rel_tol=1e-5):
        return "the sign is flipped"
    factor = abs(ratio) if abs(ratio) > 1 else 1 / abs(ratio)
    if factor < 1.001:
        return ""
    whole = factor < 1e6 and math.isclose(factor, round(factor), rel_tol=1e-4)
    size = f"{round(factor)}" if whole else f"{factor:.4g}"
    sign = ", and with the sign flipped" if ratio < 0 else ""
    return f"scaled: {size} times too {'large' if abs(ratio) > 1 else 'small'}{sign}"


def _shifted(g: torch.Tensor, w: torch.Tensor, integers: bool) -> str:
    difference = g - w
    if not _varied(w, 2) or not bool(torch.isfinite(difference).all()):
        return ""
    if not _same(difference, difference.flatten()[0].expand_as(difference)):
        return ""
    if integers and abs(float(difference.flatten()[0])) == 1:
        return "every element is off by one"
    return "every element is off by the same amount"


def _partly(g: torch.Tensor, w: torch.Tensor) -> str:
    """Return whether only one end of a dimension is wrong, which points to a boundary."""
    wrong = ~torch.isclose(g, w, rtol=1e-5, atol=1e-6, equal_nan=True)
    if not bool(torch.isfinite(g[wrong]).all() and torch.isfinite(w[wrong]).all()):
        return ""  # an infinity is where its number is, and says nothing of a boundary
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
