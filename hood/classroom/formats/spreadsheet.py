"""Write tables as CSV that is safe to open in a spreadsheet program."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from hood.atomic_files import replacing

FOR_EXCEL = "utf-8-sig"  # with a byte order mark: without it Excel misreads accents
FORMULA = tuple("=+-@|%＝＋－＠")
SEPARATED = re.compile(r"(;[\s\"]*)(?=[=+\-@|%＝＋－＠])")


def write_table(path: Path, rows: Iterable[Iterable[Any]], encoding: str = FOR_EXCEL) -> None:
    """Write a table to a file. The first of ``rows`` has the headings.

    An existing file stays until the new file is complete, and is then replaced.
    """
    device = path.exists() and not path.is_file()  # such as /dev/stdout
    with (
        nullcontext(path) if device else replacing(path) as part,
        part.open("w", encoding=encoding, newline="") as file,
    ):
        csv.writer(file).writerows(map(safe, row) for row in rows)


def safe(value: Any) -> Any:
    """Change a value so that no spreadsheet program reads it as a formula. Numbers stay numbers."""
    if not isinstance(value, str) or value in FORMULA:  # a sign alone is no formula
        return value
    line = " ".join(value.split())
    return SEPARATED.sub(r"\1'", f"'{line}" if line.startswith(FORMULA) else line)
