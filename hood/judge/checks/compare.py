"""Say how one value differs from another, in the order a person would ask.

Wrong type, wrong length or keys, wrong shape, wrong dtype, wrong strides, wrong values: the first
that applies is reported, because each makes the later ones meaningless. Nothing is ever broadcast
before it is compared.
"""

from __future__ import annotations

import numbers
import reprlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hood.judge.checks.guess import LARGEST, guess_shape, guess_values, hedged
from hood.judge.values.kind import Grid
from hood.judge.values.table import grid, kind


@dataclass(frozen=True)
class Tolerance:
    """``|got - want| <= atol + rtol * |want|``, and why that much is allowed."""

    rtol: float
    atol: float
    reason: str = ""


EXACT = Tolerance(0.0, 0.0, "integers, booleans and pure copies have no rounding")

# The same figures as torch.testing.assert_close: a few units in the last place of each format.
_DEFAULT_TOLERANCES = {
    "float64": Tolerance(1e-7, 1e-7, "float64 carries 52 bits of fraction"),
    "float32": Tolerance(1.3e-6, 1e-5, "float32 carries 23 bits; sums run in any order"),
    "float16": Tolerance(1e-3, 1e-5, "float16 carries 10 bits of fraction"),
    "bfloat16": Tolerance(1.6e-2, 1e-5, "bfloat16 carries 7 bits of fraction"),
    "complex64": Tolerance(1.3e-6, 1e-5, "two float32 numbers"),
    "complex128": Tolerance(1e-7, 1e-7, "two float64 numbers"),
}


MISSING_RETURN = "a missing `return`, if None was not meant"

# Keys may be many and long, and a sentence names them.
_FEW = reprlib.Repr()
_FEW.maxlist, _FEW.maxtuple, _FEW.maxstring, _FEW.maxother = 12, 12, 60, 60


@dataclass(frozen=True)
class _How:
    """The arguments of :func:`compare`, and whether anybody reads more than the kind."""

    tolerance: Tolerance | None
    strides: bool
    explain: bool = True


@dataclass(frozen=True)
class Difference:
    """Why ``got`` is not ``want``.

    ``summary`` and ``guess`` name shapes, dtypes and counts but never a value, so they may be shown
    for hidden inputs; ``detail`` is for values which the reader can see anyway.
    """

    kind: str  # ``type``, ``length``, ``keys``, ``shape``, ``dtype``, ``strides`` or ``values``
    summary: str  # one sentence without any value
    detail: str = ""  # the first mismatches, with their indices and values
    guess: str = ""  # what probably happened, or an empty string
    path: tuple[Any, ...] = ()  # the keys of the place inside a container, outermost first

    @property
    def where(self) -> str:
        """The place inside a container, such as ``[1]`` or ``['bias']``; empty at the top."""
        return "".join(f"[{key!r}]" for key in self.path)

    def inside(self, key: Any) -> Difference:
        """Return the same difference of an item, as one of the container that has it at ``key``.

        An item that is None lacks no ``return``: something was returned.
        """
        guess = "" if self.guess == MISSING_RETURN else self.guess
        return replace(self, path=(key, *self.path), guess=guess)

    def __str__(self) -> str:
        place = f"at {self.where}: " if self.where else ""
        lines = [place + self.summary]
        if self.guess:
            lines.append(hedged(self.guess))
        if self.detail:
            lines.append(self.detail)
        return "\n".join(lines)


def compare(
    got: Any, want: Any, *, tolerance: Tolerance | None = None, strides: bool = False
) -> Difference | None:
    """Compare two values; ``None`` means that they agree.

    Tuples and lists count as the same kind of sequence, and no other type does (a ``range`` is
    none: it does not cross between processes either). NumPy's scalars count as Python numbers; a
    ``bool`` is not an ``int``, an ``int`` is not a ``float``, a 0-dim tensor is not a number.
    NaN equals NaN. Integers and booleans must always be equal; floating-point values may differ by
    a few units in the last place of ``want``'s dtype, if no other tolerance is given.
    """
    return _compare(got, want, _How(tolerance, strides))


def agree(
    got: Any, want: Any, *, tolerance: Tolerance | None = None, strides: bool = False
) -> bool:
    """Return whether :func:`compare` finds no difference, without the cost of explaining one."""
    return _compare(got, want, _How(tolerance, strides, explain=False)) is None


