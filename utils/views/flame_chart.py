"""The learner's own trace as a flame chart: who calls whom, for how long, and what is its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

from utils.instruments.traces import Event
from utils.notebook.style import CARD, IDLE, INK, MUTED, RULE
from utils.views import _interactive
from utils.views._canvas import INNER, MARGIN, Box, Canvas, title_height
from utils.views._numbers import count
from utils.views._slots import cut
from utils.views._trace import LOOKS, Node, lanes_of, ms, short_name, tree

ROWS, BAR, STRIP, TEXT = 7, 30, 8, 14
LISTED, LINE = 5, 25
ZOOMS = (1, 2, 4, 8, 16, 32, 64, 128)
NARROW = 1.0  # CSS pixels: bars below it are drawn as one with their neighbours


@dataclass(frozen=True)
class Window:
    """The part of a trace that is drawn, in nanoseconds."""

    start: float
    end: float

    def clip(self, start: float, end: float) -> float:
        """How much of a piece lies in the window."""
        return max(0.0, min(end, self.end) - max(start, self.start))

    def x(self, at: float) -> float:
        """The CSS pixel of a time, never outside the sheet's inner width."""
        share = (at - self.start) / (self.end - self.start)
        return MARGIN + INNER * min(max(share, 0.0), 1.0)


@dataclass
class Row:
    """What a name takes of a window: calls that begin or go on in it, and nanoseconds."""

    name: str
    phase: str
    calls: int = 0
    total: float = 0.0
    own: float = 0.0


def flame_chart(
    events: Sequence[Event], *, zoom: int = 1, start: int = 0, self_time: bool = False
) -> None:
    """Show the events of a trace, each above what it calls; live, the picture can be moved.

    events: names, starts, durations and lanes (`instruments.traces.Event`); where there are several
    lanes, the host thread with most events is drawn.
    zoom: one of 1, 2, 4 to 128; start: where the picture begins, in per cent of the trace.
    self_time: whether strips and list show each event's own time in place of its total.
    Raises ValueError for no events, another zoom, or a start outside 0 to 99.
    """
    nodes = read(events)
    if zoom not in ZOOMS or not 0 <= start <= 99:
        raise ValueError(
            f"flame_chart: a zoom of {ZOOMS} and a start of 0 to 99, got {zoom}, {start}"
        )
    _interactive.present(
        lambda wide, at, own: draw(nodes, wide, at, own),
        (zoom, start, self_time),
        lambda widgets: [
            widgets.SelectionSlider(options=ZOOMS, value=zoom, description="zoom"),
            widgets.IntSlider(value=start, min=0, max=99, description="from, in %"),
            widgets.Checkbox(value=self_time, description="self time"),
        ],
    )


def read(events: Sequence[Event]) -> list[Node]:
    """The events of the fullest host lane, as nested nodes in the order in which they begin."""
    if not events:
        raise ValueError("flame_chart needs at least one event, got none")
    lanes = [lane for lane in lanes_of(events) if lane.startswith("cpu")] or lanes_of(events)
    fullest = max(lanes, key=lambda lane: sum(event.lane == lane for event in events))
    return tree([event for event in events if event.lane == fullest])


def window(nodes: Sequence[Node], zoom: int, start: int) -> Window:
    """The part of the trace at a zoom and a start; at the end of the trace it stops."""
    first, last = nodes[0].start, max(node.end for node in nodes)
    whole = max(1, last - first)
    wide = whole / zoom
    begin = min(first + whole * start / 100, last - wide)
    return Window(begin, begin + wide)


