"""Host and device side by side: the work of each over time, and the launched work that waits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from utils.instruments.traces import Event
from utils.notebook.style import CARD, GRADIENT, IDLE, INK, KERNEL, MUTED, PARAMETER, STORAGE, VIEW
from utils.views._canvas import INNER, LINE, MARGIN, RIGHT, Axes, Canvas, Drawing
from utils.views._controls import choice, slider
from utils.views._numbers import count
from utils.views._text_outlines import cut
from utils.views._trace import lanes_of, ms, short_name
from utils.views._view import present

NAME_W, BAR, GAP = 104, 28, 14
KINDS = ("range", "op", "call")  # the rows of the host; each stream of the device has one row
PLACES = 200
TOLD = 3
WORDS: tuple[tuple[tuple[str, ...], str], ...] = (  # words in a name, and the colour of the event
    (("synchronize", "item", "_local_scalar"), GRADIENT.colour),
    (("memcpy", "copy_", "aten::to"), PARAMETER.colour),
    (("dataloader", "load"), VIEW.colour),
    (("launch",), KERNEL.colour),
)


def two_lanes(
    traces: Mapping[str, Sequence[Event]], *, trace: str | None = None, at: int = 100
) -> None:
    """Show traces with a host and a device lane, one at a time.

    In a live view, controls choose the trace and move the cursor.

    traces: name -> events (`instruments.traces.Event`). An event has a name, a start and a duration
        in nanoseconds, and a lane. A correlation connects a launch with the launched event. Events
        of whole steps are left out.
    trace: the name of the trace that is shown first.
    at: the position of the cursor, in steps of half a per cent.

    Raises ValueError for no trace, an unknown or empty trace, or a cursor outside 0 to 200.
    """
    found = {str(name): read(events) for name, events in traces.items()}
    if not found or not all(found.values()):
        raise ValueError("two_lanes needs at least one trace, and an event in each trace")
    present(
        lambda name, place: draw(name, found[name], place, max(map(height_of, found.values()))),
        choice("trace", next(iter(found)) if trace is None else trace, list(found)),
        slider("moment", at, 0, PLACES),
    )


def read(events: Sequence[Event]) -> list[Event]:
    """Return the events without those that only mark a whole step."""
    return [event for event in events if not event.name.startswith("ProfilerStep")]


def rows_of(lane: str) -> int:
    """Return how many rows a lane has: for the host a row for each kind, for a stream one row."""
    return 1 if lane.startswith("gpu") else len(KINDS)


def height_of(events: Sequence[Event]) -> int:
    return sum(BAR * rows_of(lane) + GAP for lane in lanes_of(events))


def busy(events: Sequence[Event]) -> int:
    """Return the nanoseconds in which at least one of the events runs."""
    found, reach = 0, 0
    for event in sorted(events, key=lambda e: e.start):
        found += max(0, event.end - max(event.start, reach))
        reach = max(reach, event.end)
    return found


def running(events: Sequence[Event], lane: str, at: float) -> list[str]:
    """Return the events that run in a lane at the time ``at``, the outermost first."""
    inside = [e for e in events if e.lane == lane and e.start <= at < e.end]
    return [e.name for e in outside_in(inside)]


def outside_in(events: Sequence[Event]) -> list[Event]:
    """Return the events in the order of their starts. An outer event is before its inner events.

    A trace records an event when it ends. So if two events have the same start and the same end,
    the event that was recorded later is the outer event.
    """
    latest = list(events)[::-1]
    return sorted(latest, key=lambda e: (e.start, _row(e), -e.duration))


def _row(event: Event) -> int:
    return KINDS.index(event.kind) if event.kind in KINDS else 0


def queued(events: Sequence[Event], at: float) -> int:
    """Return the number of device events that are launched, but not yet begun, at a time."""
    launched = {
        e.correlation
        for e in events
        if e.correlation is not None and not e.on_device and e.start <= at
    }
    return sum(e.on_device and e.correlation in launched and e.start > at for e in events)


def draw(name: str, events: Sequence[Event], place: int, height: int) -> Drawing:
    """Draw one trace with the cursor at `place`. The lanes together have this `height`."""
    first, last = min(e.start for e in events), max(e.end for e in events)
    whole = max(1, last - first)
    at = first + (last - first) * place / PLACES
    kernels = busy([event for event in events if event.kind == "kernel"])
    canvas = Canvas(f"{name}: kernels run {kernels / whole:.0%} of {ms(last - first)}.")
    top = y = canvas.top + 14.0
    left, wide = MARGIN + NAME_W, INNER - NAME_W

    axes = Axes(canvas, left, top, wide, height, x=(first, first + whole), y=(0, 1))
    starts: dict[int, tuple[float, float]] = {}
    shares, told = [], []
    for lane in lanes_of(events):
        part, rows = [e for e in events if e.lane == lane], rows_of(lane)
        title = lane.replace("gpu", "stream", 1) if rows == 1 else lane.replace("cpu", "host", 1)
        canvas.text(MARGIN, y + BAR / 2, title)
        if rows == 1:
            shares.append(f"{title} {busy(part) / whole:.0%}")
        else:
            in_operators = busy([event for event in part if event.kind != "range"]) / whole
            canvas.text(MARGIN, y + BAR / 2 + LINE, f"{in_operators:.0%} in ops", MUTED)
            shares.append(f"{title} in operators {in_operators:.0%}")
        names = [short_name(one) for one in running(events, lane, at)]
        told.append(f"{title}: {', in it '.join(names) if names else 'nothing'}")
        canvas.box((left, y, wide, BAR * rows), IDLE)
        starts |= _draw_lane(axes, part, y)
        y += BAR * rows + GAP
    # A thin line from each launch to the launched event, if there are few enough to follow.
    device = {e.correlation: e for e in events if e.on_device and e.correlation is not None}
    ties = []
    for event in events:
        if not event.on_device and event.correlation in device:
            (ax, ay), (bx, by) = starts[id(event)], starts[id(device[event.correlation])]
            ties.append([(ax + 1, ay + BAR - 2), (bx + 1, by + 2)])
    for tie in ties if len(ties) <= 40 else ():
        canvas.line(tie, MUTED, 0.8)
    x = axes.px(at)
    canvas.line([(x, top - 6), (x, y - GAP + 4)], INK, 1.8, dashed=True)
    canvas.text(left, y, "0", MUTED)
    canvas.text(RIGHT, y, ms(last - first), MUTED, "right")
    waiting = count(queued(events, at), "kernel")
    words = f"At {ms(at - first)}: {'; '.join(told)}; launched and not yet begun: {waiting}."
    canvas.paragraph(top + height + 34, words, TOLD)
    return canvas.finish(
        top + height + 44 + LINE * TOLD,
        f"Host and device. {canvas.title} Busy: {', '.join(shares)}. {words}",
    )


def _draw_lane(axes: Axes, events: Sequence[Event], top: float) -> dict[int, tuple[float, float]]:
    """Draw the bars of a lane, and return the position at which each event begins."""
    canvas, px = axes.canvas, axes.px
    starts: dict[int, tuple[float, float]] = {}
    labelled = [0] * len(KINDS)  # where the last label of each row ends, in time
    for event in outside_in(events):
        row, left = _row(event), px(event.start)
        y, wide = top + BAR * row, px(event.end) - left
        low = event.name.lower()
        colour = next((c for some, c in WORDS if any(w in low for w in some)), STORAGE.colour)
        canvas.box((left, y + 2, max(1.2, wide), BAR - 4), colour, edge=CARD, line=0.6)
        starts[id(event)] = (left, y)
        if wide > 44 and event.start >= labelled[row]:
            labelled[row] = event.end
            ink = INK if colour == KERNEL.colour else CARD
            canvas.text(left + 4, y + BAR / 2, cut(short_name(event.name), wide - 8), ink)
    return starts
