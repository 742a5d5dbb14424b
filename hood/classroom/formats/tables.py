"""Read a table that comes from outside: of an LMS, or as a spreadsheet program has saved it."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice, zip_longest
from pathlib import Path
from typing import NamedTuple

from hood import UserError
from hood.grader.submission.names import nfc

MAX_BYTES = 16 << 20  # of one table; a line of 200 characters for each of 80,000 learners
MAX_COLUMNS = 1_000
SEPARATORS = ",;\t"
SEPARATOR = re.compile(r"\ufeff?sep=([,;\t])\r?\n", re.IGNORECASE)  # as a first line, Excel's own
MAX_ABOVE = 10  # a title and the like, above the headings
SPACE = re.compile(r"[\s\u200b\u2060\ufeff]+")
MARKS = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16", b"\xef\xbb\xbf": "utf-8-sig"}


class Row(NamedTuple):
    """A row's text in each column, and the line in the file where it begins."""

    line: int
    cells: dict[str, str]


@dataclass(frozen=True)
class Table:
    """A table's columns and its rows, without empty ones and those that repeat the headings.

    Text is in NFC, without spaces around it, and with an ordinary space for each other kind.
    """

    name: str
    columns: list[str]
    rows: list[Row]
    note: str = ""  # how it was read, where that was a guess

    def where(self, line: int, column: str) -> str:
        """Return the place of a cell, as an error names it."""
        return f"{self.name}:{line}, column {column!r}"


def read_table(path: Path, wanted: Sequence[Collection[str]] = (), encoding: str = "") -> Table:
    """Return the table in a file, as :func:`table_of`. Raises UserError when it can't be read."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise UserError(f"{path} can't be read: {error}") from error
    return table_of(data, str(path), wanted, encoding)


def table_of(
    data: bytes, name: str, wanted: Sequence[Collection[str]] = (), encoding: str = ""
) -> Table:
    """Return the table in a file's bytes.

    Args:
        name: of the file, for errors.
        wanted: sets of columns. The first row that has all of one is the headings; by default, and
            where there is none, the first row.
        encoding: of the file, where somebody says it; by default it is found out.

    Raises:
        UserError: when it is too large, no text, not closed behind a quotation mark, has more
            cells in a row than columns, or a wanted column twice.
    """
    if len(data) > MAX_BYTES:
        raise UserError(f"{name} is larger than {MAX_BYTES >> 20} MB: expected a table of a class")
    text, note = (_as_said(data, name, encoding), "") if encoding else _decoded(data, name)
    sets = [{plain(column) for column in columns} for columns in wanted]
    separator, above = _form(text, sets)
    rows = _rows(text, separator, name)
    columns = next(islice(rows, above, None), (0, []))[1]
    if len(columns) > MAX_COLUMNS:
        raise UserError(f"{name} has {len(columns)} columns, expected at most {MAX_COLUMNS}")
    for one in {one for columns_of_set in sets for one in columns_of_set}:
        if columns.count(one) > 1:
            raise UserError(f"{name} has two columns {one!r}: expected one of that name")
    found = []
    for line, cells in rows:
        if any(cells[len(columns) :]):
            raise UserError(
                f"{name}:{line}: expected {len(columns)} cells, as there are headings, and there "
                f"are {len(cells)}: a cell with {separator!r} in it needs quotation marks"
            )
        if cells != columns:
            found.append(Row(line, dict(zip_longest(columns, cells[: len(columns)], fillvalue=""))))
    return Table(name, columns, found, note)


def plain(text: str) -> str:
    """Return a cell's text in NFC, without spaces around it, and with ordinary ones in it."""
    return SPACE.sub(" ", nfc(text)).strip()


def _decoded(data: bytes, name: str) -> tuple[str, str]:
    """Return a file's text; also how it was read, where nothing in it says so."""
    if data.startswith(b"PK\x03\x04"):
        raise UserError(f"{name} is a spreadsheet, expected CSV: save it as CSV in UTF-8")
    nulls = data[:2_000].count(0) * 3 > len(data[:2_000])  # UTF-16 without its mark
    guess = ["utf-16-be" if data[:1] == b"\0" else "utf-16-le"] if nulls else ["utf-8", "cp1252"]
    for encoding in [one for mark, one in MARKS.items() if data.startswith(mark)] or guess:
        with suppress(UnicodeDecodeError):
            text = data.decode(encoding)
            if "\0" in text:
                break
            said = f"{name} is not in UTF-8: it was read as Windows-1252. Look at its accents"
            return text, said if encoding == "cp1252" else ""
    raise UserError(f"{name} is no text in UTF-8, UTF-16 or Windows-1252: save it as CSV in UTF-8")


def _as_said(data: bytes, name: str, encoding: str) -> str:
    try:
        return data.decode(encoding).removeprefix("\ufeff")
    except UnicodeError as error:
        raise UserError(f"{name} is not in {encoding}, as `encoding` says: {error}") from error


def _form(text: str, sets: list[set[str]]) -> tuple[str, int]:
    """Return what separates a table's cells, and how many rows stand above its headings."""
    told = SEPARATOR.match(text)
    forms: list[tuple[bool, int, str, int]] = []
    for separator in told[1] if told else SEPARATORS:
        top: list[list[str]] = []
        with suppress(UserError):  # told when all of it is read, if this is its separator
            top.extend(cells for _, cells in islice(_rows(text, separator, ""), MAX_ABOVE))
        has = [at for at, cells in enumerate(top) if any(one <= {*cells} for one in sets)]
        at = has[0] if has else 0
        forms.append((bool(has), len(top[at]) if top else 0, separator, at))
    _, _, separator, at = max(forms, key=lambda form: form[:2])
    return separator, at


def _rows(text: str, separator: str, name: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the line and the cells of each row that is not empty."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    line = 1
    try:
        for cells in reader:
            begins, line = line, reader.line_num + 1
            plainly = [plain(cell) for cell in cells]
            if any(plainly) and not (begins == 1 and SEPARATOR.match(text)):
                yield begins, plainly
    except csv.Error as error:
        raise UserError(
            f"{name}:{line}: expected a quotation mark only around a whole cell, and one twice "
            f"within it: {error}"
        ) from error
