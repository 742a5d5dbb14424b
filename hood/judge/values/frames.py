"""The rows of pandas' tables, columns and labels in the table of kinds.

Columns of numbers, booleans and dates without a time zone are sent as arrays. All other columns are
sent item by item, with None for missing values.
"""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pandas as pd

from hood.judge.values import arrays
from hood.judge.values.kind import (
    Attribute,
    Composed,
    NotByValue,
    Scalar,
    Unprintable,
    Writer,
    expect,
)

AS_ARRAYS = "biufcmM"
# Dtypes of columns that are sent item by item.
BY_ITEM = (
    r"object|str|string|category|boolean|U?Int(8|16|32|64)|Float(32|64)|datetime64\[\w+, UTC\]"
)
# Limit for labels in several levels, and for rows of a column of categories. pandas puts these
# values in a hash table. The hashes are predictable, so building the table may take quadratic time.
MAX_HASHED = 1000
# Dtypes that pandas gives to a list of Python's values.
INFERRED = {*arrays.INFERRED, "object", "str"}


def _column(values: Any) -> list[Any]:
    """Return a column's dtype and its values: an array, or a list with None for missing values."""
    if isinstance(values.dtype, np.dtype) and values.dtype.kind in AS_ARRAYS:
        return [str(values.dtype), values.to_numpy()]
    if not re.fullmatch(BY_ITEM, str(values.dtype)):
        raise NotByValue(f"a column of dtype {values.dtype}")
    _few_enough(str(values.dtype), values)
    items, missing = values.astype(object).tolist(), pd.isna(values).tolist()
    return [str(values.dtype), [None if no else x for x, no in zip(items, missing, strict=True)]]


def _few_enough(dtype: str, values: Any) -> None:
    if dtype == "category" and len(values) > MAX_HASHED:
        raise NotByValue(f"a column of categories with more than {MAX_HASHED:,} rows")


def _made_column(content: Any) -> Any:
    dtype, values = expect(content, str, object)
    if type(values) is np.ndarray:
        if values.ndim != 1 or str(values.dtype) != dtype:
            raise NotByValue("a message with a column of an unexpected form")
        return pd.Series(values)
    if type(values) is not list or not re.fullmatch(BY_ITEM, dtype):
        raise NotByValue("a message with a column of an unknown dtype")
    _few_enough(dtype, values)
    texts, dates = dtype.startswith("str"), dtype.startswith("datetime64")
    of = str if texts else pd.Timestamp if dates else object
    if not all(value is None or isinstance(value, of) for value in values):
        raise NotByValue("a message with a column whose values do not fit its dtype")
    held = np.empty(len(values), object)
    for at, value in enumerate(values):
        held[at] = value
    return pd.Series(held, dtype=dtype)


class IndexKind(Composed):
    """Labels of rows or columns. Labels in several levels are sent as tuples."""

    tag, type = "index", pd.Index
    imports = ("import pandas as pd",)
    watched = False  # pandas never changes an index

    def parts(self, value: Any) -> list[Any]:
        names = list(value.names)
        if len(names) > 1 and len(value) > MAX_HASHED:
            raise NotByValue(f"more than {MAX_HASHED:,} labels in several levels")
        return [names, _column(pd.Series(value.to_flat_index()))]

    def made(self, parts: Any) -> Any:
        names, column = expect(parts, list, list)
        labels = _made_column(column)
        if len(names) == 1:
            return pd.Index(labels, name=names[0])
        whole = all(type(one) is tuple and len(one) == len(names) for one in labels)
        if len(labels) > MAX_HASHED or not whole:
            raise NotByValue("a message with labels of an unexpected form")
        return pd.MultiIndex.from_tuples(labels.tolist(), names=names)

    def items(self, value: Any) -> list[tuple[Any, Any]]:
        names, column = self.parts(value)
        return [(Attribute("names"), names), *_as_items(column)]

    def words(self, value: Any) -> str:
        return "an index"

    def literal(self, value: Any, writer: Writer) -> str:
        if value.nlevels > 1 or str(value.dtype) not in INFERRED:
            raise Unprintable("an index of another dtype")
        name = f", name={value.name!r}" if value.name is not None else ""
        return f"pd.Index({writer.text(_column(value)[1] if len(value) else [])}{name})"


class SeriesKind(Composed):
    tag, type = "series", pd.Series
    imports = IndexKind.imports

    def parts(self, value: Any) -> list[Any]:
        return [value.name, value.index, _column(value)]

    def made(self, parts: Any) -> Any:
        name, index, column = expect(parts, object, object, list)
        made = _made_column(column)
        if not isinstance(index, pd.Index) or len(index) != len(made):
            raise NotByValue("a message with an index of the wrong length")
        made.index, made.name = index, name
        return made

    def items(self, value: Any) -> list[tuple[Any, Any]]:
        name, index, column = self.parts(value)
        return [(Attribute("name"), name), (Attribute("index"), index), *_as_items(column)]

    def words(self, value: Any) -> str:
        return "a series"

    def literal(self, value: Any, writer: Writer) -> str:
        items = _literal_column(value, writer)
        name = f", name={writer.text(value.name)}" if value.name is not None else ""
        return f"pd.Series({items}{_literal_index(value.index, writer)}{name})"


