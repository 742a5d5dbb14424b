"""Seeded random inputs for checks: the same seed draws the same shapes, numbers and layouts."""

from __future__ import annotations

import hashlib
import math
import random
import string
from collections.abc import Sequence
from datetime import date, timedelta
from functools import cached_property
from typing import Any, TypeVar

from hood.judge.values.arrays import ArraySource
from hood.judge.values.kind import Source

T = TypeVar("T")
MANY = 12  # a tensor with more numbers than this is filled with consecutive numbers


class Draw:
    """A stream of random choices that depends only on a seed (any text) and a check's name."""

    def __init__(self, seed: str, name: str = ""):
        digest = hashlib.sha256(f"{seed}/{name}".encode()).digest()
        self._random = random.Random(digest)
        self._seed = int.from_bytes(digest[:7], "big")

    def integer(self, low: int, high: int) -> int:
        """Return an integer from ``low`` to ``high``, both included."""
        return self._random.randint(low, high)

    def choice(self, options: Sequence[T]) -> T:
        return self._random.choice(options)

    def sample(self, options: Sequence[T], count: int) -> list[T]:
        """Return ``count`` different options, in random order."""
        return self._random.sample(options, count)

    def shape(self, rank: int, low: int = 2, high: int = 7) -> tuple[int, ...]:
        """Return ``rank`` sizes, all different, so that exchanged dimensions are noticed."""
        return tuple(self._random.sample(range(low, high + 1), rank))

    def tensor(self, shape: Sequence[int], dtype: Any = None, layout: str = "contiguous") -> Any:
        """Return a tensor of random values in a chosen memory layout.

        Floating-point values have a normal distribution with a mean of 0.3. Integers are from -9 to
        9. The default ``dtype`` is float32. The layout ``transposed`` stores dimensions in reverse
        order. The layout ``sliced`` takes every second element of a larger storage, with an offset.
        """
        return self._laid_out(self._tensors, shape, dtype, layout)

    def array(self, shape: Sequence[int], dtype: Any = None, layout: str = "contiguous") -> Any:
        """Return a NumPy array; see :meth:`tensor`. The default ``dtype`` is float64."""
        return self._laid_out(self._arrays, shape, dtype, layout)

    def text(self, length: int, letters: str = string.ascii_lowercase) -> str:
        """Return a text of random letters."""
        return "".join(self.choice(letters) for _ in range(length))

    def date(self, first: date, last: date) -> date:
        """Return a day from ``first`` to ``last``, both included."""
        return first + timedelta(days=self.integer(0, (last - first).days))

    def frame(self, rows: int, **columns: Any) -> Any:
        """Return a pandas data frame; a column is given by its dtype, or by its possible values.

        ``draw.frame(4, city=["Rome", "Oslo"], price="float64")`` has four rows.
        """
        import pandas as pd  # here, because few courses need it

        drawn = {
            name: self.array((rows,), of)
            if isinstance(of, (str, type))
            else [self.choice(of) for _ in range(rows)]
            for name, of in columns.items()
        }
        return pd.DataFrame(drawn)

    @cached_property
    def _tensors(self) -> Source:
        from hood.judge.values.tensors import TensorSource  # here, because it imports torch

        return TensorSource(self._seed)

    @cached_property
    def _arrays(self) -> Source:
        return ArraySource(self._seed)

    def _laid_out(self, source: Source, shape: Sequence[int], dtype: Any, layout: str) -> Any:
        dtype = source.dtype(dtype)
        if layout == "contiguous":
            return self._values(source, shape, dtype)
        if layout == "transposed":
            return source.reversed(self._values(source, tuple(reversed(shape)), dtype))
        if layout == "sliced":
            wide = self._values(source, (*shape[:-1], 2 * shape[-1] + 1), dtype)
            return wide[..., 1::2]
        raise ValueError(f"layout {layout!r}: expected contiguous, transposed or sliced")

    def _values(self, source: Source, shape: Sequence[int], dtype: Any) -> Any:
        form, _ = source.form(dtype)
        if form in "fc":
            return source.normal(shape, dtype)
        low, high = (0, 2) if form == "b" else (0 if form == "u" else -9, 10)
        return source.whole(low, high, shape, dtype)


class SmallDraw(Draw):
    """Random choices that a person can read: small sizes, small numbers, few digits.

    The choices stay within the bounds that a check's generator gives, so they make valid cases of
    that check. ``reach`` limits how far an integer may be from the allowed integer nearest to 0.
    If ``reach`` is at most 4, tensors have whole numbers, and large tensors have consecutive
    numbers. If ``reach`` is larger, tensors have numbers with one decimal.
    """

    def __init__(self, seed: str, name: str = "", reach: int = 1):
        super().__init__(seed, name)
        self._reach = reach

    def integer(self, low: int, high: int) -> int:
        nearest = min(max(low, 0), high)
        return super().integer(max(low, nearest - self._reach), min(high, nearest + self._reach))

    def choice(self, options: Sequence[T]) -> T:
        return super().choice(self._smallest(options, 1))

    def sample(self, options: Sequence[T], count: int) -> list[T]:
        return super().sample(self._smallest(options, count), count)

    def shape(self, rank: int, low: int = 2, high: int = 7) -> tuple[int, ...]:
        return super().shape(rank, low, min(high, low + rank - 2 + self._reach))

    def _smallest(self, options: Sequence[T], count: int) -> Sequence[T]:
        if not all(type(option) in (int, float) for option in options):
            return options
        numbers: Any = options
        return sorted(numbers, key=abs)[: count + self._reach - 1]

    def _values(self, source: Source, shape: Sequence[int], dtype: Any) -> Any:
        form, largest = source.form(dtype)
        if self._reach > 4 and form == "f":
            return source.normal(shape, dtype, decimals=1)
        count = math.prod(shape)
        most = min(250, largest - 4) if form in "iu" else 250  # counting may start at 4
        if MANY < count < most and form != "b":
            return source.counted(self._random.randint(0, 4), count, shape, dtype)
        high = 1 if form == "b" else self._reach + 2
        low = 0 if form in "bu" else -self._reach
        return source.whole(low, high + 1, shape, dtype)
