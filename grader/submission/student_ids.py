"""Which names of folders are taken for learners' ids.

An exchange folder lets anybody choose the name, and an id is shown to others: in nbgrader's pages,
which write it into HTML and scripts as it is, in a terminal, and in tables for a spreadsheet.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from grader.submission.files import printable

LONGEST = 128
# Besides letters, their marks and digits of any script: what stands in names and addresses. None of
# these ends a text in nbgrader's pages, moves a cursor, or parts the columns of a table.
OTHERS = frozenset(" ._-@+()~'\u2019\u00b7\u200c\u200d")

# Letters of other scripts, each with the Latin one that it looks like.
LATIN = str.maketrans(
    "асԁеһіјӏорԛѕѵԝхуүАВЕНІЈКМОРЅТСХУѴԚԜԌЬαονριυχγΑΒΕΖΗΙΚΜΝΟΡΤΥΧıɑɡ",  # noqa: RUF001
    "acdehijlopqsvwxyyABEHIJKMOPSTCXYVQWGbaovpiuxyABEZHIKMNOPTYXiag",
)


def id_problem(name: str) -> str:
    """Return why a name cannot be a learner's id, in the middle of a sentence; empty if it can.

    The first character is a letter, a digit or ``_``: so it is no formula and no hidden folder.
    """
    if not 0 < len(name) <= LONGEST:
        return f"an id has 1 to {LONGEST} characters"
    odd = [c for c in name if not (c in OTHERS or unicodedata.category(c)[0] in "LMN")]
    if odd:
        return f"an id has no {odd[0]!a}"
    if not (name[0] == "_" or name[0].isalnum()):
        return f"an id does not begin with {name[0]!a}"
    return ""


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
