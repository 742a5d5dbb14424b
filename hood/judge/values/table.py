"""Find the row of a value in the table of kinds, and walk through containers of values."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from types import NoneType
from typing import Any

from hood.judge.values import arrays, plain
from hood.judge.values.kind import Composed, Grid, Kind

# Most values have one of these types, which a set finds fast.
PLAIN = frozenset({int, float, str, bool, NoneType, list, tuple, dict, complex, bytes})
SETS = (set, frozenset)  # containers, which the codec sends itself


def _of_torch() -> Sequence[Kind]:
    from hood.judge.values import tensors

    return tensors.KINDS


def _of_pandas() -> Sequence[Kind]:
    from hood.judge.values import frames

    return frames.KINDS


def _of_scipy() -> Sequence[Kind]:
    from hood.judge.values import sparse

    return sparse.KINDS


def _of_matplotlib() -> Sequence[Kind]:
    from hood.judge.values import figures

    return figures.KINDS


# The kinds of values that need a library: the library, the rows, and their tags. The rows are
# imported when a value needs them, because the judge must start without the library.
OF_LIBRARIES: tuple[tuple[str, Callable[[], Sequence[Kind]], tuple[str, ...]], ...] = (
    ("torch", _of_torch, ("tensor", "dtype", "device")),
    ("pandas", _of_pandas, ("frame", "series", "index", "timestamp")),
    ("scipy.sparse", _of_scipy, ("sparse",)),
    ("matplotlib.figure", _of_matplotlib, ("figure",)),
)


def kind(value: Any) -> Kind | None:
    """Return the row of a value; None if it is plain Python."""
    of: Any = type(value)
    found = None if of in PLAIN else _kind(of, len(sys.modules))
    return found and found.row(value)


def grid(value: Any) -> Grid | None:
    """Return the row of a value that is like an array of numbers; None for any other value."""
    found = kind(value)
    return found if isinstance(found, Grid) else None


def tagged(tag: str) -> Kind | None:
    """Return the row with this tag in the codec's JSON; None if there is no such row.

    Raises ImportError if this machine lacks the library that the kind needs.
    """
    of = [rows for _, rows, tags in OF_LIBRARIES if tag in tags]
    rows = of[0]() if of else (*arrays.KINDS, *plain.KINDS)
    return next((row for row in rows if row.tag == tag), None)


@lru_cache(maxsize=1000)
def _kind(of: type, _: int) -> Kind | None:
    """Return the row of a type. After a further import, the row may be different."""
    # If a library is not loaded, no value can belong to it.
    loaded = [rows() for library, rows, _ in OF_LIBRARIES if library in sys.modules]
    rows = (*itertools.chain(*loaded), *arrays.KINDS, *plain.KINDS)
    return next((row for row in rows if issubclass(of, row.type)), None)


def stored_in(value: Any) -> list[Any]:
    """Return, in order, the values in nested containers that a function could change in place.

    Such values are tensors, arrays, tables and the like, but not lists, dicts and sets.
    """
    row = kind(value)
    if isinstance(row, Grid) or (isinstance(row, Composed) and row.watched):
        return [value]
    if isinstance(value, Mapping):
        value = value.values()
    elif not isinstance(value, (tuple, list)):
        return []
    return [found for item in value for found in stored_in(item)]


def address(value: Any) -> int:
    """Return the address of a value's storage; 0 if it has no storage that could be shared."""
    row = grid(value)
    return row.address(value) if row else 0


def mapped(change: Callable[[Any], Any], value: Any) -> Any:
    """Return a copy of nested dicts, lists and tuples, with each value in them changed."""
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
