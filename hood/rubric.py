"""Read the rubric of a question in words: boxes to tick, and their points."""

from __future__ import annotations

import re
from dataclasses import dataclass

WORDS = {"no": 0.0, "half a": 0.5, "one": 1.0, "two": 2.0, "three": 3.0, "four": 4.0, "five": 5.0}
NUMBER = rf"(?P<{{}}>{'|'.join(WORDS)}|\d+(?:\.\d+)?)"
# "One point each", "half a point for each"; and "Two points if all five are right, one if three
# are".
EACH = re.compile(rf"\b{NUMBER.format('points')} points?(?: for)? each\b", re.IGNORECASE)
IF = re.compile(
    rf"\b{NUMBER.format('points')}(?: points?)? (?:if|where) (?:all )?{NUMBER.format('right')}\b",
    re.IGNORECASE,
)
# At the end of an item, in brackets: "(2 points)", "(half a point)".
OWN = re.compile(rf"\({NUMBER.format('points')} points?\)\s*\Z", re.IGNORECASE)
ITEM = re.compile(r"(?:[-*+]|\d+[.)])[ \t]+")


@dataclass(frozen=True)
class Rubric:
    """A rubric: an introduction, and items, each of which is a box to tick.

    Attributes:
        intro: the text before the items, as Markdown.
        boxes: the text of each item, as Markdown.
        points: the points of each box; empty if the rubric has no points.
        steps: the points for 0, 1, 2, ... ticked boxes. A rubric has ``points`` or ``steps``, but
            not both.
    """

    intro: str = ""
    boxes: tuple[str, ...] = ()
    points: tuple[float, ...] = ()
    steps: tuple[float, ...] = ()

    @property
    def most(self) -> float | None:
        """The points of all boxes together; None if the rubric has no points."""
        return self.steps[-1] if self.steps else sum(self.points) if self.points else None


def read_rubric(source: str, begin: str, end: str) -> tuple[str, Rubric]:
    """Split a question's text: return the question alone, and the rubric, which may be empty.

    An item may end with its points in brackets. Otherwise the text before the items says how many
    points each item gives, or how many points several ticked items give together. The patterns
    above show the accepted forms.

    Args:
        begin: nbgrader's marker on the line where the rubric begins.
        end: nbgrader's marker on the line where the rubric ends.
    """
    question: list[str] = []
    scheme: list[str] = []
    inside = False
    for line in source.splitlines():
        if begin in line or end in line:
            inside = begin in line
        else:
            (scheme if inside else question).append(line)
    return "\n".join(question).strip(), _rubric(scheme)


def _rubric(lines: list[str]) -> Rubric:
    intro: list[str] = []
    items: list[list[str]] = []
    for line in lines:
        if found := ITEM.match(line):
            items.append([line[found.end() :]])
        elif items and (line.startswith((" ", "\t")) or not line.strip()):
            items[-1].append(line.strip())
        else:  # text between or after items belongs to no item
            intro.append(line)
    before = "\n".join(intro).strip()
    boxes = tuple("\n".join(item).strip() for item in items)
    own = [OWN.search(box) for box in boxes]
    if boxes and all(own):
        return Rubric(before, boxes, tuple(_number(found["points"]) for found in own if found))
    if each := EACH.search(before):
        return Rubric(before, boxes, (_number(each["points"]),) * len(boxes))
    steps = {_number(one["right"]): _number(one["points"]) for one in IF.finditer(before)}
    if steps and max(steps) == len(boxes):
        counts = range(len(boxes) + 1)
        reached = ([points for n, points in steps.items() if n <= count] for count in counts)
        return Rubric(before, boxes, steps=tuple(max(some, default=0.0) for some in reached))
    return Rubric(before, boxes)


def _number(word: str) -> float:
    return WORDS[word.lower()] if word.lower() in WORDS else float(word)
