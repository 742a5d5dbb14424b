"""Host and device side by side: what each does at a moment, and what is launched and waits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure

from utils.style import CARD, GRADIENT, IDLE, INK, KERNEL, MUTED, PARAMETER, RULE, STORAGE, VIEW
from utils.views import _interactive
from utils.views._canvas import INNER, MARGIN, Box, Canvas, title_height
from utils.views._numbers import count
from utils.views._slots import cut
from utils.views._text_outlines import wrap
from utils.views._trace import lanes_of, ms

NAME_W, BAR, GAP, TEXT, LINE = 96, 36, 14, 14, 21
DEEPEST = 2  # rows of a lane: a range, and what is inside
PLACES = 100
TOLD = 4
WORDS: tuple[tuple[tuple[str, ...], str], ...] = (  # in a name: how it is drawn
    (("sync", "item", "wait"), GRADIENT.colour),
    (("copy", "memcpy", "to("), PARAMETER.colour),
    (("load", "next"), VIEW.colour),
    (("launch",), KERNEL.colour),
)


def two_lanes(
    traces: Mapping[str, Sequence[Any]], *, trace: str | None = None, at: int = 50
) -> None:
    """Show traces with a host and a device lane, one at a time; live, choose one and move a cursor.

    traces: name -> events (`utils.traces.Event`): names, starts and durations in nanoseconds,
    lanes "cpu..." and "gpu...", and a correlation that ties a launch to what it launched.
    at: where the cursor stands, in per cent. Raises ValueError for no trace, an unknown one, an
    empty one, or a cursor outside 0 to 100.
    """
    found = {str(name): list(events) for name, events in traces.items()}
    if not found or not all(found.values()):
        raise ValueError("two_lanes needs at least one trace, and in each an event")
    start = trace if trace is not None else next(iter(found))
    if start not in found or not 0 <= at <= PLACES:
        raise ValueError(f"two_lanes: a trace of {tuple(found)} and 0 to 100, got {start!r}, {at}")
    rows = max(len(lanes_of(events)) for events in found.values())
    names = list(found)
    _interactive.present(
        lambda name, place: draw(name, found[name], place, rows),
        (start, at),
        lambda widgets: [
            widgets.SelectionSlider(options=names, value=start, description="trace"),
            widgets.IntSlider(value=at, min=0, max=PLACES, description="moment"),
        ],
    )


def span(events: Sequence[Any]) -> tuple[int, int]:
    """The first start and the last end of the events."""
    return min(e.start for e in events), max(e.start + e.duration for e in events)


def busy(events: Sequence[Any]) -> int:
    """The nanoseconds in which at least one of the events runs."""
    found, reach = 0, None
    for event in sorted(events, key=lambda e: e.start):
        end = event.start + event.duration
        begin = event.start if reach is None else max(event.start, reach)
        found += max(0, end - begin)
        reach = end if reach is None else max(reach, end)
    return found


def running(events: Sequence[Any], lane: str, at: float) -> list[str]:
    """What runs in a lane at a time, from the outside in."""
    inside = [e for e in events if e.lane == lane and e.start <= at < e.start + e.duration]
    return [e.name for e in sorted(inside, key=lambda e: (e.start, -e.duration))]


def queued(events: Sequence[Any], at: float) -> int:
    """How many device events have been launched before a time and have not begun."""
    launched = {
        e.correlation
        for e in events
        if e.correlation is not None and not e.lane.startswith("gpu") and e.start <= at
    }
    return sum(
        e.lane.startswith("gpu") and e.correlation in launched and e.start > at for e in events
    )


def draw(name: str, events: Sequence[Any], place: int, rows: int = 2) -> tuple[Figure, str]:
    """One trace with the cursor at a place, and its alternative text."""
    first, last = span(events)
    at = first + (last - first) * place / PLACES
    lanes = lanes_of(events)
    top = title_height("one line") + 14
    told_at = top + rows * (DEEPEST * BAR + GAP) + 34
    canvas = Canvas(told_at + LINE * TOLD + 14)
    canvas.title(sentence(name, events))
    left, wide = MARGIN + NAME_W, INNER - NAME_W

    def px(time: float) -> float:
        return left + wide * (time - first) / max(1, last - first)

    places: dict[int, tuple[float, float]] = {}
    for row, lane in enumerate(lanes):
        y = top + row * (DEEPEST * BAR + GAP)
        canvas.text(MARGIN, y + BAR - 8, cut(title_of(lane), NAME_W - 8, size=TEXT), size=TEXT)
        part = [e for e in events if e.lane == lane]
        share = busy(part) / max(1, last - first)
        canvas.text(MARGIN, y + BAR + 12, f"{share:.0%} busy", size=TEXT, colour=MUTED)
        canvas.boxes([(left, y, wide, DEEPEST * BAR)], [IDLE], edge="none")
        places |= _draw_lane(canvas, part, px, y)
    _draw_ties(canvas, events, places)
    bottom = top + rows * (DEEPEST * BAR + GAP) - GAP
    canvas.line([(px(at), top - 6), (px(at), bottom + 4)], colour=INK, line=1.8, dashed=True)
    canvas.text(left, bottom + 18, "0", size=TEXT, colour=MUTED)
    canvas.text(left + wide, bottom + 18, ms(last - first), size=TEXT, colour=MUTED, ha="right")
    for row, line in enumerate(wrap(in_words(events, at, first), INNER, size=TEXT)[:TOLD]):
        canvas.text(MARGIN, told_at + 12 + LINE * row, cut(line, INNER, size=TEXT), size=TEXT)
    return canvas.finish(), describe(name, events, at, first)


def _draw_lane(
    canvas: Canvas, events: Sequence[Any], px: Any, top: float
) -> dict[int, tuple[float, float]]:
    """The bars of a lane, ranges above what is inside them; return where each event begins."""
    boxes: list[Box] = []
    fills: list[str] = []
    labels: list[tuple[float, float, str, str]] = []
    starts: dict[int, tuple[float, float]] = {}
    ends: list[int] = []
    for event in sorted(events, key=lambda e: (e.start, -e.duration)):
        ends = [end for end in ends if end > event.start]
        depth = min(len(ends), DEEPEST - 1)
        ends.append(event.start + event.duration)
        left, right = px(event.start), px(event.start + event.duration)
        y = top + BAR * depth
        colour = colour_of(event.name)
        boxes.append((left, y + 2, max(1.5, right - left), BAR - 4))
        fills.append(colour)
        starts[id(event)] = (left, y)
        if right - left > 40:
            ink = INK if colour in (KERNEL.colour, RULE) else CARD
            labels.append(
                (left + 4, y + BAR / 2, cut(event.name, right - left - 8, size=TEXT), ink)
            )
    canvas.boxes(boxes, fills, edge=CARD, line=0.8, radius=2)
    for x, y, words, ink in labels:
        canvas.text(x, y, words, size=TEXT, colour=ink)
    return starts


def _draw_ties(
    canvas: Canvas, events: Sequence[Any], places: Mapping[int, tuple[float, float]]
) -> None:
    """A thin line from each launch to what it launched, while there are few enough to follow."""
    device = {
        e.correlation: e for e in events if e.lane.startswith("gpu") and e.correlation is not None
    }
    ways = []
    for event in events:
        if event.lane.startswith("gpu") or event.correlation not in device:
            continue
        start, end = places[id(event)], places[id(device[event.correlation])]
        ways.append([(start[0] + 1, start[1] + BAR - 2), (end[0] + 1, end[1] + 2)])
    if len(ways) <= 40:
        canvas.lines(ways, colour=MUTED, line=0.8)


def colour_of(name: str) -> str:
    """The colour of an event, by a word in its name: waits, copies, loading, launches, or work."""
    low = name.lower()
    return next((c for words, c in WORDS if any(word in low for word in words)), STORAGE.colour)


def title_of(lane: str) -> str:
    """A lane in words: the host thread, or the device."""
    if lane.startswith("gpu"):
        return lane.replace("gpu", "device", 1)
    return lane.replace("cpu", "host", 1)


def sentence(name: str, events: Sequence[Any]) -> str:
    """How busy the device is, as the figure's title."""
    first, last = span(events)
    device = [e for e in events if e.lane.startswith("gpu")]
    if not device:
        return f"{name}: nothing runs on a device."
    return f"{name}: the device works {busy(device) / max(1, last - first):.0%} of the time."


def in_words(events: Sequence[Any], at: float, first: int) -> str:
    """What each lane does at the cursor, and how much is queued."""
    told = []
    for lane in lanes_of(events):
        names = running(events, lane, at)
        told.append(f"{title_of(lane)}: {', in it '.join(names) if names else 'nothing'}")
    waiting = count(queued(events, at), "kernel")
    return f"At {ms(at - first)}: {'; '.join(told)}; launched and not yet begun: {waiting}."


def describe(name: str, events: Sequence[Any], at: float, first: int) -> str:
    """The alternative text: how busy each lane is, and what happens at the cursor."""
    start, end = span(events)
    shares = ", ".join(
        f"{title_of(lane)} {busy([e for e in events if e.lane == lane]) / max(1, end - start):.0%}"
        for lane in lanes_of(events)
    )
    return (
        f"Host and device. {sentence(name, events)} Busy: {shares}. {in_words(events, at, first)}"
    )
