"""The course as a path: what each phase needs, what is done, where one is."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from matplotlib.figure import Figure

from utils.notebook.figures import show
from utils.notebook.style import CARD, IDLE, INK, MUTED, RULE
from utils.views._canvas import INNER, MARGIN, SMALL, Canvas, Point, title_height
from utils.views._graph import Step, places
from utils.views._numbers import listed
from utils.views._text_outlines import wrap

GAP, BOX_H, ROW, LANE = 26, 72, 86, 12  # between columns, a box, from row to row, above the boxes

FAINT = "#a3acb8"  # lines that do not touch the lit phase


def course_path(
    phases: Iterable[Step], done: Collection[int] = (), *, here: int | None = None
) -> None:
    """Show the phases of a course and what each needs.

    Args:
        phases: objects with `number`, `title` and `needs` (numbers).
        done: numbers that are ticked.
        here: the number that is lit.

    Raises:
        ValueError: for needs that no phase has, or that form a circle.
    """
    figure, alt = draw(list(phases), done, here)
    show(figure, alt=alt)


def draw(
    steps: Sequence[Step], done: Collection[int] = (), here: int | None = None
) -> tuple[Figure, str]:
    """Return the figure for some phases, and its alternative text."""
    if not steps:
        raise ValueError("course_path needs at least one phase, got none")
    words = sentence(steps, done, here)
    drawing = _Drawing(steps, title_height(words) + 6)
    canvas = Canvas(drawing.bottom + 22)
    canvas.title(words)
    drawing.draw_ways(canvas, here)
    for step in steps:
        drawing.draw_box(canvas, step, step.number in done, step.number == here)
    return canvas.finish(), describe(steps, done, here)


def sentence(steps: Sequence[Step], done: Collection[int], here: int | None) -> str:
    """What the path says now, as the figure's title."""
    for step in steps:
        if step.number == here:
            return f"You are here: {step.number:02d}, {step.title}."
    ticked = sum(step.number in done for step in steps)
    if ticked == len(steps):
        return "The whole path is behind you."
    if ticked:
        return f"{ticked} of {len(steps)} phases are behind you."
    return "Each phase stands on the ones whose line leads to it."


def describe(steps: Sequence[Step], done: Collection[int], here: int | None) -> str:
    """Return the alternative text: each phase with what it needs."""
    parts = [f"The path of the course. {sentence(steps, done, here)}"]
    for step in steps:
        text = f"{step.number:02d} {step.title}"
        if step.needs:
            text += f" needs {listed([f'{number:02d}' for number in step.needs])}"
        if step.number in done:
            text += ", done"
        parts.append(f"{text}.")
    return " ".join(parts)


class _Drawing:
    """Boxes on the grid of `places`, and the lines between them in the gaps."""

    def __init__(self, steps: Sequence[Step], top: float) -> None:
        self.steps, self.places = steps, places(steps)
        columns = 1 + max(column for column, _ in self.places.values())
        self.width = min((INNER + GAP) / columns - GAP, 150)
        self.lanes = self._lanes()
        self.top = top + LANE * (1 + max(self.lanes.values(), default=-1)) + 8
        self.bottom = self.top + max(row for _, row in self.places.values()) * ROW + BOX_H

    def _lanes(self) -> dict[tuple[int, int], int]:
        """Return a lane above the boxes for each need along row 0 that skips a column."""
        lanes: dict[tuple[int, int], int] = {}
        for step in self.steps:
            column, row = self.places[step.number]
            for need in step.needs:
                start, level = self.places[need]
                if row == level == 0 and column - start > 1:
                    lanes[need, step.number] = len(lanes)
        return lanes

    def corner(self, number: int) -> Point:
        column, row = self.places[number]
        return MARGIN + column * (self.width + GAP), self.top + row * ROW

    def draw_ways(self, canvas: Canvas, here: int | None) -> None:
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
            canvas.wires(group, colour=colour, line=1.4)
            for way in group:
                (_, before), (x, y) = way[-2:]
                back = [(-6, -3.5), (-6, 3.5)] if before == y else [(-3.5, -6), (3.5, -6)]
                canvas.polygon([(x, y), *((x + dx, y + dy) for dx, dy in back)], colour)

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
        turn = x + self.width + 7 + 6 * turning.index(need)
        return [first, (turn, first[1]), (turn, last[1]), last]

    def draw_box(self, canvas: Canvas, step: Step, done: bool, lit: bool) -> None:
        x, y = self.corner(step.number)
        fill, ink, soft = (INK, CARD, RULE) if lit else (IDLE, INK, MUTED)
        canvas.boxes([(x, y, self.width, BOX_H)], [fill], edge="none", radius=8)
        mark = f"{step.number:02d}  ✓" if done else f"{step.number:02d}"
        lines = wrap(step.title, self.width - 18, size=SMALL)
        if len(lines) > 3:
            lines = [*lines[:2], f"{lines[2]} …"]
        canvas.text(x + 10, y + 13, mark, size=SMALL, mono=True, colour=soft)
        for row, line in enumerate(lines):
            canvas.text(x + 10, y + 28 + 14 * row, line, size=SMALL, colour=ink)
