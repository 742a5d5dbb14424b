"""The learner's trace as a flame chart: the calls, their total times, and their self times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from utils.instruments.traces import Event
from utils.notebook.style import CARD, IDLE, INK, MUTED, RULE
from utils.views._canvas import INNER, MARGIN, RIGHT, Box, Canvas, Drawing
from utils.views._controls import choice, slider, switch
from utils.views._numbers import count
from utils.views._text_outlines import cut
from utils.views._trace import LOOKS, Node, lanes_of, ms, short_name, tree
from utils.views._view import present

ROWS, BAR, STRIP = 7, 30, 8
LISTED, LINE = 5, 25
ZOOMS = (1, 2, 4, 8, 16, 32, 64, 128)
NARROW = 1.0  # CSS pixels; a narrower bar is joined with its neighbours


@dataclass(frozen=True)
class Window:
    """The part of a trace that is drawn, in nanoseconds."""

    start: float
    end: float

    def clip(self, start: float, end: float) -> float:
        """Return the nanoseconds of an interval that are in the window."""
        return max(0.0, min(end, self.end) - max(start, self.start))

    def x(self, at: float) -> float:
        """Return the CSS pixel of a time, never outside the sheet's inner width."""
        share = (at - self.start) / (self.end - self.start)
        return MARGIN + INNER * min(max(share, 0.0), 1.0)


@dataclass
class Row:
    """The nanoseconds of a name in a window, and the number of its calls that run there."""

    name: str
    phase: str
    calls: int = 0
    total: float = 0.0
    own: float = 0.0


def flame_chart(events: Sequence[Event]) -> None:
    """Show the events of a trace, each above the events that it calls.

    In a live view, controls set the zoom and the start, and switch to self time.

    events: names, starts, durations and lanes (`instruments.traces.Event`). If there are several
        lanes, the host thread with the most events is drawn.

    Raises ValueError for no events.
    """
    nodes = read(events)
    present(
        lambda wide, at, own: draw(nodes, wide, at, own),
        choice("zoom", 1, ZOOMS),
        slider("from, in %", 0, 0, 99),
        switch("self time", False),
    )


def read(events: Sequence[Event]) -> list[Node]:
    """Return the events of the host lane with the most events, as nested nodes in order."""
    if not events:
        raise ValueError("flame_chart needs at least one event, got none")
    lanes = [lane for lane in lanes_of(events) if lane.startswith("cpu")] or lanes_of(events)
    fullest = max(lanes, key=lambda lane: sum(event.lane == lane for event in events))
    return tree([event for event in events if event.lane == fullest])


def window(nodes: Sequence[Node], zoom: int, start: int) -> Window:
    """Return the part of the trace for a zoom and a start. It ends at the trace's end or before."""
    first, last = nodes[0].start, max(node.end for node in nodes)
    whole = max(1, last - first)
    wide = whole / zoom
    begin = min(first + whole * start / 100, last - wide)
    return Window(begin, begin + wide)


def rows_of(nodes: Sequence[Node], shown: Window) -> list[Row]:
    """Return the row of each name. Its total time counts nested calls of the same name once.

    The nodes are in the order in which they begin. So a node is after the nodes that contain it.
    """
    rows: dict[str, Row] = {}
    around: list[Node] = []
    for node in nodes:
        del around[node.depth :]
        if shown.clip(node.start, node.end) > 0:
            row = rows.setdefault(node.name, Row(node.name, node.phase))
            row.calls += 1
            row.own += sum(shown.clip(*piece) for piece in node.own())
            if all(outer.name != node.name for outer in around):
                row.total += shown.clip(node.start, node.end)
        around.append(node)
    return list(rows.values())


