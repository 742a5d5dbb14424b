"""Match the cells of a learner's copy of a notebook with the cells of the course's own notebook.

Editors rewrite the identity of a cell: some drop nbgrader's metadata, some give new ids. So a cell
is matched by nbgrader's ``grade_id``, then by its id, by its text, by the names that an answer
defines, and by a similar text. An answer in words is also matched by its position.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache

from nbformat.notebooknode import NotebookNode

# A name that a cell defines at the top level. A regular expression finds such names in invalid
# code, too.
DEFINES = re.compile(
    r"^(?:(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)|(\w+)[ \t]*(?::[^=\n]+)?=(?!=))", re.MULTILINE
)
# A link to a lesson as a lab's text has it, or a link to a page of a site. The pattern takes linear
# time, because it may read a learner's text.
LINK = re.compile(
    r"\[(?P<text>[^\[\]]*+)\]\("
    r"(?:(?P<there>\.\./\.\./notebooks/|\.\./lesson_)|https?://[^\s()\[\]]*?/lessons/)"
    r"(?P<page>\d\d_\w+\.(?:ipynb|html)(?P<section>#[^\s()\[\]]*+)?)\)"
)
WORD = re.compile(r"\w+")
ALIKE = 0.6  # similar texts have at least this share of their words in common
MOST_CHARACTERS = 10_000  # at most this many characters of a text are compared
MOST_CELLS = 300  # at most this many cells of a copy are compared by text


def settings(cell: NotebookNode) -> dict[str, object]:
    """Return a cell's nbgrader metadata; empty when there is none."""
    marks = cell.metadata.get("nbgrader")
    return marks if isinstance(marks, dict) else {}


def name_of(cell: NotebookNode) -> str:
    """Return a cell's name in nbgrader, or else its id."""
    return str(settings(cell).get("grade_id") or cell.get("id", ""))


def in_words(text: str) -> str:
    """Return a text with its links to lessons as words, to compare versions of a lab."""
    return LINK.sub(lambda link: f"“{link['text']}”" if link["section"] else link["text"], text)


def normal(text: str) -> str:
    """Return a text without trailing spaces, and with its links to lessons as words."""
    return "\n".join(line.rstrip() for line in in_words(text).strip().splitlines())


def written(cell: NotebookNode) -> str:
    """Return a cell's type and its text."""
    return f"{cell.cell_type}\n{cell.source.strip()}"


def text_of(cell: NotebookNode) -> str:
    """Return a cell's type and its normal text.

    Two cells with equal results count as the same cell.
    """
    return normal(written(cell))


def is_answer(cell: NotebookNode, before: NotebookNode | None) -> bool:
    """Return whether a course's cell is for a learner's answer: code, or words below a task."""
    task = before is not None and settings(before).get("task")
    return bool(settings(cell).get("solution") or (task and not settings(cell)))


def defined_names(code: str) -> set[str]:
    """Return the names that code defines at its top level."""
    return {function or variable for function, variable in DEFINES.findall(code)}


