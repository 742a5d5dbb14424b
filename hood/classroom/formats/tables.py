"""Read a table from outside: exported by an LMS, or saved by a spreadsheet program."""

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

# bytes of a CSV file; this is enough for 80,000 learners with lines of 200 characters
MAX_BYTES = 16 << 20
MAX_COLUMNS = 1_000  # columns of a CSV file
SEPARATORS = ",;\t"
SEPARATOR = re.compile(r"\ufeff?sep=([,;\t])\r?\n", re.IGNORECASE)  # Excel's own first line
MAX_ABOVE = 10  # rows above the headings, such as a title
SPACE = re.compile(r"[\s\u200b\u2060\ufeff]+")
MARKS = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16", b"\xef\xbb\xbf": "utf-8-sig"}


class Row(NamedTuple):
    """A row's text in each column, and the line in the file where the row begins."""

    line: int
    cells: dict[str, str]


@dataclass(frozen=True)
class Table:
    """A table's columns, and its rows except empty rows and repeated headings.

    Text is in NFC, without spaces around it, and with ordinary spaces in place of other kinds of
    spaces.
    """

    name: str
    columns: list[str]
    rows: list[Row]
    note: str = ""  # says which encoding was guessed; else empty

    def where(self, line: int, column: str) -> str:
        """Return where a cell is in the file (line and column), for an error message."""
        return f"{self.name}:{line}, column {column!r}"


def read_table(path: Path, wanted: Sequence[Collection[str]] = (), encoding: str = "") -> Table:
    """Return the table in a file, as :func:`table_of` reads it.

    Raises UserError when the file can't be read.
    """
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
        name: the file's name, for errors.
        wanted: sets of column names. The first row that contains all names of one set is the row of
            headings. If there is no such row, the headings are the first row of the file.
        encoding: the file's encoding; by default it is detected.

    Raises:
        UserError: when the file is too large or is not text. Also when a quotation mark is not
            closed, when a row has more cells than the table has columns, or when two columns have
            the same name from ``wanted``.
    """
    if len(data) > MAX_BYTES:
        raise UserError(
            f"{name} is larger than {MAX_BYTES >> 20} MB: expected the table of one class"
        )
    text, note = (_as_said(data, name, encoding), "") if encoding else _decoded(data, name)
    sets = [{plain(column) for column in columns} for columns in wanted]
    separator, above = _form(text, sets)
    rows = _rows(text, separator, name)
    columns = next(islice(rows, above, None), (0, []))[1]
    if len(columns) > MAX_COLUMNS:
        raise UserError(f"{name} has {len(columns)} columns, expected at most {MAX_COLUMNS}")
    for one in {one for columns_of_set in sets for one in columns_of_set}:
        if columns.count(one) > 1:
            raise UserError(f"{name} has two columns {one!r}: expected one column of that name")
    found = []
    for line, cells in rows:
        if any(cells[len(columns) :]):
            raise UserError(
                f"{name}:{line}: expected {len(columns)} cells, one for each heading, got "
                f"{len(cells)}: a cell with {separator!r} in it needs quotation marks"
            )
        if cells != columns:
            found.append(Row(line, dict(zip_longest(columns, cells[: len(columns)], fillvalue=""))))
    return Table(name, columns, found, note)


def plain(text: str) -> str:
    """Normalize a cell's text: to NFC, without spaces around it, and with only ordinary spaces."""
    return SPACE.sub(" ", nfc(text)).strip()


def _decoded(data: bytes, name: str) -> tuple[str, str]:
    """Return a file's text, and a note if its encoding was guessed."""
    if data.startswith(b"PK\x03\x04"):
        raise UserError(f"{name} is a spreadsheet, expected CSV: save it as CSV in UTF-8")
    nulls = data[:2_000].count(0) * 3 > len(data[:2_000])  # UTF-16 without a byte order mark
    guess = ["utf-16-be" if data[:1] == b"\0" else "utf-16-le"] if nulls else ["utf-8", "cp1252"]
    for encoding in [one for mark, one in MARKS.items() if data.startswith(mark)] or guess:
        with suppress(UnicodeDecodeError):
            text = data.decode(encoding)
            if "\0" in text:
                break
            said = f"{name} is not in UTF-8, so it was read as Windows-1252. Check the accents"
            return text, said if encoding == "cp1252" else ""
    raise UserError(f"{name} is not text in UTF-8, UTF-16 or Windows-1252: save it as CSV in UTF-8")


def _as_said(data: bytes, name: str, encoding: str) -> str:
    try:
        return data.decode(encoding).removeprefix("\ufeff")
    except UnicodeError as error:
        raise UserError(
            f"{name} is not in {encoding}, although `encoding` says so: {error}"
        ) from error


def _form(text: str, sets: list[set[str]]) -> tuple[str, int]:
    """Return the separator of a table's cells, and the number of rows above its headings."""
    told = SEPARATOR.match(text)
    forms: list[tuple[bool, int, str, int]] = []
    for separator in told[1] if told else SEPARATORS:
        top: list[list[str]] = []
        with suppress(UserError):  # an error counts only if this separator is chosen
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
            f"{name}:{line}: expected quotation marks only around a whole cell (double each "
            f"quotation mark within the cell): {error}"
        ) from error