def draw(nodes: Sequence[Node], zoom: int, start: int, self_time: bool) -> Drawing:
    shown = window(nodes, zoom, start)
    wide = shown.end - shown.start
    kind = "self" if self_time else "total"

    def value(row: Row) -> float:
        return row.own if self_time else row.total

    rows = sorted(rows_of(nodes, shown), key=lambda row: (value(row), row.own), reverse=True)
    title = f"Nothing ran in these {ms(wide)}."
    if rows:
        name = cut(short_name(rows[0].name), 300, size=18)
        title = f"{ms(wide)}: most {kind} time is {name}'s, {value(rows[0]) / wide:.0%}."
    canvas = Canvas(title)
    top = canvas.top + 8
    _draw_bars(canvas, nodes, shown, top, self_time)
    y = top + ROWS * BAR + 14
    canvas.text(MARGIN, y, ms(shown.start - nodes[0].start), MUTED)
    canvas.text(RIGHT, y, ms(shown.end - nodes[0].start), MUTED, "right")
    canvas.legend(MARGIN + 150, y, [(name, look.colour) for name, look in LOOKS.items()], 120)
    y += 48
    columns = {"calls": MARGIN + 410, "total": MARGIN + 530, "self": MARGIN + 650}
    for words, x in columns.items():
        canvas.text(x, y, words, INK if words == kind else MUTED, "right")
    told = []
    for row in rows[:LISTED]:
        y += LINE
        look, name = LOOKS[row.phase], short_name(row.name)
        canvas.box((MARGIN, y - 6, 12, 12), look.colour)
        canvas.text(MARGIN + 20, y, cut(name, 320))
        cells = f"{row.calls:,}", ms(row.total), ms(row.own)
        for x, words in zip(columns.values(), cells, strict=True):
            canvas.text(x, y, words, ha="right")
        left, room = MARGIN + 664, INNER - 664
        canvas.box((left, y - 6, room, 12), IDLE)
        canvas.box((left, y - 6, room * min(1, value(row) / wide), 12), look.colour)
        calls = count(row.calls, "call")
        told.append(f"{name} ({row.phase}): {calls}, total {ms(row.total)}, self {ms(row.own)}")
    return canvas.finish(
        top + ROWS * BAR + 62 + LINE * (LISTED + 1) + 8,
        f"Flame chart of a trace at zoom {zoom}, by {kind} time. {title} {'; '.join(told)}.",
    )


def _draw_bars(
    canvas: Canvas, nodes: Sequence[Node], shown: Window, top: float, self_time: bool
) -> None:
    bars: list[tuple[Box, str]] = []
    strips: list[tuple[Box, str]] = []
    runs: list[list[float]] = []  # left, right, top of bars too narrow to be seen, by depth
    last: dict[int, list[float]] = {}
    for node in nodes:
        if node.depth >= ROWS or not shown.clip(node.start, node.end) > 0:
            continue
        left, right = shown.x(node.start), shown.x(node.end)
        y, look = top + BAR * node.depth, LOOKS[node.phase]
        if right - left < NARROW:
            run = last.get(node.depth)
            if run and left - run[1] < NARROW:
                run[1] = max(run[1], right)
            else:
                last[node.depth] = [left, right, y]
                runs.append(last[node.depth])
            continue
        bars.append(((left, y, right - left, BAR - 3), look.tint))
        for start, end in node.own() if self_time else [(node.start, node.end)]:
            a, b = shown.x(start), shown.x(end)
            if b - a > 0.3:
                strips.append(((a, y + BAR - 3 - STRIP, b - a, STRIP), look.colour))
        if right - left > 52:
            canvas.text(left + 4, y + 10, cut(short_name(node.name), right - left - 8))
    for left, right, y in runs:
        canvas.box((left, y, max(0.6, right - left), BAR - 3), RULE)
    for box, fill in bars:
        canvas.box(box, fill, edge=CARD, line=0.7)
    for box, fill in strips:
        canvas.box(box, fill)
    deeper = max(node.depth for node in nodes) + 1 - ROWS
    if deeper > 0:
        words = f"{count(deeper, 'row')} more below"
        canvas.text(RIGHT, top + BAR * ROWS + 32, words, ha="right")
