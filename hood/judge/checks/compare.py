"""Say how one value differs from another.

Properties are compared in this order: type, length or keys, shape, dtype, values, strides. Only the
first difference is reported, because later comparisons then mean nothing. Nothing is ever
broadcast before it is compared.
"""

from __future__ import annotations

import itertools
import numbers
import reprlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hood.judge.checks.guess import LARGEST, guess_shape, guess_values, hedged
from hood.judge.values import plain
from hood.judge.values.kind import Attribute, Composed, Grid, Scalar
from hood.judge.values.table import SETS, grid, kind


@dataclass(frozen=True)
class Tolerance:
    """The condition ``|got - want| <= atol + rtol * |want|``, and the reason for it."""

    rtol: float  # the part of the tolerance that is relative to the expected value
    atol: float  # the absolute part of the tolerance
    reason: str = ""  # why an error of this size is allowed


EXACT = Tolerance(0.0, 0.0, "integers, booleans and pure copies have no rounding")

# The tolerances of torch.testing.assert_close: a few units in the last place of each format.
_DEFAULT_TOLERANCES = {
    "float64": Tolerance(1e-7, 1e-7, "float64 has 52 bits of fraction"),
    "float32": Tolerance(1.3e-6, 1e-5, "float32 has 23 bits; sums run in any order"),
    "float16": Tolerance(1e-3, 1e-5, "float16 has 10 bits of fraction"),
    "bfloat16": Tolerance(1.6e-2, 1e-5, "bfloat16 has 7 bits of fraction"),
    "complex64": Tolerance(1.3e-6, 1e-5, "two float32 numbers"),
    "complex128": Tolerance(1e-7, 1e-7, "two float64 numbers"),
}


MISSING_RETURN = "a missing `return`, if you did not mean to return None"

# A sentence lists keys, so long lists and long keys are shortened.
_FEW = reprlib.Repr()
_FEW.maxlist, _FEW.maxtuple, _FEW.maxstring, _FEW.maxother = 12, 12, 60, 60


@dataclass(frozen=True)
class _How:
    """The arguments of :func:`compare`, and whether the difference must be explained."""

    tolerance: Tolerance | None
    strides: bool
    explain: bool = True


@dataclass(frozen=True)
class Difference:
    """Why ``got`` is not ``want``.

    ``summary`` and ``guess`` name shapes, dtypes and counts but never a value, so both may be shown
    for hidden inputs. ``detail`` shows values, so it is only for inputs that the reader can see.
    """

    kind: str  # ``type``, ``length``, ``keys``, ``shape``, ``dtype``, ``strides`` or ``values``
    summary: str  # a sentence without values
    detail: str = ""  # the first mismatches, with their indices and values
    guess: str = ""  # the probable cause, or an empty string
    path: tuple[Any, ...] = ()  # the keys of the place inside a container, outermost first

    @property
    def where(self) -> str:
        """The place inside a container, such as ``[1]`` or ``['bias']``; "" for the whole value."""
        return "".join(
            f".{key}" if isinstance(key, Attribute) else f"[{key!r}]" for key in self.path
        )

    def inside(self, key: Any) -> Difference:
        """Return an item's difference as a difference of the container. ``key`` leads to the item.

        If the item is None, drop the guess that a ``return`` is missing, because the function did
        return the container.
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
    """Compare two values; return ``None`` if they are equal or close enough.

    Values of a composed kind, such as data frames, are compared item by item. Sets, dates,
    fractions and Decimals must be equal and have the same type. An exception's class must have the
    expected name.

    Tuples and lists count as the same type. No other sequence counts as this type, not even
    ``range``, which can't be sent between processes. NumPy's scalars count as Python numbers. But a
    ``bool`` does not count as an ``int``, an ``int`` does not count as a ``float``, and a 0-dim
    tensor does not count as a number.

    NaN equals NaN. Integers and booleans must be equal, whatever the tolerance. If no tolerance is
    given, floating-point values may differ by a few units in the last place of ``want``'s dtype.
    """
    return _compare(got, want, _How(tolerance, strides))


def agree(
    got: Any, want: Any, *, tolerance: Tolerance | None = None, strides: bool = False
) -> bool:
    """Return whether :func:`compare` finds no difference. This is faster: it explains nothing."""
    return _compare(got, want, _How(tolerance, strides, explain=False)) is None


def kind_of(value: Any) -> str:
    """Return a value's type in words for a learner: ``a tensor``, ``an int``, …"""
    row = kind(value)
    if isinstance(row, (Grid, Composed)):
        said = row.words(value)
        return said if " " in said else with_article(said)
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
    """Return a name with its article: ``an IndexError``, ``a ValueError``."""
    return f"{'an' if name[:1].lower() in set('aeiou') else 'a'} {name}"


def default_tolerance(dtype: Any) -> Tolerance:
    """Return the tolerance that :func:`compare` uses by default for values of ``dtype``.

    ``dtype`` is a dtype of torch or NumPy, or its name.
    """
    return _DEFAULT_TOLERANCES.get(str(dtype).removeprefix("torch."), EXACT)


