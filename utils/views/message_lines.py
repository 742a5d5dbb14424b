"""Messages between ranks as lines in space and time. Ranks that wait for ever are red."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from utils.instruments.world import Collective, Computed, Message, Outcome, WorldError
from utils.notebook.style import CARD, GRADIENT, INK, KERNEL, MUTED, PARAMETER, RULE, STORAGE
from utils.views._canvas import LINE, MARGIN, RIGHT, Axes, Canvas, Drawing, Point
from utils.views._controls import choice, slider
from utils.views._numbers import count, human_bytes, listed, require
from utils.views._trace import ms
from utils.views._view import present

LEFT, ROW, BAR = 78, 58, 14
MOST, MOST_EVENTS, PLACES, TOLD = 8, 400, 100, 24
STUCK = 90  # CSS pixels at the right edge for spans without an end


@dataclass(frozen=True)
class Span:
    """An activity of a rank over time: it computes, sends, receives, or waits for others."""

    rank: int
    start: float
    end: float
    does: str
    waits: bool = False


@dataclass(frozen=True)
class Lines:
    """A world's run: its spans and messages, and the ranks that wait for ever, with the time."""

    world: int
    seconds: float
    messages: tuple[Message, ...]
    collectives: tuple[Collective, ...]
    spans: tuple[Span, ...]
    # for each rank that waits for ever: the rank, the start of the wait, the reason in words, the
    # awaited ranks
    stuck: tuple[tuple[int, float, str, tuple[int, ...]], ...]


