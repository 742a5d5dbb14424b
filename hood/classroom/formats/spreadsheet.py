"""Tables as CSV, which somebody opens in a spreadsheet."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from hood.atomic_files import replacing

FOR_EXCEL = "utf-8-sig"  # with a mark, without which Excel misreads accents
FORMULA = tuple("=+-@|%＝＋－＠")
SEPARATED = re.compile(r"(;[\s\"]*)(?=[=+\-@|%＝＋－＠])")


def write_table(path: Path, rows: Iterable[Iterable[Any]], encoding: str = FOR_EXCEL) -> None:
    """Write a table, its headings first; a file is replaced when the new one is complete.

    Raises OSError when it can't be written, with the file's name.
    """
    device = path.exists() and not path.is_file()  # such as /dev/stdout
    with (
        nullcontext(path) if device else replacing(path) as part,
        part.open("w", encoding=encoding, newline="") as file,
    ):
        csv.writer(file).writerows(map(safe, row) for row in rows)


def safe(value: Any) -> Any:
    """Return the value so that no spreadsheet takes it for a formula. Numbers stay numbers."""
    if not isinstance(value, str) or value in FORMULA:  # a sign alone computes nothing
        return value
    line = " ".join(value.split())
    return SEPARATED.sub(r"\1'", f"'{line}" if line.startswith(FORMULA) else line)
