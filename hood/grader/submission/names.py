"""Check names of learners, labs, folders and files from outside, and make them safe to show.

Systems encode the same name in different ways: macOS writes `é` as two code points. So names are
compared in one form (NFC). In an exchange folder anybody can choose a learner's id, and nbgrader's
pages write the id into HTML and scripts unchanged. So some names of folders are refused as ids.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterable

from hood.untrusted import nfc

SHOWN = frozenset(" _.,:+/()-")  # in addition to letters, combining marks and digits
LONGEST_SHOWN = 100
LONGEST_ID = 128  # characters of a learner's id or a lab's name
# Characters of ids and addresses, in addition to letters, combining marks and digits of any script.
# These characters don't end a text in nbgrader's pages, move a cursor, or separate columns of a
# table.
IN_IDS = frozenset(" ._-@+()~'\u2019\u00b7\u200c\u200d")

# Letters of other scripts, each with the Latin letter that it looks like.
LATIN = str.maketrans(
    "асԁеһіјӏорԛѕѵԝхуүАВЕНІЈКМОРЅТСХУѴԚԜԌЬαονριυχγΑΒΕΖΗΙΚΜΝΟΡΤΥΧıɑɡ",  # noqa: RUF001
    "acdehijlopqsvwxyyABEHIJKMOPSTCXYVQWGbaovpiuxyABEZHIKMNOPTYXiag",
)


def spelled(names: Collection[str]) -> dict[str, str]:
    """Map NFC forms to names. Names whose NFC form is itself one of the names are left out."""
    return {nfc(name): name for name in names if nfc(name) not in names}


def printable(name: str) -> str:
    """Return a learner's file or folder name as text for a page or a terminal."""
    text = nfc(name.encode("utf-8", "replace").decode())[:LONGEST_SHOWN]
    return "".join(c if c in SHOWN or unicodedata.category(c)[0] in "LMN" else "?" for c in text)


def id_problem(name: str) -> str:
    """Return why a name cannot be a learner's id, as part of a sentence; empty for a valid id.

    The first character must be a letter, a digit or ``_``. So the id can't be a formula or the name
    of a hidden folder.
    """
    if not 0 < len(name) <= LONGEST_ID:
        return f"an id must have 1 to {LONGEST_ID} characters, got {len(name)}"
    odd = [c for c in name if not (c in IN_IDS or unicodedata.category(c)[0] in "LMN")]
    if odd:
        return f"an id can't have {odd[0]!a}"
    if not (name[0] == "_" or name[0].isalnum()):
        return f"an id can't begin with {name[0]!a}"
    return ""


def lab_problem(name: str) -> str:
    """Return a message if nbgrader can't use a lab's name; empty if nbgrader can use it.

    nbgrader's exchange separates names with a plus sign. nbgrader reads parentheses as an
    expression, and strips spaces. nbgrader's commands read a word with a leading dash as an option.
    """
    why = id_problem(name).replace("an id", "it")
    why = why or next((f"it has {c!a}" for c in "+()" if c in name), "")
    why = why or ("it ends with a space" if name.endswith(" ") else "")
    return why and (
        f"{name!a} can't be the name of a lab: {why}. Rename its folder in source/: letters, "
        "digits and . _ - are allowed, and the first character must be a letter, a digit or _"
    )


def shown_id(name: str) -> str:
    """Return an id unchanged; return any other folder's name as text for a page or a terminal."""
    return printable(name) if id_problem(name) else name


def look_alikes(ids: Iterable[str]) -> list[list[str]]:
    """Return groups of ids that a person can't tell apart on a page.

    Such ids differ, for example, in the number of spaces, in invisible characters, or in letters of
    several scripts.
    """
    found: dict[str, list[str]] = {}
    for one in ids:
        latin = unicodedata.normalize("NFKD", one.replace("\u2019", "'")).translate(LATIN)
        seen = "".join(c for c in latin if unicodedata.category(c) != "Cf")
        found.setdefault(" ".join(seen.split()), []).append(one)
    return [alike for alike in found.values() if len(alike) > 1]