class FrameKind(Composed):
    tag, type = "frame", pd.DataFrame
    imports = IndexKind.imports

    def parts(self, value: Any) -> list[Any]:
        columns = [_column(value.iloc[:, at]) for at in range(value.shape[1])]
        return [value.columns, value.index, columns]

    def made(self, parts: Any) -> Any:
        names, index, columns = expect(parts, object, object, list)
        made = [_made_column(column) for column in columns]
        if not isinstance(names, pd.Index) or not isinstance(index, pd.Index):
            raise NotByValue("a message with a table without labels")
        if len(names) != len(made) or any(len(column) != len(index) for column in made):
            raise NotByValue("a message with a table of the wrong shape")
        frame = pd.DataFrame(dict(enumerate(made))) if made else pd.DataFrame(index=index)
        frame.index, frame.columns = index, names
        return frame

    def items(self, value: Any) -> list[tuple[Any, Any]]:
        names = value.columns.tolist()
        return [
            (Attribute("columns"), dict.fromkeys(names)),  # names the missing columns
            (Attribute("columns"), value.columns),
            (Attribute("index"), value.index),
            *((name, value.iloc[:, at]) for at, name in enumerate(names)),
        ]

    def words(self, value: Any) -> str:
        return "a data frame"

    def literal(self, value: Any, writer: Writer) -> str:
        names = value.columns
        if not value.size or names.nlevels > 1 or names.name is not None or not names.is_unique:
            raise Unprintable("a table without items, or with several levels of labels")
        columns = [
            f"{writer.text(name)}: {_literal_column(value.iloc[:, at], writer)}"
            for at, name in enumerate(names.tolist())
        ]
        return f"pd.DataFrame({{{', '.join(columns)}}}{_literal_index(value.index, writer)})"


class TimestampKind(Scalar):
    tag, type = "timestamp", (pd.Timestamp, pd.Timedelta, type(pd.NaT), type(pd.NA))
    imports = IndexKind.imports

    def sent(self, value: Any, encoder: Any) -> list[str]:
        if value is pd.NaT or value is pd.NA:
            return ["missing", str(value)]
        return [type(value).__name__, value.isoformat()]

    def received(self, content: Any, decoder: Any) -> Any:
        kind, text = expect(content, str, str)
        if len(text) > 100:
            raise NotByValue("a message with a date that is not a short text")
        if kind == "missing":
            return pd.NA if text == "<NA>" else pd.NaT
        return {"Timestamp": pd.Timestamp, "Timedelta": pd.Timedelta}[kind](text)

    def literal(self, value: Any, writer: Writer) -> str:
        kind, text = self.sent(value, None)
        if kind == "missing":
            return "pd.NA" if value is pd.NA else "pd.NaT"
        return f"pd.{kind}({text!r})"


def _as_items(column: list[Any]) -> list[tuple[Any, Any]]:
    """Return a column's dtype and values. All dtypes of texts count as ``object``."""
    dtype, values = column
    dtype = "object" if dtype.startswith("str") else dtype
    return [(Attribute("dtype"), dtype), (Attribute("values"), values)]


def _literal_column(column: Any, writer: Writer) -> str:
    dtype = str(column.dtype)
    values = _column(column)[1]
    if not len(values):
        raise Unprintable("an empty column")
    items = values if isinstance(values, list) else values.tolist()
    if isinstance(values, np.ndarray) and values.dtype.kind == "f":
        if np.isinf(values).any() or np.isnan(values).all():
            raise Unprintable("a column without numbers, or with infinity")
        items = [None if math.isnan(one) else one for one in items]
    if isinstance(values, np.ndarray) and values.dtype.kind == "M":
        days = values.astype("datetime64[D]")
        timeless = ((days == values) | np.isnat(values)).all()
        items = np.datetime_as_string(days if timeless else values).tolist()
    text = writer.text(items)
    if dtype in INFERRED:
        return text
    if isinstance(values, np.ndarray) and values.dtype.kind not in "iuM":
        raise Unprintable(f"a column of dtype {dtype}")
    return f"pd.Series({text}, dtype={dtype!r})"


def _literal_index(index: Any, writer: Writer) -> str:
    labels = index.to_numpy()
    if index.name is None and np.array_equal(labels, np.arange(len(labels))):
        return ""
    return f", index={IndexKind().literal(index, writer)}"


KINDS = (FrameKind(), SeriesKind(), IndexKind(), TimestampKind())
