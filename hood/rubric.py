"""Read the rubric of a question in words: boxes to tick, and the points that they give."""

from __future__ import annotations

import re
from dataclasses import dataclass

WORDS = {"no": 0.0, "half a": 0.5, "one": 1.0, "two": 2.0, "three": 3.0, "four": 4.0, "five": 5.0}
NUMBER = rf"(?P<{{}}>{'|'.join(WORDS)}|\d+(?:\.\d+)?)"
# "One point each", "half a point for each"; and "Two points where all five are right, one where
# three are".
EACH = re.compile(rf"\b{NUMBER.format('points')} points?(?: for)? each\b", re.IGNORECASE)
WHERE = re.compile(
    rf"\b{NUMBER.format('points')}(?: points?)? where (?:all )?{NUMBER.format('right')}\b",
    re.IGNORECASE,
)
# At the end of an item, in brackets: "(2 points)", "(half a point)".
OWN = re.compile(rf"\({NUMBER.format('points')} points?\)\s*\Z", re.IGNORECASE)
ITEM = re.compile(r"(?:[-*+]|\d+[.)])[ \t]+")


@dataclass(frozen=True)
class Rubric:
    """A rubric: what stands before its items, and the items, each of them a box.

    Attributes:
        intro: the text before the items, as Markdown.
        boxes: the text of each item, as Markdown.
        points: what each box gives; empty where the rubric does not say.
        steps: in place of ``points``, the points of so many boxes, from none to all of them.
    """

    intro: str = ""
    boxes: tuple[str, ...] = ()
    points: tuple[float, ...] = ()
    steps: tuple[float, ...] = ()

    @property
    def most(self) -> float | None:
        """What all boxes give; None where the rubric does not say."""
        return self.steps[-1] if self.steps else sum(self.points) if self.points else None


def read_rubric(source: str, begin: str, end: str) -> tuple[str, Rubric]:
    """Return a question's text without its rubric, and the rubric; an empty one if it has none.

    An item's points stand in brackets at its end, or the text before the items says what each of
    them gives, or what several give together. The forms of this are in the patterns above.

    Args:
        begin: nbgrader's mark on the line where the rubric begins.
        end: the same for the line where it ends.
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
        else:  # text between or after items belongs to none of them
            intro.append(line)
    before = "\n".join(intro).strip()
    boxes = tuple("\n".join(item).strip() for item in items)
    own = [OWN.search(box) for box in boxes]
    if boxes and all(own):
        return Rubric(before, boxes, tuple(_number(found["points"]) for found in own if found))
    if each := EACH.search(before):
        return Rubric(before, boxes, (_number(each["points"]),) * len(boxes))
    where = {_number(one["right"]): _number(one["points"]) for one in WHERE.finditer(before)}
    if where and max(where) == len(boxes):
        reached = ([p for n, p in where.items() if n <= count] for count in range(len(boxes) + 1))
        return Rubric(before, boxes, steps=tuple(max(some, default=0.0) for some in reached))
    return Rubric(before, boxes)


def _number(word: str) -> float:
    return WORDS[word.lower()] if word.lower() in WORDS else float(word)