def match(
    mine: Sequence[NotebookNode],
    now: Mapping[str, NotebookNode],
    versions: Mapping[str, Sequence[str]],
) -> list[str]:
    """Return for each cell of a copy the name of the matching cell of the course, or "".

    Args:
        mine: the copy's cells.
        now: the course's cells in their order; the keys are names from :func:`name_of`.
        versions: for each cell's name, the texts that the cell has had so far (:func:`written`).
    """
    matched = [""] * len(mine)
    free = dict(now)

    def take(position: int, name: str) -> None:
        matched[position] = name
        del free[name]

    ids = {cell.id: name for name, cell in now.items()}
    texts: dict[str, list[str]] = {}
    for name, cell in now.items():
        for text in {text_of(cell), *map(normal, versions.get(name, ()))}:
            texts.setdefault(text, []).append(name)
    unmarked = [not settings(cell).get("grade_id") for cell in mine]
    ways: tuple[Callable[[NotebookNode], list[str]], ...] = (
        lambda cell: [str(settings(cell).get("grade_id"))],
        lambda cell: [ids.get(cell.get("id", ""), "")],
        lambda cell: texts.get(text_of(cell), []),
    )
    for way in ways:
        for position, cell in enumerate(mine):
            names = [name for name in way(cell) if name in free]
            if names and not matched[position] and (unmarked[position] or way is ways[0]):
                take(position, names[0])

    def left() -> list[int]:
        return [
            position
            for position in range(len(mine))
            if not matched[position] and unmarked[position]
        ]

    order = list(now)
    answers = [
        name
        for before, name in zip([None, *order], order, strict=False)
        if is_answer(now[name], now[before] if before else None)
    ]
    for name in [name for name in answers if name in free]:
        asked = _asked(now[name])
        fits = [p for p in left() if asked & _asked(mine[p])]
        if fits:
            take(fits[0], name)

    pairs = [
        (-share, order.index(name), position)
        for name in free
        if name not in answers
        for position in left()[:MOST_CELLS]
        if (share := _alike(mine[position], now[name], versions.get(name, ())))
    ]
    for _, at, position in sorted(pairs):
        if order[at] in free and not matched[position]:
            take(position, order[at])

    for name in [name for name in answers if name in free and not _asked(now[name])]:
        between = _between(matched, order, order.index(name))
        kind = now[name].cell_type
        fits = [p for p in left() if p in between and mine[p].cell_type == kind]
        fits = [p for p in fits if mine[p].source.strip()]
        if fits:
            take(fits[0], name)
    return matched


def _asked(cell: NotebookNode) -> set[str]:
    return defined_names(cell.source) if cell.cell_type == "code" else set()


def _between(matched: Sequence[str], order: Sequence[str], index: int) -> range:
    """Return the positions in a copy between two matches.

    The first match is the match of the course's previous cell. The second match is the next match
    in the copy.
    """
    if index == 0 or order[index - 1] not in matched:
        return range(0)
    start = matched.index(order[index - 1]) + 1
    after = [p for p in range(start, len(matched)) if matched[p]]
    return range(start, after[0] if after else len(matched))


def likeness(one: str, other: str) -> float:
    """Return the share of words that two texts have in common, from 0 to 1.

    The order of words does not count: comparing it would take quadratic time for a long text.
    """
    ours, theirs = _words(one), _words(other)
    return 2 * (ours & theirs).total() / max(ours.total() + theirs.total(), 1)


@lru_cache(maxsize=4 * MOST_CELLS)
def _words(text: str) -> Counter[str]:
    return Counter(WORD.findall(text[:MOST_CHARACTERS]))


def _alike(mine: NotebookNode, cell: NotebookNode, versions: Iterable[str]) -> float:
    """Return a cell's likeness to the most similar version of the course's cell.

    A likeness below ALIKE counts as 0.
    """
    if mine.cell_type != cell.cell_type:
        return 0.0
    share = max(likeness(written(mine), version) for version in (written(cell), *versions))
    return share if share >= ALIKE else 0.0


def most_alike(text: str, versions: Iterable[str]) -> str:
    """Return the version that is most similar to a text; "" without versions.

    If several versions are equally similar, return the last of these versions.
    """
    newest = reversed(list(versions))  # of equal values, max() takes the first
    return max(newest, key=lambda version: likeness(text, version), default="")


def added(text: str, before: str) -> str:
    """Return the lines that were added to a text; empty if there are none.

    The result has all lines from the first added line to the last, also the unchanged lines between
    them, so that no word is lost.
    """
    was, now = normal(before).splitlines(), normal(text).splitlines()
    lines = text.strip().splitlines()
    while was and now and was[0] == now[0]:
        del was[0], now[0], lines[0]
    while was and now and was[-1] == now[-1]:
        del was[-1], now[-1], lines[-1]
    return "\n".join(lines).strip("\n") if set(now) - {*was, ""} else ""