def _compare(got: Any, want: Any, how: _How) -> Difference | None:
    row = kind(want)
    if isinstance(row, Grid):
        return _compare_grids(row, got, want, how)
    if isinstance(row, Composed):
        return _compare_composed(row, got, want, how)
    if isinstance(want, SETS):
        return _compare_sets(got, want)
    if isinstance(want, Mapping):
        return _compare_mappings(got, want, how)
    if isinstance(want, Sequence) and not isinstance(want, (str, bytes)):
        return _compare_sequences(got, want, how)
    return _compare_scalars(got, want, how)


def _wrong_type(got: Any, expected: str) -> Difference:
    guess = ""
    if kind_of(got) == "a 0-dim tensor":
        guess = "a missing `.item()`, which turns a 0-dim tensor into a Python number"
    if got is None:
        guess = MISSING_RETURN
    if isinstance(got, (range, Iterator)) and expected in ("a list", "a tuple"):
        guess = "a missing `list(...)`, which makes a list of the value"
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
    # Test first for equal values: this is the usual case, and much faster than a comparison.
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
    """Describe a difference of shapes or strides as a whole, not entry by entry."""
    wrong = sum(g != w for g, w in zip(got, want, strict=True))
    guess = ""
    if all(abs(int(value)) < 2**62 for value in (*got, *want)):  # they fit into int64
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
    """Convert both values to the expected type, so that only values differ."""
    alike = list if isinstance(want, list) else tuple
    return f"  got {alike(got)}, expected {alike(want)}"


def _compare_composed(row: Composed, got: Any, want: Any, how: _How) -> Difference | None:
    if isinstance(want, BaseException) and isinstance(got, BaseException):
        known = plain.names_of(want)[0] in plain.names_of(got)
        return None if known else _wrong_type(got, kind_of(want))
    if kind(got) is not row or row.words(got) != row.words(want):
        return _wrong_type(got, row.words(want))
    for (key, w), (_, g) in zip(row.items(want), row.items(got), strict=False):
        if isinstance(key, Attribute) and key in ("shape", "dtype"):
            if g != w:
                return Difference(key, f"wrong {key}: expected {w}, got {g}")
        elif difference := _compare(g, w, how):
            return difference.inside(key)
    return None


def _compare_sets(got: Any, want: Any) -> Difference | None:
    if type(got) is not type(want):
        return _wrong_type(got, kind_of(want))
    missing, extra = want - got, got - want
    if not missing and not extra:
        return None
    counts = [f"{len(missing)} missing"] if missing else []
    counts += [f"{len(extra)} not expected"] if extra else []
    lines = [f"  missing: {_FEW.repr(missing)}"] if missing else []
    lines += [f"  not expected: {_FEW.repr(extra)}"] if extra else []
    summary = f"wrong items in the {kind_of(want).split()[1]}: {', '.join(counts)}"
    return Difference("values", summary, "\n".join(lines))


def _compare_texts(got: str, want: str) -> Difference:
    lines, wanted = got.splitlines(), want.splitlines()
    pairs = itertools.zip_longest(lines, wanted)
    first = next((at for at, (g, w) in enumerate(pairs) if g != w), None)
    if len(wanted) < 2 or first is None:
        summary, g, w = f"the text is not the expected one{_only(got, want)}", got, want
    elif len(lines) != len(wanted):
        summary = f"expected {len(wanted)} lines of text, got {len(lines)}"
        g, w = ("".join(some[first : first + 1]) for some in (lines, wanted))
    else:
        summary = f"line {first + 1} of the text is not the expected one"
        g, w = lines[first], wanted[first]
    return Difference("values", summary, f"  got {g!r}, expected {w!r}")


def _only(got: str, want: str) -> str:
    """Return a clause if two texts differ only in easily overlooked characters; else ""."""
    if got.rstrip("\n") == want.rstrip("\n"):
        return ": it differs only in the line breaks at the end"
    if "".join(got.split()) == "".join(want.split()):
        return ": it differs only in spaces and line breaks"
    if got.casefold() == want.casefold():
        return ": it differs only in small and capital letters"
    return ""


def _compare_scalars(got: Any, want: Any, how: _How) -> Difference | None:
    scalar = isinstance(kind(want), Scalar)
    if isinstance(want, numbers.Number) and not isinstance(want, bool) and not scalar:
        return _compare_numbers(got, want, how)
    if isinstance(want, (bool, np.bool_)) and isinstance(got, (bool, np.bool_)):
        got, want = bool(got), bool(want)
    elif type(got) is not type(want):
        return _wrong_type(got, "None" if want is None else kind_of(want))
    if plain.same(got, want):
        return None
    if isinstance(want, str):
        return _compare_texts(got, want)
    if isinstance(want, bool):  # a wrong bool reveals the right one anyway
        return Difference("values", f"expected {want}, got {got}")
    noun = kind_of(want).split(" ", 1)[1]
    # a dtype may be shown: it reveals no number
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