def message_lines(
    runs: Outcome | WorldError | Mapping[str, Outcome | WorldError], *, run: str | None = None
) -> None:
    """Show the messages between the ranks of a simulated world over time.

    In a live view, controls choose the run and move a cursor.

    runs: an Outcome that `instruments.world.run` returned, or a WorldError that it raised, or
        name -> Outcome or WorldError.
    run: the name of the run that is shown first.

    Raises ValueError for no run, an unknown run, more than 8 ranks, or more than 400 events. Also
    raises ValueError if the messages take no time: then call `instruments.world.run` with a
    latency.
    """
    named = dict(runs) if isinstance(runs, Mapping) else {"": runs}
    if not named:
        raise ValueError("message_lines needs at least one run")
    found = {str(name): read(one) for name, one in named.items()}
    rows = max(lines.world for lines in found.values())
    present(
        lambda name, at: draw(name, found[name], at, rows),
        choice("run", next(iter(found)) if run is None else run, list(found)),
        slider("moment", PLACES // 2, 0, PLACES),
    )


def read(run: Outcome | WorldError) -> Lines:
    """Return the lines of a run. The run may be unable to end."""
    outcome = run.outcome if isinstance(run, WorldError) else run
    world = len(outcome.results)
    require("message_lines", world, "ranks", MOST)
    require("message_lines", len(outcome.log), "events", MOST_EVENTS, 0)
    seconds = max([*(event.end for event in outcome.log), *outcome.clocks], default=0.0)
    if outcome.messages and not seconds:
        raise ValueError("message_lines: the messages take no time: run with latency=1.0")
    spans: list[Span] = []
    for event in outcome.log:
        if isinstance(event, Computed):
            spans.append(Span(event.rank, event.start, event.end, "computes"))
        elif isinstance(event, Message):
            sends, gets = f"sends to {event.to}", f"receives from {event.source}"
            begun = max(event.awaited, min(event.start, event.end))
            spans += [
                Span(event.source, event.sent, event.start, f"waits: {sends}", True),
                Span(event.source, event.start, event.end, sends),
                Span(event.to, event.awaited, begun, f"waits: {gets}", True),
                Span(event.to, begun, max(begun, event.end), gets),
            ]
        else:
            for rank, posted in enumerate(event.posted):
                spans.append(Span(rank, posted, event.end, f"waits in {event.kind}", True))
    stuck = tuple(
        (rank, outcome.clocks[rank], words, outcome.awaits.get(rank, ()))
        for rank, words in outcome.waiting.items()
    )
    kept = tuple(span for span in spans if span.end > span.start)
    return Lines(world, seconds, tuple(outcome.messages), tuple(outcome.collectives), kept, stuck)


def draw(name: str, lines: Lines, moment: int, rows: int) -> Drawing:
    """Draw a run with the cursor at a moment, on a sheet that has room for `rows` ranks."""
    canvas = Canvas(f"{name}: {ending(lines)}" if name else ending(lines))
    top = canvas.top + 30
    bottom = top + ROW * rows
    told = 3 if rows < 5 else 5  # lines of words
    right = RIGHT - (STUCK if lines.stuck else 14)

    wide, span = right - MARGIN - LEFT, (0, lines.seconds or 1.0)
    axes = Axes(canvas, MARGIN + LEFT, top, wide, ROW * rows, x=span, y=(rows, 0))
    px, py = axes.px, axes.py
    for rank in range(lines.world):
        canvas.text(MARGIN, py(rank), f"rank {rank}")
        canvas.line([(px(0), py(rank)), (px(lines.seconds), py(rank))], RULE, 1.2)
    # Draw blue bars for computing and amber bars for waiting. Sends and receives are separate
    # lines.
    for s in lines.spans:
        if s.waits or s.does == "computes":
            fill, high = (KERNEL.colour, BAR / 2) if s.waits else (STORAGE.colour, BAR)
            box = (px(s.start), py(s.rank) - high / 2, px(s.end) - px(s.start), high)
            canvas.box(box, fill, edge=CARD, line=0.8)
    _draw_messages(axes, lines)
    last = py(lines.world - 1)
    if lines.seconds:
        at = px(lines.seconds * moment / PLACES)
        canvas.line([(at, top - 20), (at, last + 20)], INK, 1.4, dashed=True)
        canvas.text(MARGIN + LEFT, last + 32, "0", MUTED, "center")
        canvas.text(px(lines.seconds), last + 32, in_seconds(lines.seconds), MUTED, "right")
    words = in_words(lines, lines.seconds * moment / PLACES)
    canvas.paragraph(bottom + 28, words, told)
    sent = "; ".join(
        f"{m.source} to {m.to} from {in_seconds(m.start)} to {in_seconds(m.end)}"
        for m in lines.messages[:TOLD]
    )
    more = "; and more" if len(lines.messages) > TOLD else ""
    messages = f" Messages: {sent}{more}." if sent else ""
    return canvas.finish(
        bottom + 38 + LINE * told,
        f"Messages between {count(lines.world, 'rank')} over time. "
        f"{canvas.title}{messages} {words}",
    )


def _draw_messages(axes: Axes, lines: Lines) -> None:
    """Draw a line from a message's departure to its arrival, and a bar for a collective."""
    canvas, px, py = axes.canvas, axes.px, axes.py
    for m in lines.messages:
        _draw_arrow(
            canvas, (px(m.start), py(m.source)), (px(max(m.end, m.awaited)), py(m.to)), INK, 1.6
        )
    edge = 0.0
    for one in lines.collectives:
        x = px(one.end)
        canvas.line([(x, py(0) - 10), (x, py(lines.world - 1) + 10)], PARAMETER.colour, 4)
        if len(lines.collectives) <= 6 and x - 50 > edge:
            canvas.text(x, py(0) - 22, one.kind, PARAMETER.colour, "right", size=13)
            edge = x + 10
    # Draw red dashes from the start of an endless wait, and a red arrow to the awaited rank.
    red = GRADIENT.colour
    for place, (rank, since, _, whom) in enumerate(lines.stuck):
        canvas.line([(px(since), py(rank)), (RIGHT, py(rank))], red, 3, dashed=True)
        x = px(lines.seconds) + 14 + 12 * (place % 6)
        for other in whom:
            start, end = (x, py(rank)), (x, py(other) - (5 if other > rank else -5))
            _draw_arrow(canvas, start, end, red, 1.8)


def _draw_arrow(canvas: Canvas, start: Point, end: Point, colour: str, line: float) -> None:
    canvas.line([start, end], colour, line)
    length = math.dist(start, end) or 1.0
    ux, uy = (end[0] - start[0]) / length, (end[1] - start[1]) / length
    back = end[0] - 9 * ux, end[1] - 9 * uy
    sides = (back[0] - 4 * uy, back[1] + 4 * ux), (back[0] + 4 * uy, back[1] - 4 * ux)
    canvas.polygon([end, *sides], colour)


def in_seconds(seconds: float) -> str:
    """Return a time in a suitable unit: "3 s", "20 ms", "5 µs"."""
    return ms(seconds * 1e9) if seconds else "0 s"


def ending(lines: Lines) -> str:
    if lines.stuck:
        ranks = [str(rank) for rank, *_ in lines.stuck]
        one = len(ranks) == 1
        return f"rank{'' if one else 's'} {listed(ranks)} wait{'s' if one else ''} for ever."
    parts = []
    if lines.messages:
        size = sum(message.bytes for message in lines.messages)
        parts.append(f"{count(len(lines.messages), 'message')} of {human_bytes(size)} in all")
    if lines.collectives:
        parts.append(count(len(lines.collectives), "collective"))
    return f"{', '.join(parts) or 'nothing is sent'}, {in_seconds(lines.seconds)}."


def doing(lines: Lines, rank: int, at: float) -> str:
    for other, since, words, _ in lines.stuck:
        if other == rank and at >= since:
            return f"{words}, for ever"
    now = [s.does for s in lines.spans if s.rank == rank and s.start <= at < s.end]
    if not now and at >= max((s.end for s in lines.spans if s.rank == rank), default=0.0):
        return "done"
    return " and ".join(dict.fromkeys(now)) or "nothing"


def in_words(lines: Lines, at: float) -> str:
    """Return in words what the ranks do at the time ``at``, grouped by activity."""
    by_words: dict[str, list[str]] = {}
    for rank in range(lines.world):
        by_words.setdefault(doing(lines, rank, at), []).append(str(rank))
    told = "; ".join(
        f"rank{'' if len(ranks) == 1 else 's'} {listed(ranks)}: {words}"
        for words, ranks in by_words.items()
    )
    return f"At {in_seconds(at)}: {told}."