def kind_of(value: Any) -> str:
    """Return the words for a value's type that a learner would use: ``a tensor``, ``an int``, …"""
    if row := grid(value):
        return row.words(value)
    if value is None:
        return "None"
    if isinstance(value, (bool, np.bool_)):
        return "a bool"
    if isinstance(value, numbers.Integral):
        return "an int"
    if isinstance(value, (tuple, list)):
        return f"a {type(value).__name__}" if type(value) in (tuple, list) else "a tuple"
    return with_article(type(value).__name__)


def with_article(name: str) -> str:
    """``an IndexError``, ``a ValueError``."""
    return f"{'an' if name[:1].lower() in set('aeiou') else 'a'} {name}"


def default_tolerance(dtype: Any) -> Tolerance:
    """Return the tolerance that :func:`compare` uses for values of ``dtype`` when none is given.

    ``dtype`` is torch's or NumPy's, or its name.
    """
    return _DEFAULT_TOLERANCES.get(str(dtype).removeprefix("torch."), EXACT)


def _compare(got: Any, want: Any, how: _How) -> Difference | None:
    if row := grid(want):
        return _compare_grids(row, got, want, how)
    if isinstance(want, Mapping):
        return _compare_mappings(got, want, how)
    if isinstance(want, Sequence) and not isinstance(want, (str, bytes)):
        return _compare_sequences(got, want, how)
    return _compare_scalars(got, want, how)


def _wrong_type(got: Any, expected: str) -> Difference:
    guess = ""
    if kind_of(got) == "a 0-dim tensor":
        guess = "`.item()` turns a 0-dim tensor into a Python number"
    if got is None:
        guess = MISSING_RETURN
    if isinstance(got, (range, Iterator)) and expected in ("a list", "a tuple"):
        guess = "`list(...)` makes a list of it"
    return Difference("type", f"expected {expected}, got {kind_of(got)}", guess=guess)


def _compare_grids(row: Grid, got: Any, want: Any, how: _How) -> Difference | None:
    if grid(got) is not row:
        return _wrong_type(got, row.words(want))
    if got.shape != want.shape:
        small = how.explain and max(row.count(got), row.count(want)) <= LARGEST
        return Difference(
            "shape",
            f"wrong shape: expected {tuple(want.shape)}, got {tuple(got.shape)}",
            guess=guess_shape(row.numbers(got), row.numbers(want)) if small else "",
        )
    if got.dtype != want.dtype:
        return Difference(
            "dtype", f"right shape, wrong dtype: expected {want.dtype}, got {got.dtype}"
        )
    # most often, and much faster
    values = None if row.equal(got, want) else _compare_values(row, got, want, how)
    strides = row.strides(got), row.strides(want)
    if values is None and how.strides and strides[0] != strides[1]:
        return Difference(
            "strides", f"right values, wrong strides: expected {strides[1]}, got {strides[0]}"
        )
    return values


def _compare_values(row: Grid, got: Any, want: Any, how: _How) -> Difference | None:
    g, w = row.numbers(got), row.numbers(want)
    whole = w.dtype.kind == "i"
    tolerance = EXACT if whole else how.tolerance or default_tolerance(want.dtype)
    with np.errstate(all="ignore"):
        differ = g != w
        if not whole:
            differ = ~np.isclose(g, w, tolerance.rtol, tolerance.atol, equal_nan=True)
        if not differ.any():
            return None
        if not how.explain:
            return Difference("values", "")
        return _explained(g, w, differ, tolerance)


def _explained(
    g: np.ndarray, w: np.ndarray, differ: np.ndarray, tolerance: Tolerance
) -> Difference:
    count, wrong = int(differ.sum()), np.argwhere(differ)[:5].tolist()
    summary = f"right shape and dtype, wrong values: {count} of {w.size} differ"
    if w.size == 1:
        summary = "right shape and dtype, but the number is not the expected one"
    form = "" if w.dtype.kind == "c" else "g"
    lines = [
        f"  {at}: got {g[tuple(at)].item():{form}}, expected {w[tuple(at)].item():{form}}"
        for at in wrong
    ]
    if count > 5:
        lines.append(f"  … and {count - 5} more")
    if w.dtype.kind != "i":
        error = np.abs(g - w)
        largest = np.where(np.isfinite(error) & differ, error, 0.0).max()
        lines.append(
            f"  largest error {largest:.3g}; allowed "
            f"{tolerance.atol:g} + {tolerance.rtol:g}·|expected|"
        )
    return Difference("values", summary, "\n".join(lines), guess_values(g, w))


