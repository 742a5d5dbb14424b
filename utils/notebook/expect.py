"""Visible checks. A check prints a line with ``ok``, or raises ExpectationFailed, which says why.

The checks never broadcast. They compare type, shape and dtype before values, and show the first
mismatches. Labs call the checks, and a learner may call them on any value.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import torch

from hood.judge.checks.compare import (
    EXACT,
    Difference,
    Tolerance,
    compare,
    default_tolerance,
    kind_of,
)


class ExpectationFailed(AssertionError):
    """A value is not as expected. Jupyter shows only the message, without a traceback."""

    def _render_traceback_(self) -> list[str]:
        """IPython calls this instead of printing the stack."""
        return [
            "not yet  " + line if i == 0 else "         " + line
            for i, line in enumerate(str(self).splitlines())
        ]


def expect_equal(label: str, got: Any, want: Any, *, strides: bool = False) -> None:
    """Expect ``got`` to equal ``want`` exactly: same type, shape, dtype and values.

    With ``strides=True`` the strides of tensors must agree too.
    """
    _report(label, got, want, compare(got, want, tolerance=EXACT, strides=strides))


def expect_close(
    label: str, got: Any, want: Any, *, rtol: float | None = None, atol: float | None = None
) -> None:
    """Expect ``got`` to equal ``want`` up to rounding.

    If ``got`` is a tensor, ``want`` may be a nested list of numbers. The numbers then get the
    tensor's dtype, but floats never become whole numbers. By default the tolerance is a few units
    in the last place of the dtype.
    """
    if isinstance(got, torch.Tensor) and isinstance(want, (list, tuple, int, float)):
        fits = torch.can_cast(torch.tensor(want).dtype, got.dtype)
        want = torch.tensor(want, dtype=got.dtype if fits else None)
        # Numbers in a notebook's code have only a few digits, and not all digits of the dtype.
        rtol, atol = (1e-4 if rtol is None else rtol), (1e-4 if atol is None else atol)
    dtype = want.dtype if isinstance(want, torch.Tensor) else torch.float64
    usual = default_tolerance(dtype)
    tolerance = Tolerance(
        usual.rtol if rtol is None else rtol, usual.atol if atol is None else atol
    )
    explicit = rtol is not None or atol is not None
    _report(label, got, want, compare(got, want, tolerance=tolerance if explicit else None))


def expect_shape(label: str, got: Any, shape: tuple[int, ...]) -> None:
    """Expect ``got`` to be a tensor of exactly this shape."""
    if not isinstance(got, torch.Tensor):
        _fail(label, f"expected a tensor of shape {tuple(shape)}, got {kind_of(got)}")
    if tuple(got.shape) != tuple(shape):
        _fail(label, f"wrong shape: expected {tuple(shape)}, got {tuple(got.shape)}")
    _ok(label, got)


def storage_key(tensor: torch.Tensor) -> tuple[str, int]:
    """Return a key of a tensor's storage. Two tensors have the same key if they share a storage.

    The key is the address of the first byte. An empty storage, or a storage on ``meta``, has no
    address. Then the key is the identity of the storage.
    """
    storage = tensor.untyped_storage()
    place = 0 if tensor.is_meta else storage.data_ptr()
    return str(tensor.device), place or storage._cdata


def shares_storage(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Return whether two tensors are views of one storage (storage objects always differ)."""
    return storage_key(a) == storage_key(b)


def expect_shares_storage(label: str, a: torch.Tensor, b: torch.Tensor) -> None:
    """Expect ``a`` and ``b`` to be views of the same storage."""
    for value in (a, b):
        if not isinstance(value, torch.Tensor):
            _fail(label, f"expected two tensors, got {kind_of(value)}")
    if not shares_storage(a, b):
        _fail(label, "expected two views of one storage, got two storages: one is a copy")
    _ok(label, a, note="shares its storage")


def expect_raises(
    label: str, exception: type[BaseException], function: Callable, *args: Any, **kwargs: Any
) -> None:
    """Expect ``function(*args, **kwargs)`` to raise ``exception``."""
    try:
        result = function(*args, **kwargs)
    except exception as error:
        _ok(label, note=f"{type(error).__name__}: {error}")
        return
    except Exception as error:
        _fail(label, f"expected {exception.__name__}, got {type(error).__name__}: {error}")
    _fail(label, f"expected {exception.__name__}, but it returned {kind_of(result)}")


def _report(label: str, got: Any, want: Any, difference: Difference | None) -> None:
    if difference is not None:
        _fail(label, str(difference))
    swapped = isinstance(want, tuple) and isinstance(got, list)
    _ok(label, got, note="a list, but the expected value is a tuple" if swapped else "")


def _fail(label: str, message: str) -> None:
    raise ExpectationFailed(f"{label}: {message}")


def _ok(label: str, got: Any = None, note: str = "") -> None:
    if isinstance(got, torch.Tensor) and not note:
        note = f"{str(got.dtype).removeprefix('torch.')} {tuple(got.shape)}"
    print(f"ok       {label}" + (f"  ({note})" if note else ""), file=sys.stdout)
