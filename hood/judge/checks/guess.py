"""Guess how a wrong result relates to the right result, for example that it is transposed.

A guess uses only the two results, never the code, and names a relation, never a value. There is no
guess if the relation would often be true by chance. So the right result must have enough different
values, and the relation must be true of all elements.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np

LARGEST = 1_000_000  # elements; for more elements, a guess would take too much time


# The result itself proves guesses that begin with these words.
_SEEN = ("there are NaNs", "every element of your result is", "only the ")


def hedged(guess: str) -> str:
    """Return a guess with ``perhaps``, unless the result itself proves it."""
    return guess if guess.startswith(_SEEN) else f"perhaps {guess}"


def guess_shape(got: np.ndarray, want: np.ndarray) -> str:
    """Return why two arrays of different shapes might differ; empty if nothing fits."""
    if got.size > LARGEST or want.size > LARGEST:
        return ""
    g, w = tuple(got.shape), tuple(want.shape)
    squeezed = tuple(size for size in g if size != 1)
    if squeezed == tuple(size for size in w if size != 1):
        return (
            "the right sizes except for dimensions of size 1 (`keepdim` and `unsqueeze` add them)"
        )
    for dim in range(got.ndim):
        if g[:dim] + g[dim + 1 :] == w and _varied(want, 2) and _same(got.sum(dim), want):
            return f"not summed: summing your result over dim {dim} gives the expected result"
    if len(g) == 2 and len(w) == 1 and g == (w[0], w[0]):
        return "broadcast: shapes (N,) and (N, 1) give (N, N), as in an outer product"
    if sorted(g) == sorted(w):
        orders = itertools.permutations(range(len(g))) if len(g) < 5 and _varied(want, 3) else ()
        turned = any(_same(got.transpose(order), want) for order in orders)
        return "transposed" if turned else "the same sizes in another order"
    if math.prod(g) == math.prod(w):
        return "the same number of elements, in other dimensions"
    return ""


def guess_values(got: np.ndarray, want: np.ndarray) -> str:
    """Return why two arrays of the same shape might differ in values; empty if nothing fits."""
    if got.shape != want.shape or want.size == 0 or want.size > LARGEST:
        return ""
    if "c" in (got.dtype.kind, want.dtype.kind):
        return ""
    integers = "f" not in (got.dtype.kind, want.dtype.kind)
    g, w = got.astype(np.float64), want.astype(np.float64)
    if np.isnan(g).any() and not np.isnan(w).any():
        return "there are NaNs in your result: 0/0, 0 * inf, inf - inf or unwritten memory give NaN"
    if not integers and _same(g, w):  # then reordered and scaled results are close, too
        close = np.abs(g - w).max() <= 1e-4 * np.abs(w).max()
        return "nearly right: rounding, or a precision that is too low in one step" if close else ""
    for relation in (_constant, _reordered, _scaled, _shifted):
        found = relation(g, w, integers)
        if found:
            return found
    return _partly(g, w)


def _varied(values: np.ndarray, count: int) -> bool:
    """Return whether an array has at least ``count`` different values, apart from zero."""
    if values.dtype.kind == "c":
        return False
    distinct = np.unique(values.astype(np.float64), equal_nan=False)
    return int((distinct != 0).sum()) >= count


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    if a.shape != b.shape or "c" in (a.dtype.kind, b.dtype.kind):
        return False
    a, b = a.astype(np.float64), b.astype(np.float64)
    return np.allclose(a, b, rtol=1e-5, atol=1e-6, equal_nan=True)


def _constant(g: np.ndarray, w: np.ndarray, integers: bool) -> str:
    if g.size > 1:
        for value, word in ((0.0, "zero"), (1.0, "one")):
            if (g == value).all():
                return f"every element of your result is {word}"
    return ""


def _reordered(g: np.ndarray, w: np.ndarray, integers: bool) -> str:
    if not _varied(w, 3) or not _same(np.sort(g, axis=None), np.sort(w, axis=None)):
        return ""
    found = list(_orders(g, w))
    return found[0] if len(found) == 1 else "the right values in another order"


def _orders(g: np.ndarray, w: np.ndarray) -> Iterator[str]:
    """Yield each simple reordering that turns one array into the other."""
    for a, b in itertools.combinations(range(g.ndim), 2):
        if _same(g.swapaxes(a, b), w):
            yield f"transposed: dims {a} and {b} are exchanged"
    for dim in range(g.ndim):
        if _same(np.flip(g, dim), w):
            yield "the right values in reverse order" + (f" along dim {dim}" * (g.ndim > 1))
    for dim, shift in itertools.product(range(g.ndim), (1, -1)):
        if g.shape[dim] > 2 and _same(np.roll(g, shift, dim), w):
            way = "back" if shift > 0 else "further"
            yield f"off by one: the right values are one place {way} along dim {dim}"


def _scaled(g: np.ndarray, w: np.ndarray, integers: bool) -> str:
    told = (w != 0) & np.isfinite(w)
    finite = w[told]
    if not _varied(np.abs(finite), 2):
        return ""
    ratio = float(g[told][0] / finite[0])
    if not math.isfinite(ratio) or ratio == 0:
        return ""
    # The tolerance is relative to the largest number in the result. With a tolerance relative to 1,
    # all small numbers would be equal.
    if not np.allclose(g, w * ratio, rtol=1e-5, atol=1e-6 * np.abs(g[np.isfinite(g)]).max()):
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


def _shifted(g: np.ndarray, w: np.ndarray, integers: bool) -> str:
    difference = g - w
    if not _varied(w, 2) or not np.isfinite(difference).all():
        return ""
    if not _same(difference, np.full_like(difference, difference.flat[0])):
        return ""
    if integers and abs(difference.flat[0]) == 1:
        return "every element is off by one"
    return "every element is off by the same amount"


def _partly(g: np.ndarray, w: np.ndarray) -> str:
    """Return a guess about a boundary if only one end of a dimension is wrong; else ""."""
    wrong = ~np.isclose(g, w, rtol=1e-5, atol=1e-6, equal_nan=True)
    if not (np.isfinite(g[wrong]).all() and np.isfinite(w[wrong]).all()):
        return ""  # an infinity is no sign of a wrong boundary
    for dim in range(g.ndim):
        if g.shape[dim] < 5:  # in a short row, a single wrong entry is often at an end by chance
            continue
        lines = wrong.any(axis=tuple(d for d in range(g.ndim) if d != dim))
        for end, word in ((0, "first"), (-1, "last")):
            if lines[end] and int(lines.sum()) == 1:
                along = f" along dim {dim}" if g.ndim > 1 else ""
                return f"only the {word} entries{along} are wrong: look at the boundary"
    return ""
