"""Texts for a table that somebody opens in a spreadsheet."""

from __future__ import annotations

import re
from typing import Any

FORMULA = tuple("=+-@|%＝＋－＠")
SEPARATED = re.compile(r"(;[\s\"]*)(?=[=+\-@|%＝＋－＠])")


def safe(value: Any) -> Any:
    """Return the value so that no spreadsheet takes it for a formula. Numbers stay numbers."""
    if not isinstance(value, str):
        return value
    line = " ".join(value.split())
    return SEPARATED.sub(r"\1'", f"'{line}" if line.startswith(FORMULA) else line)
