"""The row of SciPy's sparse matrices and arrays in the table of kinds."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from hood.judge.values.kind import Attribute, Composed, NotByValue, Unprintable, Writer, expect

FORMATS = ("csr", "csc", "coo")  # in other formats, zeros may need memory, too
MAX_SIZE = 100_000  # rows or columns


class SparseKind(Composed):
    """A sparse matrix or array with two dimensions: its numbers and their positions.

    If two numbers are stored at the same position, their sum counts. A stored zero is sent, too.
    Formats other than csr, csc and coo become coo.
    """

    tag, type = "sparse", (sparse.spmatrix, sparse.sparray)
    imports = ("from scipy import sparse",)

    def parts(self, value: Any) -> list[Any]:
        if len(value.shape) != 2 or max(value.shape) > MAX_SIZE:
            raise NotByValue(f"a sparse array that is not a table of at most {MAX_SIZE:,} rows")
        held = sparse.coo_array(value)
        held.sum_duplicates()  # this also sorts the positions
        rows, columns = (np.asarray(one, np.int64) for one in held.coords)
        return [*self._what(value), [*value.shape], rows, columns, held.data]

    def made(self, parts: Any) -> Any:
        kind, form, shape, *grids = expect(parts, str, str, list, *[np.ndarray] * 3)
        rows, columns, data = grids
        height, width = expect(shape, int, int)
        same = all(one.ndim == 1 and len(one) == len(data) for one in grids)
        if form not in FORMATS or kind not in ("array", "matrix") or not same:
            raise NotByValue("a message with a sparse matrix of an unexpected form")
        if not 0 <= min(height, width) <= max(height, width) <= MAX_SIZE:
            raise NotByValue("a message with a sparse matrix that is too large")
        inside = ((rows >= 0) & (rows < height) & (columns >= 0) & (columns < width)).all()
        if rows.dtype != np.int64 or columns.dtype != np.int64 or not inside:
            raise NotByValue(
                "a message with a sparse matrix whose positions are not integers within its shape"
            )
        of = sparse.coo_array if kind == "array" else sparse.coo_matrix
        return of((data, (rows, columns)), (height, width)).asformat(form)

    def _what(self, value: Any) -> tuple[str, str]:
        form = value.format if value.format in FORMATS else "coo"
        return "array" if isinstance(value, sparse.sparray) else "matrix", form

    def items(self, value: Any) -> list[tuple[Any, Any]]:
        _, form, shape, rows, columns, data = self.parts(value)
        places = [*zip(rows.tolist(), columns.tolist(), strict=True)]
        found = [(Attribute("shape"), tuple(shape)), (Attribute("format"), form)]
        return [*found, (Attribute("nonzero()"), places), (Attribute("data"), data)]

    def words(self, value: Any) -> str:
        return f"a sparse {self._what(value)[0]}"

    def literal(self, value: Any, writer: Writer) -> str:
        kind, form, shape, rows, columns, data = self.parts(value)
        if value.format not in FORMATS:
            raise Unprintable(f"a sparse matrix of the format {value.format}")
        places = ", ".join(writer.text(one.tolist()) for one in (rows, columns))
        numbers = writer.text(data.tolist())
        return f"sparse.{form}_{kind}(({numbers}, ({places})), {tuple(shape)})"


KINDS = (SparseKind(),)
