"""Names from outside, of learners, labs, folders and files: which are ids, and how they are shown.

Systems encode the same name in different ways: macOS writes `é` as two code points. So names are
compared in one form (NFC). An exchange folder lets anybody choose a learner's id, and nbgrader's
pages write it into HTML and scripts as it is, so not every folder's name is taken for one.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterable

from hood.untrusted import nfc

SHOWN = frozenset(" _.,:+/()-")  # besides letters, their marks and digits
LONGEST_SHOWN = 100
LONGEST_ID = 128
# Besides letters, their marks and digits of any script: what stands in ids and addresses. None of
# these ends a text in nbgrader's pages, moves a cursor, or parts the columns of a table.
IN_IDS = frozenset(" ._-@+()~'\u2019\u00b7\u200c\u200d")

# Letters of other scripts, each with the Latin one that it looks like.
LATIN = str.maketrans(
    "асԁеһіјӏорԛѕѵԝхуүАВЕНІЈКМОРЅТСХУѴԚԜԌЬαονριυχγΑΒΕΖΗΙΚΜΝΟΡΤΥΧıɑɡ",  # noqa: RUF001
    "acdehijlopqsvwxyyABEHIJKMOPSTCXYVQWGbaovpiuxyABEZHIKMNOPTYXiag",
)


def spelled(names: Collection[str]) -> dict[str, str]:
    """Return those of the names that have another form, by their NFC."""
    return {nfc(name): name for name in names if nfc(name) not in names}


def printable(name: str) -> str:
    """Return a learner's name for a file or folder as text for a page or a terminal."""
    text = nfc(name.encode("utf-8", "replace").decode())[:LONGEST_SHOWN]
    return "".join(c if c in SHOWN or unicodedata.category(c)[0] in "LMN" else "?" for c in text)


def id_problem(name: str) -> str:
    """Return why a name cannot be a learner's id, in the middle of a sentence; empty if it can.

    The first character is a letter, a digit or ``_``: so it is no formula and no hidden folder.
    """
    if not 0 < len(name) <= LONGEST_ID:
        return f"an id has 1 to {LONGEST_ID} characters"
    odd = [c for c in name if not (c in IN_IDS or unicodedata.category(c)[0] in "LMN")]
    if odd:
        return f"an id has no {odd[0]!a}"
    if not (name[0] == "_" or name[0].isalnum()):
        return f"an id does not begin with {name[0]!a}"
    return ""


def lab_problem(name: str) -> str:
    """Return why nbgrader could not work with a lab of that name, as a sentence; empty if it can.

    A plus sign parts names in its exchange, and it reads the others as an expression. It cuts off
    spaces, and no command takes a word with a dash before it for a name.
    """
    why = id_problem(name).replace("an id", "it")
    why = why or next((f"it has {c!a}" for c in "+()" if c in name), "")
    why = why or ("it ends with a space" if name.endswith(" ") else "")
    return why and (
        f"{name!a} can't be the name of a lab: {why}. Rename its folder in source/: letters, "
        "digits and . _ - are fine, and a letter, a digit or _ comes first"
    )


def shown_id(name: str) -> str:
    """Return an id as it is; the name of another folder as text for a page or a terminal."""
    return printable(name) if id_problem(name) else name


def look_alikes(ids: Iterable[str]) -> list[list[str]]:
    """Return those of the ids that a person can't tell apart on a page, in groups.

    They differ in spaces at an end, in marks without width, or in letters of several scripts.
    """
    found: dict[str, list[str]] = {}
    for one in ids:
        latin = unicodedata.normalize("NFKD", one.replace("\u2019", "'")).translate(LATIN)
        seen = "".join(c for c in latin if unicodedata.category(c) != "Cf")
        found.setdefault(" ".join(seen.split()), []).append(one)
    return [alike for alike in found.values() if len(alike) > 1]
