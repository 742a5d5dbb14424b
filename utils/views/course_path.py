"""The course as a path: the phases that each phase needs, the finished phases, and the current
phase.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from hood.course import Phase
from hood.learner.contents import lesson_of, link_from_start
from utils.notebook.figures import Link
from utils.notebook.style import CARD, IDLE, INK, MUTED, RULE, WIDTH
from utils.views._canvas import INNER, MARGIN, SMALL, Canvas, Drawing, Point
from utils.views._numbers import listed
from utils.views._text_outlines import text_width, wrap
from utils.views._view import present

GAP, BOX_H, ROW, LANE = 14, 72, 86, 12  # between columns, a box, from row to row, above the boxes
PAD = 4  # between a box's edge and its words

FAINT = "#a3acb8"  # lines that do not touch the lit phase


def course_path(
    phases: Sequence[Phase], done: Collection[int] = (), *, here: int | None = None
) -> None:
    """Show the phases of a course, and the phases that each phase needs. A box links to the lesson.

    phases: at least one phase. A phase may only need earlier phases.
    done: the numbers of the ticked phases.
    here: the number of the lit phase.
    """
    present(lambda: draw(phases, done, here), links=links_of(phases, done, here))


def links_of(phases: Sequence[Phase], done: Collection[int], here: int | None) -> list[Link]:
    """Return a link over each box whose lesson is in this copy of the course."""
    canvas = Canvas(sentence(phases, done, here))
    drawing = _Drawing(canvas, phases)
    links = []
    for step in phases:
        if lesson := lesson_of(step):
            x, y = drawing.corner(step.number)
            wide, high = WIDTH, drawing.height
            box = x / wide, y / high, drawing.width / wide, BOX_H / high
            words = f"lesson {step.number:02d}, {step.title}"
            links.append(Link(box, link_from_start(lesson), words))
    return links


def places(steps: Sequence[Phase]) -> dict[int, tuple[int, int]]:
    """Return the (column, row) of each step by its number.

    A step is to the right of all steps that it needs. The longest path is in row 0. A branch takes
    the nearest free row below.
    """
    needs = {step.number: step.needs for step in steps}
    columns: dict[int, int] = {}
    for number, wanted in needs.items():
        columns[number] = max((columns[other] + 1 for other in wanted), default=0)
    rows: dict[int, int] = {}
    way: int | None = max(columns, key=columns.__getitem__)
    while way is not None:  # follow the longest path back from the step in the last column
        rows[way] = 0
        way = max(needs[way], key=columns.__getitem__, default=None)
    for number in sorted(needs.keys() - rows.keys(), key=lambda n: (columns[n], n)):
        taken = {rows[other] for other in rows if columns[other] == columns[number]}
        row = max([1, *(rows[other] for other in needs[number])])
        while row in taken:
            row += 1
        rows[number] = row
    return {number: (columns[number], rows[number]) for number in needs}


def draw(steps: Sequence[Phase], done: Collection[int] = (), here: int | None = None) -> Drawing:
    canvas = Canvas(sentence(steps, done, here))
    drawing = _Drawing(canvas, steps)
    drawing.draw_ways(here)
    parts = [f"The path of the course. {canvas.title}"]
    for step in steps:
        ticked = step.number in done
        drawing.draw_box(step, ticked, step.number == here)
        needs = listed([f"{number:02d}" for number in step.needs])
        text = f"{step.number:02d} {step.title}{f' needs {needs}' if needs else ''}"
        parts.append(f"{text}{', done' if ticked else ''}.")
    return canvas.finish(drawing.height, " ".join(parts))


def sentence(steps: Sequence[Phase], done: Collection[int], here: int | None) -> str:
    for step in steps:
        if step.number == here:
            return f"You are here: {step.number:02d}, {step.title}."
    ticked = sum(step.number in done for step in steps)
    if ticked == len(steps):
        return "The whole path is behind you."
    if ticked:
        return f"{ticked} of {len(steps)} phases are behind you."
    return "Each phase builds on the phases from which a line leads to it."


class _Drawing:
    """Boxes on the grid of `places`, and the lines between them in the gaps."""

    def __init__(self, canvas: Canvas, steps: Sequence[Phase]) -> None:
        self.canvas, self.steps, self.places = canvas, steps, places(steps)
        columns = 1 + max(column for column, _ in self.places.values())
        self.width = min((INNER + GAP) / columns - GAP, 150)
        self.room = self.width - 2 * PAD
        # In narrow boxes the letters are smaller, so that the longest word of a title fits.
        words = [word for step in steps for word in step.title.split()]
        longest = max(text_width(word, size=SMALL) for word in words)
        self.size = SMALL * min(1, self.room / longest)
        # Return a lane above the boxes for each line along row 0 that skips a column.
        self.lanes: dict[tuple[int, int], int] = {}
        for step in steps:
            column, row = self.places[step.number]
            for need in step.needs:
                start, level = self.places[need]
                if row == level == 0 and column - start > 1:
                    self.lanes[need, step.number] = len(self.lanes)
        self.top = canvas.top + 14 + LANE * len(self.lanes)
        self.bottom = self.top + max(row for _, row in self.places.values()) * ROW + BOX_H
        self.height = self.bottom + 22

    def corner(self, number: int) -> Point:
        column, row = self.places[number]
        return MARGIN + column * (self.width + GAP), self.top + row * ROW

    def draw_ways(self, here: int | None) -> None:
        turns: dict[int, list[int]] = {}  # for each gap, the phases whose lines turn in it
        ways: dict[tuple[bool, int], list[list[Point]]] = {}
        for step in self.steps:
            for need in step.needs:
                column, row = self.places[need]
                sources = turns.setdefault(column, [])
                if row != self.places[step.number][1] and need not in sources:
                    sources.append(need)
                way = self._way(need, step.number, sources)
                ways.setdefault((here in (need, step.number), need), []).append(way)
        for (lit, _), group in sorted(ways.items()):
            colour = INK if lit else FAINT
            self.canvas.wires(group, colour, 1.4)
            for way in group:
                (_, before), (x, y) = way[-2:]
                back = [(-6, -3.5), (-6, 3.5)] if before == y else [(-3.5, -6), (3.5, -6)]
                self.canvas.polygon([(x, y), *((x + dx, y + dy) for dx, dy in back)], colour)

    def _way(self, need: int, number: int, turning: Sequence[int]) -> list[Point]:
        x, y = self.corner(need)
        end_x, end_y = self.corner(number)
        if (need, number) in self.lanes:
            lane = self.top - 12 - LANE * self.lanes[need, number]
            start, stop = x + self.width * 0.72, end_x + self.width * 0.28
            return [(start, y), (start, lane), (stop, lane), (stop, end_y - 1)]
        first, last = (x + self.width, y + BOX_H / 2), (end_x - 1, end_y + BOX_H / 2)
        if y == end_y:
            return [first, last]
        turn = x + self.width + 4 + 5 * turning.index(need)
        return [first, (turn, first[1]), (turn, last[1]), last]

    def draw_box(self, step: Phase, done: bool, lit: bool) -> None:
        x, y = self.corner(step.number)
        fill, ink, soft = (INK, CARD, RULE) if lit else (IDLE, INK, MUTED)
        self.canvas.box((x, y, self.width, BOX_H), fill, radius=8)
        lines = wrap(step.title, self.room, size=self.size)
        if len(lines) > 3:
            lines = [*lines[:2], f"{lines[2]} …"]
        mark = f"{step.number:02d}{'  ✓' if done else ''}"
        self.canvas.text(x + PAD, y + 13, mark, soft, size=SMALL, mono=True)
        for row, line in enumerate(lines):
            self.canvas.text(x + PAD, y + 28 + 14 * row, line, ink, size=self.size)
