"""Find the row of a value in the table of kinds, and walk through containers of values."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from types import NoneType
from typing import Any

from hood.judge.values import arrays
from hood.judge.values.kind import Grid, Kind

# Most values have one of these types. They are plain, which is soon known.
PLAIN = frozenset({int, float, str, bool, NoneType, list, tuple, dict, complex, bytes})
OF_TORCH = ("tensor", "dtype", "device")  # the tags of its kinds


def kind(value: Any) -> Kind | None:
    """Return the row of a value; None if it is plain Python."""
    of: Any = type(value)
    return None if of in PLAIN else _kind(of)


def grid(value: Any) -> Grid | None:
    """Return the row of a value that holds numbers in a shape; None if it is something else."""
    found = kind(value)
    return found if isinstance(found, Grid) else None


def tagged(tag: str) -> Kind | None:
    """Return the row that has a tag in the codec's JSON; None if there is none."""
    rows = _of_torch() if tag in OF_TORCH else arrays.KINDS
    return next((row for row in rows if row.tag == tag), None)


@lru_cache(maxsize=1000)
def _kind(of: type) -> Kind | None:
    # No value can be of a library that is not loaded.
    rows = (*(_of_torch() if "torch" in sys.modules else ()), *arrays.KINDS)
    return next((row for row in rows if issubclass(of, row.type)), None)


def _of_torch() -> Sequence[Kind]:
    from hood.judge.values import tensors  # here, because it imports torch

    return tensors.KINDS


def stored_in(value: Any) -> list[Any]:
    """Return the tensors and arrays inside nested containers, in order."""
    if grid(value):
        return [value]
    if isinstance(value, Mapping):
        value = value.values()
    elif not isinstance(value, (tuple, list)):
        return []
    return [found for item in value for found in stored_in(item)]


def address(value: Any) -> int:
    """Return where the storage of a value lies; 0 if it has none that could be shared."""
    row = grid(value)
    return row.address(value) if row else 0


def mapped(change: Callable[[Any], Any], value: Any) -> Any:
    """Return nested dicts, lists and tuples of their own, with each value in them changed."""
    if isinstance(value, dict):
        return {key: mapped(change, item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        items = [mapped(change, item) for item in value]
        return items if isinstance(value, list) else tuple(items)
    return change(value)


def leaves(value: Any) -> list[Any]:
    """Return the values in nested dicts, lists and tuples, in order."""
    found: list[Any] = []
    mapped(found.append, value)
    return found