def rows_of(nodes: Sequence[Node], shown: Window) -> list[Row]:
    """What each name takes of the window; a name inside itself is not counted twice in its total.

    Nodes come in the order in which they begin, so those around a node come before it.
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


def draw(nodes: Sequence[Node], zoom: int, start: int, self_time: bool) -> tuple[Figure, str]:
    """The figure of a window, and its alternative text."""
    shown = window(nodes, zoom, start)
    rows = sorted(
        rows_of(nodes, shown),
        key=lambda row: (row.own if self_time else row.total, row.own),
        reverse=True,
    )
    top = title_height("one line") + 8
    listed_at = top + ROWS * BAR + 62
    canvas = Canvas(listed_at + LINE * (LISTED + 1) + 8)
    canvas.title(sentence(rows, shown, self_time))
    _draw_bars(canvas, nodes, shown, top, self_time)
    y = top + ROWS * BAR + 14
    canvas.text(MARGIN, y, f"{ms(shown.start - nodes[0].start)}", size=TEXT, colour=MUTED)
    canvas.text(
        MARGIN + INNER, y, f"{ms(shown.end - nodes[0].start)}", size=TEXT, colour=MUTED, ha="right"
    )
    x = MARGIN + 150.0
    for name, look in LOOKS.items():
        canvas.boxes([(x, y - 6, 12, 12)], [look.colour], edge="none")
        canvas.text(x + 18, y, name, size=TEXT, colour=MUTED)
        x += 120
    _draw_list(canvas, rows, shown, listed_at, self_time)
    return canvas.finish(), describe(rows, shown, zoom, self_time)


def _draw_bars(
    canvas: Canvas, nodes: Sequence[Node], shown: Window, top: float, self_time: bool
) -> None:
    inside = [n for n in nodes if n.depth < ROWS and shown.clip(n.start, n.end) > 0]
    boxes: list[Box] = []
    fills: list[str] = []
    strips: list[Box] = []
    inks: list[str] = []
    merged: dict[int, list[float]] = {}  # depth -> [left, right] of bars too narrow to be seen
    specks: list[Box] = []
    for node in inside:
        left, right = shown.x(node.start), shown.x(node.end)
        y = top + BAR * node.depth
        if right - left < NARROW:
            run = merged.get(node.depth)
            if run and left - run[1] < NARROW:
                run[1] = max(run[1], right)
                continue
            if run:
                specks.append((run[0], top + BAR * node.depth, max(0.6, run[1] - run[0]), BAR - 3))
            merged[node.depth] = [left, right]
            continue
        boxes.append((left, y, right - left, BAR - 3))
        fills.append(LOOKS[node.phase].tint)
        pieces = node.own() if self_time else [(node.start, node.end)]
        for piece in pieces:
            a, b = shown.x(piece[0]), shown.x(piece[1])
            if b - a > 0.3:
                strips.append((a, y + BAR - 3 - STRIP, b - a, STRIP))
                inks.append(LOOKS[node.phase].colour)
        if right - left > 52:
            words = cut(short_name(node.name), right - left - 8, size=TEXT)
            canvas.text(left + 4, y + 10, words, size=TEXT)
    specks += [
        (left, top + BAR * depth, max(0.6, right - left), BAR - 3)
        for depth, (left, right) in merged.items()
    ]
    canvas.boxes(specks, [RULE] * len(specks), edge="none")
    canvas.boxes(boxes, fills, edge=CARD, line=0.7)
    canvas.boxes(strips, inks, edge="none")
    deeper = max((node.depth for node in nodes), default=0) + 1 - ROWS
    if deeper > 0:
        words = f"{count(deeper, 'row')} more below"
        canvas.text(MARGIN + INNER, top + BAR * ROWS + 32, words, size=TEXT, ha="right")


def _draw_list(
    canvas: Canvas, rows: Sequence[Row], shown: Window, top: float, self_time: bool
) -> None:
    columns = (MARGIN + 410, MARGIN + 530, MARGIN + 650)
    for x, words in zip(columns, ("calls", "total", "self"), strict=True):
        chosen = words == ("self" if self_time else "total")
        canvas.text(x, top, words, size=TEXT, colour=INK if chosen else MUTED, ha="right")
    wide = shown.end - shown.start
    for k, row in enumerate(rows[:LISTED]):
        y = top + LINE * (k + 1)
        look = LOOKS[row.phase]
        canvas.boxes([(MARGIN, y - 6, 12, 12)], [look.colour], edge="none")
        canvas.text(MARGIN + 20, y, cut(short_name(row.name), 320, size=TEXT), size=TEXT)
        cells = f"{row.calls:,}", ms(row.total), ms(row.own)
        for x, words in zip(columns, cells, strict=True):
            canvas.text(x, y, words, size=TEXT, ha="right")
        value = row.own if self_time else row.total
        left, room = MARGIN + 664, INNER - 664
        canvas.boxes([(left, y - 6, room, 12)], [IDLE], edge="none")
        canvas.boxes([(left, y - 6, room * min(1, value / wide), 12)], [look.colour], edge="none")


def sentence(rows: Sequence[Row], shown: Window, self_time: bool) -> str:
    """Who takes most of the window, as the figure's title."""
    wide = shown.end - shown.start
    if not rows:
        return f"Nothing ran in these {ms(wide)}."
    row = rows[0]
    value, kind = (row.own, "self") if self_time else (row.total, "total")
    name = cut(short_name(row.name), 300, size=18)
    return f"{ms(wide)}: most {kind} time is {name}'s, {value / wide:.0%}."


def describe(rows: Sequence[Row], shown: Window, zoom: int, self_time: bool) -> str:
    """The alternative text: the window and the names that take most of it."""
    told = "; ".join(
        f"{short_name(row.name)} ({row.phase}): {count(row.calls, 'call')}, total {ms(row.total)}, "
        f"self {ms(row.own)}"
        for row in rows[:LISTED]
    )
    kind = "self" if self_time else "total"
    return (
        f"Flame chart of a trace at zoom {zoom}, by {kind} time. "
        f"{sentence(rows, shown, self_time)} {told}."
    )
