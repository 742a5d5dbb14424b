"""Match submitted files to the lab's notebooks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import IntEnum
from pathlib import PurePath
from typing import NamedTuple

from hood.grader.submission.names import nfc

# Names of `lab.ipynb` after browsers, mail programs or systems have saved it.
SAVED = re.compile(r"(.+?)(\.ipynb)?\.(ipynb|txt|json|html?)", re.IGNORECASE)


class Fit(IntEnum):
    """How well a file's name fits a notebook's name; the best fit comes first."""

    EXACT = 0
    CASE = 1  # equal except for upper and lower case: P1.ipynb
    ENDING = 2  # p1.ipynb.txt
    WORD = 3  # p1 (1).ipynb, jane_p1.ipynb
    STEM = 4  # p1.html, p1.json


class Match(NamedTuple):
    """The chosen file's name (or empty), and the names of other possible versions."""

    taken: str
    others: list[str]


def is_notebook(name: str) -> bool:
    """Return whether a file's name is a notebook's name, perhaps with one more ending."""
    found = SAVED.fullmatch(name)
    return found is not None and name[0] != "." and ".ipynb" in name[found.end(1) :].lower()


def match(expected: Sequence[str], names: Sequence[str]) -> dict[str, Match]:
    """Return the matching file name for each notebook of a lab.

    Names are compared in NFC. A file is a candidate for the notebook whose name it fits best. For
    each notebook the best candidate is chosen, if there is only one best candidate. If then exactly
    one notebook has no candidate, and exactly one notebook file is unmatched, that file is chosen
    for that notebook.
    """
    candidates: dict[str, list[tuple[Fit, str]]] = {name: [] for name in expected}
    unmatched = []
    for name in names:
        fits = [(fit, -len(one), one) for one in expected if (fit := _fit(name, one)) is not None]
        if fits:
            fit, _, best = min(fits)
            candidates[best].append((fit, name))
        elif is_notebook(name):
            unmatched.append(name)
    found = {one: _best(one, fitting) for one, fitting in candidates.items()}
    for one, (taken, others) in found.items():
        if is_notebook(taken):
            copies = [name for name in unmatched if _stem(name).startswith(_stem(one))]
            others += copies
            unmatched = sorted({*unmatched} - {*copies})
    missing = [one for one, hit in found.items() if not any(map(is_notebook, [hit[0], *hit[1]]))]
    if len(missing) == 1 and len(unmatched) == 1:
        found[missing[0]] = Match(unmatched[0], [])
    return found


def _best(expected: str, fitting: list[tuple[Fit, str]]) -> Match:
    """Return the chosen candidate for a notebook, and the other candidates that are notebooks."""
    if not fitting:
        return Match("", [])
    best = min(fit for fit, _ in fitting)
    first = [name for fit, name in fitting if fit == best]
    # A folder can contain the same name in two Unicode forms.
    taken = expected if expected in first else first[0] if len(first) == 1 else ""
    return Match(taken, [name for _, name in fitting if name != taken and is_notebook(name)])


def _fit(name: str, expected: str) -> Fit | None:
    if nfc(name) == nfc(expected):
        return Fit.EXACT
    saved = SAVED.fullmatch(name)
    if saved is None or name[0] == ".":
        return None
    stem, wanted = _stem(name), _stem(expected)
    if stem == wanted:
        if not is_notebook(name):
            return Fit.STEM
        return Fit.ENDING if saved[2] else Fit.CASE
    if is_notebook(name) and re.search(rf"(?<![^\W_]){re.escape(wanted)}(?![^\W_])", stem):
        return Fit.WORD
    return None


def _stem(name: str) -> str:
    found = SAVED.fullmatch(name)
    return nfc(found[1] if found else PurePath(name).stem).casefold()
