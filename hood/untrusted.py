"""Read values and texts that a learner's code may have written, as where there was no sandbox.

Each function here returns a value of one type and raises nothing: a value of another type counts as
missing, and a text or list that exceeds its bound is cut.
"""

from __future__ import annotations

import re
import unicodedata
from enum import StrEnum
from typing import Any, TypeVar

# The grader's own values are far smaller.
MAX_TEXT = 400  # characters of one text
MAX_ENTRIES = 200  # entries of one list
MAX_NUMBER = 1e9  # a number must be smaller, without its sign

E = TypeVar("E", bound=StrEnum)
# A link in a terminal, a colour, a movement of the cursor; the last of them may be cut off.
ESCAPES = r"\x1b\][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c|\Z)|(?:\x1b\[|\x9b)[0-9;?]*[ -/]*(?:[@-~]|\Z)"
# These, and what reorders the words beside it, or has no width.
UNSEEN = re.compile(
    ESCAPES + r"|[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f"
    r"\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e0fff]"
)


def nfc(name: str) -> str:
    """Return a name in the form in which names are compared, Unicode's NFC."""
    return unicodedata.normalize("NFC", name)


def seen(said: str) -> str:
    """Return a text without what is not seen, so that it stands in a sentence as it is read."""
    return UNSEEN.sub("", said)


def mapping(raw: Any) -> dict[str, Any]:
    """Return a JSON object, whole, to look up names in; empty for anything else."""
    return raw if isinstance(raw, dict) else {}


def sequence(raw: Any) -> list[Any]:
    """Return the first ``MAX_ENTRIES`` entries of a JSON array; empty for anything else."""
    return list(raw[:MAX_ENTRIES]) if isinstance(raw, (list, tuple)) else []


def text(raw: Any, most: int = MAX_TEXT) -> str:
    """Return what is seen of the first ``most`` characters; empty for anything but a text."""
    return seen(raw[:most]) if isinstance(raw, str) else ""


def texts(raw: dict[str, Any], *names: str) -> dict[str, str]:
    """Return the texts that have these names in a JSON object, each as :func:`text` reads it."""
    return {name: text(raw.get(name)) for name in names}


def number(raw: Any) -> float | None:
    """Return a finite number below ``MAX_NUMBER``; None otherwise, and for a bool."""
    if isinstance(raw, bool) or not isinstance(raw, (int, float)):
        return None
    return float(raw) if abs(raw) < MAX_NUMBER else None


def truth(raw: Any) -> bool | None:
    """Return ``true`` or ``false``; None for anything else."""
    return raw if isinstance(raw, bool) else None


def member(kind: type[E], raw: Any, default: E) -> E:
    """Return the member of an enumeration with this value; ``default`` if there is none."""
    return kind(raw) if isinstance(raw, str) and raw in list(kind) else default
