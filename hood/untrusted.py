"""Read values and texts that a learner's code may have written, for example without a sandbox.

Each function here returns a value of one type and never raises. A value of another type counts as
missing. A text or list that is too long is cut.
"""

from __future__ import annotations

import re
import unicodedata
from enum import StrEnum
from typing import Any, TypeVar

# The values that the grader itself writes are far smaller.
MAX_TEXT = 400  # characters of one text
MAX_ENTRIES = 200  # entries of one list
MAX_NUMBER = 1e9  # the absolute value of a number must be smaller

E = TypeVar("E", bound=StrEnum)
# A terminal's escape sequences: links, colours, movements of the cursor. The last sequence may be
# cut.
ESCAPES = r"\x1b\][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c|\Z)|(?:\x1b\[|\x9b)[0-9;?]*[ -/]*(?:[@-~]|\Z)"
# Escape sequences, control characters, and characters that reorder text or have no width.
UNSEEN = re.compile(
    ESCAPES + r"|[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f"
    r"\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e0fff]"
)


def nfc(name: str) -> str:
    """Return a name in Unicode's NFC, the form in which names are compared."""
    return unicodedata.normalize("NFC", name)


def seen(said: str) -> str:
    """Return a text without invisible characters and escape sequences."""
    return UNSEEN.sub("", said)


def mapping(raw: Any) -> dict[str, Any]:
    """Return a JSON object without shortening it; an empty object for anything else."""
    return raw if isinstance(raw, dict) else {}


def sequence(raw: Any) -> list[Any]:
    """Return the first ``MAX_ENTRIES`` entries of a JSON array; an empty list for anything else."""
    return list(raw[:MAX_ENTRIES]) if isinstance(raw, (list, tuple)) else []


def text(raw: Any, most: int = MAX_TEXT) -> str:
    """Return the visible part of a text's first ``most`` characters; "" for any other value."""
    return seen(raw[:most]) if isinstance(raw, str) else ""


def texts(raw: dict[str, Any], *names: str) -> dict[str, str]:
    """Return a JSON object's values for these names, each read by :func:`text`."""
    return {name: text(raw.get(name)) for name in names}


def number(raw: Any) -> float | None:
    """Return a finite number below ``MAX_NUMBER``; None for anything else, even a bool."""
    if isinstance(raw, bool) or not isinstance(raw, (int, float)):
        return None
    return float(raw) if abs(raw) < MAX_NUMBER else None


def truth(raw: Any) -> bool | None:
    """Return ``true`` or ``false``; None for anything else."""
    return raw if isinstance(raw, bool) else None


def member(kind: type[E], raw: Any, default: E) -> E:
    """Return the enumeration's member with this value; ``default`` if no member has it."""
    return kind(raw) if isinstance(raw, str) and raw in list(kind) else default
