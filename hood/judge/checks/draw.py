"""Seeded random inputs for checks: the same seed draws the same shapes, numbers and layouts."""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Sequence
from typing import Any, TypeVar

import torch

T = TypeVar("T")
MANY = 12  # numbers of a tensor that nobody wants to read one by one


class Draw:
    """A stream of random choices that depends on a seed, any text, and a check's name alone."""

    def __init__(self, seed: str, name: str = ""):
        digest = hashlib.sha256(f"{seed}/{name}".encode()).digest()
        self._random = random.Random(digest)
        self._generator = torch.Generator().manual_seed(int.from_bytes(digest[:7], "big"))

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

    def tensor(
        self, shape: Sequence[int], dtype: torch.dtype = torch.float32, layout: str = "contiguous"
    ) -> torch.Tensor:
        """Return random values, neither uniform nor centred, in a chosen memory layout.

        Floating-point values are normal with a mean of 0.3, integers from -9 to 9. ``transposed``
        stores dimensions in reverse order; ``sliced`` is every second element of a larger storage,
        with an offset.
        """
        if layout == "contiguous":
            return self._values(shape, dtype)
        if layout == "transposed":
            reverse = tuple(range(len(shape) - 1, -1, -1))
            return self._values(tuple(reversed(shape)), dtype).permute(reverse)
        if layout == "sliced":
            wide = self._values((*shape[:-1], 2 * shape[-1] + 1), dtype)
            return wide[..., 1::2]
        raise ValueError(f"layout {layout!r}: expected contiguous, transposed or sliced")

    def _values(self, shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        if dtype.is_floating_point or dtype.is_complex:
            real = torch.complex128 if dtype.is_complex else torch.float64
            values = torch.randn(tuple(shape), generator=self._generator, dtype=real)
            return (values * 1.3 + 0.3).to(dtype)
        low, high = (0, 2) if dtype is torch.bool else (0 if dtype is torch.uint8 else -9, 10)
        values = torch.randint(low, high, tuple(shape), generator=self._generator)
        return values.to(dtype)


class SmallDraw(Draw):
    """Random choices that a person can read: small sizes, small numbers, few digits.

    They keep within the bounds that a check's generator asks for, so the cases drawn are cases of
    that check. ``reach`` says how far above the smallest choice a number may be. Up to 4, tensors
    hold whole numbers, consecutive ones if there are many; above, numbers with one decimal.
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

    def _values(self, shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        if self._reach > 4 and dtype.is_floating_point:
            return super()._values(shape, torch.float64).round(decimals=1).to(dtype)
        count = math.prod(shape)
        is_whole = not (dtype.is_floating_point or dtype.is_complex or dtype is torch.bool)
        most = min(250, torch.iinfo(dtype).max - 4) if is_whole else 250  # from 4 on
        if MANY < count < most and dtype is not torch.bool:
            start = self._random.randint(0, 4)
            return torch.arange(start, start + count).to(dtype).reshape(tuple(shape))
        high = 1 if dtype is torch.bool else self._reach + 2
        low = 0 if dtype in (torch.bool, torch.uint8) else -self._reach
        return torch.randint(low, high + 1, tuple(shape), generator=self._generator).to(dtype)
