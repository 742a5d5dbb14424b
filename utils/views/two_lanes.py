"""Host and device side by side: what each does at a moment, and what is launched and waits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure

from utils.instruments.traces import Event
from utils.notebook.style import CARD, GRADIENT, IDLE, INK, KERNEL, MUTED, PARAMETER, STORAGE, VIEW
from utils.views import _interactive
from utils.views._canvas import INNER, MARGIN, Box, Canvas, title_height
from utils.views._numbers import count
from utils.views._slots import cut
from utils.views._text_outlines import wrap
from utils.views._trace import lanes_of, ms, short_name

NAME_W, BAR, GAP, TEXT, LINE = 104, 28, 14, 14, 21
KINDS = ("range", "op", "call")  # the rows of the host; a stream of the device has one
PLACES = 200
TOLD = 3
WORDS: tuple[tuple[tuple[str, ...], str], ...] = (  # in a name: how it is drawn
    (("synchronize", "item", "_local_scalar"), GRADIENT.colour),
    (("memcpy", "copy_", "aten::to"), PARAMETER.colour),
    (("dataloader", "load"), VIEW.colour),
    (("launch",), KERNEL.colour),
)


def two_lanes(
    traces: Mapping[str, Sequence[Event]], *, trace: str | None = None, at: int = 100
) -> None:
    """Show traces with a host and a device lane, one at a time; live, choose one and move a cursor.

    traces: name -> events (`instruments.traces.Event`): names, starts and durations in nanoseconds,
    lanes, and a correlation that ties a launch to what it launched. Whole steps are left out.
    at: where the cursor stands, in half per cent.
    Raises ValueError for no trace, an unknown or empty one, or a cursor outside 0 to 200.
    """
    found = {str(name): read(events) for name, events in traces.items()}
    if not found or not all(found.values()):
        raise ValueError("two_lanes needs at least one trace, and in each an event")
    start = trace if trace is not None else next(iter(found))
    if start not in found or not 0 <= at <= PLACES:
        raise ValueError(f"two_lanes: a trace of {tuple(found)} and 0 to 200, got {start!r}, {at}")
    rows = max(height_of(events) for events in found.values())
    names = list(found)
    if len(names) == 1:
        _interactive.present(
            lambda place: draw(start, found[start], place, rows),
            (at,),
            lambda widgets: [_moments(widgets, at)],
        )
        return
    _interactive.present(
        lambda name, place: draw(name, found[name], place, rows),
        (start, at),
        lambda widgets: [
            widgets.SelectionSlider(options=names, value=start, description="trace"),
            _moments(widgets, at),
        ],
    )


def _moments(widgets: Any, at: int) -> Any:
    """The slider of the cursor."""
    return widgets.IntSlider(value=at, min=0, max=PLACES, description="moment")


def read(events: Sequence[Event]) -> list[Event]:
    """The events but those that only mark a whole step."""
    return [event for event in events if not event.name.startswith("ProfilerStep")]


def rows_of(lane: str) -> int:
    """The rows of a lane: one for each kind of event of the host, one for a stream."""
    return 1 if lane.startswith("gpu") else len(KINDS)


def height_of(events: Sequence[Event]) -> int:
    """The height of all lanes."""
    return sum(BAR * rows_of(lane) + GAP for lane in lanes_of(events))


def span(events: Sequence[Event]) -> tuple[int, int]:
    """The first start and the last end of the events."""
    return min(e.start for e in events), max(e.end for e in events)


def busy(events: Sequence[Event]) -> int:
    """The nanoseconds in which at least one of the events runs."""
    found, reach = 0, None
    for event in sorted(events, key=lambda e: e.start):
        end = event.end
        begin = event.start if reach is None else max(event.start, reach)
        found += max(0, end - begin)
        reach = end if reach is None else max(reach, end)
    return found


def in_operators(events: Sequence[Event]) -> int:
    """The nanoseconds in which a host thread is inside an operator or a call."""
    return busy([event for event in events if event.kind != "range"])


def running(events: Sequence[Event], lane: str, at: float) -> list[str]:
    """What runs in a lane at a time, from the outside in."""
    inside = [e for e in events if e.lane == lane and e.start <= at < e.end]
    return [e.name for e in outside_in(inside)]


def outside_in(events: Sequence[Event]) -> list[Event]:
    """The events in order of their starts, an outer one before those inside.

    A trace notes an event when it ends: of two of one extent the later is the outer one.
    """
    latest = list(events)[::-1]
    return sorted(latest, key=lambda e: (e.start, _row(e), -e.duration))


def _row(event: Event) -> int:
    """The row of its lane in which an event is drawn."""
    return KINDS.index(event.kind) if event.kind in KINDS else 0


def queued(events: Sequence[Event], at: float) -> int:
    """How many device events have been launched before a time and have not begun."""
    launched = {
        e.correlation
        for e in events
        if e.correlation is not None and not e.lane.startswith("gpu") and e.start <= at
    }
    return sum(
        e.lane.startswith("gpu") and e.correlation in launched and e.start > at for e in events
    )


def draw(
    name: str, events: Sequence[Event], place: int, height: int | None = None
) -> tuple[Figure, str]:
    """One trace with the cursor at a place, and its alternative text.

    height: of all lanes, where other traces of the same sheet have more of them.
    """
    first, last = span(events)
    at = first + (last - first) * place / PLACES
    top = title_height("one line") + 14
    bottom = top + (height or height_of(events))
    canvas = Canvas(bottom + 30 + LINE * TOLD + 14)
    canvas.title(sentence(name, events))
    left, wide = MARGIN + NAME_W, INNER - NAME_W

    def px(time: float) -> float:
        return left + wide * (time - first) / max(1, last - first)

    starts: dict[int, tuple[float, float]] = {}
    y = float(top)
    for lane in lanes_of(events):
        rows = rows_of(lane)
        part = [e for e in events if e.lane == lane]
        share = f"{in_operators(part) / max(1, last - first):.0%} in ops"
        words = [title_of(lane), share] if rows > 1 else [title_of(lane)]
        for k, word in enumerate(words):
            colour = MUTED if k else INK
            canvas.text(MARGIN, y + BAR / 2 + k * LINE, word, size=TEXT, colour=colour)
        canvas.boxes([(left, y, wide, BAR * rows)], [IDLE], edge="none")
        starts |= _draw_lane(canvas, part, px, y)
        y += BAR * rows + GAP
    _draw_ties(canvas, events, starts)
    canvas.line([(px(at), top - 6), (px(at), y - GAP + 4)], colour=INK, line=1.8, dashed=True)
    canvas.text(left, y, "0", size=TEXT, colour=MUTED)
    canvas.text(left + wide, y, ms(last - first), size=TEXT, colour=MUTED, ha="right")
    for row, line in enumerate(wrap(in_words(events, at, first), INNER, size=TEXT)[:TOLD]):
        told = cut(line, INNER, size=TEXT)
        canvas.text(MARGIN, bottom + 34 + LINE * row, told, size=TEXT)
    return canvas.finish(), describe(name, events, at, first)


def _draw_lane(
    canvas: Canvas, events: Sequence[Event], px: Callable[[float], float], top: float
) -> dict[int, tuple[float, float]]:
    """The bars of a lane; return where each event begins."""
    boxes: list[Box] = []
    fills: list[str] = []
    labels: list[tuple[float, float, str, str]] = []
    starts: dict[int, tuple[float, float]] = {}
    labelled = [0] * len(KINDS)  # where the last label of each row ends, in time
    for event in outside_in(events):
        row = _row(event)
        left, right = px(event.start), px(event.end)
        y = top + BAR * row
        colour = colour_of(event.name)
        boxes.append((left, y + 2, max(1.2, right - left), BAR - 4))
        fills.append(colour)
        starts[id(event)] = (left, y)
        if right - left > 44 and event.start >= labelled[row]:
            labelled[row] = event.end
            ink = INK if colour == KERNEL.colour else CARD
            words = cut(short_name(event.name), right - left - 8, size=TEXT)
            labels.append((left + 4, y + BAR / 2, words, ink))
    canvas.boxes(boxes, fills, edge=CARD, line=0.6)
    for x, y, words, ink in labels:
        canvas.text(x, y, words, size=TEXT, colour=ink)
    return starts


def _draw_ties(
    canvas: Canvas, events: Sequence[Event], places: Mapping[int, tuple[float, float]]
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
    """A lane in words: a thread of the host, or a stream of the device."""
    if lane.startswith("gpu"):
        return lane.replace("gpu", "stream", 1)
    return lane.replace("cpu", "host", 1)


def sentence(name: str, events: Sequence[Event]) -> str:
    """For how much of the time the device computes, as the figure's title."""
    first, last = span(events)
    kernels = [event for event in events if event.kind == "kernel"]
    share = busy(kernels) / max(1, last - first)
    return f"{name}: kernels run {share:.0%} of {ms(last - first)}."


def in_words(events: Sequence[Event], at: float, first: int) -> str:
    """What each lane does at the cursor, and how much is queued."""
    told = []
    for lane in lanes_of(events):
        names = [short_name(name) for name in running(events, lane, at)]
        told.append(f"{title_of(lane)}: {', in it '.join(names) if names else 'nothing'}")
    waiting = count(queued(events, at), "kernel")
    return f"At {ms(at - first)}: {'; '.join(told)}; launched and not yet begun: {waiting}."


def describe(name: str, events: Sequence[Event], at: float, first: int) -> str:
    """The alternative text: how busy each lane is, and what happens at the cursor."""
    start, end = span(events)
    shares = ", ".join(
        f"{title_of(lane)} {busy([e for e in events if e.lane == lane]) / max(1, end - start):.0%}"
        if lane.startswith("gpu")
        else f"{title_of(lane)} in operators "
        f"{in_operators([e for e in events if e.lane == lane]) / max(1, end - start):.0%}"
        for lane in lanes_of(events)
    )
    return (
        f"Host and device. {sentence(name, events)} Busy: {shares}. {in_words(events, at, first)}"
    )