def _compare_mappings(got: Any, want: Mapping, how: _How) -> Difference | None:
    if not isinstance(got, Mapping):
        return _wrong_type(got, "a dict")
    if not how.explain and len(got) != len(want):
        return Difference("keys", "")
    missing = [key for key in want if key not in got]
    extra = [key for key in got if key not in want]
    if missing or extra:
        said = [f"missing {_FEW.repr(missing)}"] if missing else []
        said += [f"not expected {_FEW.repr(extra)}"] if extra else []
        return Difference("keys", f"wrong keys: {', '.join(said)}")
    for key in want:
        difference = _compare(got[key], want[key], how)
        if difference is not None:
            return difference.inside(key)
    return None


def _compare_sequences(got: Any, want: Sequence, how: _How) -> Difference | None:
    if not isinstance(got, (tuple, list)):
        return _wrong_type(got, kind_of(want))
    if len(got) != len(want):
        detail = _side_by_side(got, want)
        detail = detail if len(detail) < 220 else ""
        entries = "1 entry" if len(want) == 1 else f"{len(want)} entries"
        return Difference("length", f"expected {entries}, got {len(got)}", detail)
    for index, (g, w) in enumerate(zip(got, want, strict=True)):
        difference = _compare(g, w, how)
        if difference is None:
            continue
        if not how.explain:
            return difference
        if difference.kind == "values" and _all_integers(got) and _all_integers(want):
            return _compare_integer_sequences(got, want)
        return difference.inside(index)
    return None


def _all_integers(values: Sequence) -> bool:
    return all(isinstance(v, numbers.Integral) and not isinstance(v, bool) for v in values)


def _compare_integer_sequences(got: Sequence, want: Sequence) -> Difference:
    """Shapes and strides are read as a whole."""
    wrong = sum(g != w for g, w in zip(got, want, strict=True))
    guess = ""
    if all(abs(int(value)) < 2**62 for value in (*got, *want)):  # as in int64
        guess = guess_values(np.array([*map(int, got)]), np.array([*map(int, want)]))
    summary = f"right length, wrong values: {wrong} of {len(want)} entries differ"
    if len(want) == 1:
        summary = "right length, but the entry is not the expected one"
    return Difference(
        "values",
        summary,
        _side_by_side(got, want),
        guess,
    )


def _side_by_side(got: Sequence, want: Sequence) -> str:
    """Return both values in the type that was asked for, so that only values differ."""
    alike = list if isinstance(want, list) else tuple
    return f"  got {alike(got)}, expected {alike(want)}"


def _compare_scalars(got: Any, want: Any, how: _How) -> Difference | None:
    if isinstance(want, numbers.Number) and not isinstance(want, bool):
        return _compare_numbers(got, want, how)
    if isinstance(want, (bool, np.bool_)) and isinstance(got, (bool, np.bool_)):
        got, want = bool(got), bool(want)
    elif type(got) is not type(want):
        return _wrong_type(got, "None" if want is None else kind_of(want))
    if got == want:
        return None
    if isinstance(want, bool):  # whoever knows one knows the other
        return Difference("values", f"expected {want}, got {got}")
    noun = "text" if isinstance(want, str) else kind_of(want).split(" ", 1)[1]
    # one of a handful of names gives no number away
    row = kind(want)
    which = f": got {got}" if row and row.tag == "dtype" else ""
    summary = f"the {noun} is not the expected one{which}"
    return Difference("values", summary, f"  got {got!r}, expected {want!r}")


def _compare_numbers(got: Any, want: numbers.Number, how: _How) -> Difference | None:
    is_number = isinstance(got, (numbers.Integral, float, complex, np.inexact)) and not isinstance(
        got, (bool, np.bool_)
    )
    same_kind = all(
        isinstance(got, kind) == isinstance(want, kind) for kind in (numbers.Integral, numbers.Real)
    )
    if not is_number or not same_kind:
        return _wrong_type(got, kind_of(want))
    if isinstance(want, numbers.Integral):
        equal = int(got) == int(want)
    else:
        tol = how.tolerance or default_tolerance("float64")
        number: Any = want
        equal = bool(np.isclose(got, number, rtol=tol.rtol, atol=tol.atol, equal_nan=True))
    if equal:
        return None
    summary = "the number is not the expected one"
    if not _is_finite(got) and _is_finite(want):
        summary = f"expected a finite number, got {got}"
    return Difference("values", summary, f"  got {got!r}, expected {want!r}")


def _is_finite(number: Any) -> bool:
    return isinstance(number, numbers.Integral) or bool(np.isfinite(number))
