"""Names that came from outside: of learners, labs, folders and files.

Systems encode the same name in different ways: macOS writes `é` as two code points. So names are
compared in one form (NFC), and shown so that a page or a terminal can show them.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection

SHOWN = frozenset(" _.,:+/()-")  # besides letters, their marks and digits
LONGEST_SHOWN = 100


def nfc(name: str) -> str:
    """Return a name in the form in which names are compared, Unicode's NFC."""
    return unicodedata.normalize("NFC", name)


def spelled(names: Collection[str]) -> dict[str, str]:
    """Return those of the names that have another form, by their NFC."""
    return {nfc(name): name for name in names if nfc(name) not in names}


def printable(name: str) -> str:
    """Return a learner's name for a file or folder as text for a page or a terminal."""
    text = nfc(name.encode("utf-8", "replace").decode())[:LONGEST_SHOWN]
    return "".join(c if c in SHOWN or unicodedata.category(c)[0] in "LMN" else "?" for c in text)
