"""The schema of a file of answers: its tables, their keys, and the types of values.

Unknown keys are errors. Otherwise nobody would notice ``earn = 1`` in place of ``earns = 1``, and
the misconception would be expected to earn 0. :mod:`hood.judge.checks.answers` says what the keys
mean.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

Place = tuple[str | int, ...]  # such as ("wrong", "squared", "earns"), or ("same", 0)
# a function that tests a value, and the expected values in words
Kind = tuple[Callable[[Any], bool], str]


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value.strip() != ""


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0


def _are_edits(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(pair, list) and len(pair) == 2 and all(isinstance(one, str) for one in pair)
        for pair in value
    )


TEXT: Kind = _is_text, "a text"
TEXTS: Kind = _are_texts, "a list of texts"
QUOTED: Kind = (lambda value: _is_text(value) or _are_texts(value)), "a text, or a list of texts"
EDITS: Kind = _are_edits, "a list of pairs, [['old text', 'new text']]"
POINTS: Kind = (
    lambda value: (
        _is_number(value) or (isinstance(value, dict) and all(map(_is_number, value.values())))
    ),
    'points, such as 1, or points by part, such as {"any tensor" = 1}',
)
CODE: Mapping[str, Kind] = {
    # the changes of the lab's solution; each old text must occur in the solution exactly once
    "edits": EDITS,
    "code": TEXT,  # the whole answer, in place of `edits`
    # the answer that `edits` change: the name of a right answer, or "reference"
    "of": TEXT,
}
# The keys of an entry of each table. `told` is a separate list.
NAMED: Mapping[str, Mapping[str, Kind]] = {
    # a misconception: a wrong answer and its name
    "wrong": {
        "says": TEXT,  # the sentence for the learner, which says what the code does
        "earns": POINTS,  # the exact points that the wrong answer must earn; the default is 0
        # the heading of the section to read after this mistake; the default is the part's heading
        "reads": TEXT,
        # the rule that this answer breaks, in words of the question or of the lab's first cell
        "breaks": QUOTED,
        **CODE,
    },
    # an alternate: another right answer and its name
    "right": {
        # words of the question, or of the lab's first cell, that allow this answer
        "uses": QUOTED,
        **CODE,
    },
}
LISTED: Mapping[str, Mapping[str, Kind]] = {
    # changes of right code that make no difference, for `python -m hood mutants`
    "same": {
        "because": TEXT,  # why the changes make no difference
        "edits": EDITS,  # the changes
        "of": TEXT,  # the right answer to which this entry is limited; by default, all
    },
    # parts of a solution that a learner may choose, such as a learning rate
    "free": {
        "because": TEXT,  # why other values are right, too
        "texts": TEXTS,  # the texts in the solution that a learner may replace by other texts
        "of": TEXT,  # the right answer to which this entry is limited; by default, all
    },
}
# sentences of the question that require nothing; a list at the top of the file
TOLD = "told"


def form_faults(entries: Mapping[str, Any]) -> Iterator[tuple[Place, str]]:
    """Yield the errors in a parsed file of answers: the place and the message of each error."""
    for table, content in entries.items():
        if table == TOLD:
            yield from _kind_fault((TOLD,), content, TEXTS)
        elif table in NAMED:
            if not isinstance(content, dict):
                yield (table,), f'expected tables [{table}."NAME"], got {content!r}'
                continue
            for name, entry in content.items():
                yield from _entry_faults((table, name), entry, NAMED[table])
        elif table in LISTED:
            if not isinstance(content, list):
                yield (table,), f"expected tables [[{table}]], got {content!r}"
                continue
            for index, entry in enumerate(content):
                yield from _entry_faults((table, index), entry, LISTED[table])
                yield from _missing((table, index), entry, LISTED[table].keys() - {"of"})
        else:
            known = ", ".join([TOLD, *NAMED, *LISTED])
            yield (table,), f"unknown table {table!r}: expected one of {known}"


def _entry_faults(
    place: Place, entry: Any, kinds: Mapping[str, Kind]
) -> Iterator[tuple[Place, str]]:
    if not isinstance(entry, dict):
        yield place, f"expected a table with {', '.join(kinds)}, got {entry!r}"
        return
    for key, value in entry.items():
        if key not in kinds:
            yield (*place, key), f"unknown key {key!r}: expected one of {', '.join(kinds)}"
        else:
            yield from _kind_fault((*place, key), value, kinds[key])
    if place[0] in NAMED and ("code" in entry) == ("edits" in entry):
        got = "both" if "code" in entry else "neither"
        yield place, f"expected either code or edits, got {got}"


def _missing(place: Place, entry: Any, needed: set[str]) -> Iterator[tuple[Place, str]]:
    for key in sorted(needed - entry.keys() if isinstance(entry, dict) else ()):
        yield place, f"missing key {key!r}"


def _kind_fault(place: Place, value: Any, kind: Kind) -> Iterator[tuple[Place, str]]:
    fits, expected = kind
    if not fits(value):
        yield place, f"{place[-1]}: expected {expected}, got {value!r}"


def line_of(content: str, place: Place) -> int:
    """Return the number of the line where an entry of a TOML file, or one of its keys, begins.

    Return 1 if the file has no such entry. Python's TOML parser gives no line numbers. So each
    possible beginning of the file is parsed, and the first one with the entry gives the line.
    """
    lines = content.split("\n")
    # A key ends at the end of its value, which may be some lines below.
    for stop in range(1, len(lines) + 1):
        if not _may_begin(lines[stop - 1], place):
            continue
        for end in range(stop, len(lines) + 1):
            try:
                read = tomllib.loads("\n".join(lines[:end]))
            except tomllib.TOMLDecodeError:
                continue  # this line is inside a value of several lines
            if _holds(read, place):
                return stop
            break
    return 1


def _may_begin(line: str, place: Place) -> bool:
    last = place[-1]
    if isinstance(last, int):
        return line.lstrip().startswith("[[")
    opens_table = len(place) <= 2 and line.lstrip().startswith("[")
    return opens_table or line.lstrip().strip("\"'").startswith(str(last))


def _holds(read: Any, place: Place) -> bool:
    for key in place:
        if isinstance(key, int):
            if not isinstance(read, list) or key >= len(read):
                return False
        elif not isinstance(read, dict) or key not in read:
            return False
        read = read[key]
    return True
