"""Messages between ranks as lines in space and time; what waits for ever is red."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from matplotlib.figure import Figure

from utils.instruments.world import Collective, Computed, Message, Outcome, WorldError
from utils.notebook.style import CARD, GRADIENT, INK, KERNEL, MUTED, PARAMETER, RULE, STORAGE, WIDTH
from utils.views import _interactive
from utils.views._canvas import INNER, MARGIN, Box, Canvas, Point, title_height
from utils.views._numbers import count, human_bytes, listed
from utils.views._text_outlines import wrap

LEFT, ROW, BAR, TEXT, LINE = 78, 58, 14, 14, 21
MOST, MOST_EVENTS, PLACES = 8, 400, 100
Scale = Callable[[float], float]
STUCK = 90  # CSS pixels at the right edge for what has no end


@dataclass(frozen=True)
class Span:
    """What a rank does for a while: it computes, sends, receives, or waits for others."""

    rank: int
    start: float
    end: float
    does: str
    waits: bool = False


@dataclass(frozen=True)
class Lines:
    """A world's run: its spans and messages, and who waits for ever from when on."""

    world: int
    seconds: float
    messages: tuple[Message, ...]
    collectives: tuple[Collective, ...]
    spans: tuple[Span, ...]
    stuck: tuple[tuple[int, float, str, tuple[int, ...]], ...]  # rank, since, words, for whom


def message_lines(
    runs: Outcome | WorldError | Mapping[str, Outcome | WorldError],
    *,
    run: str | None = None,
    moment: int = 50,
) -> None:
    """Show what the ranks of a simulated world sent each other, and when; live, move a cursor.

    runs: what `instruments.world.run` returned or raised, or several of them by name (then a slider
    chooses). run: the one shown at first. moment: where the cursor stands, in per cent.
    Raises ValueError for no run, an unknown one, more than 8 ranks or 400 events, a moment outside
    0 to 100, or a run whose messages take no time (give `run` a latency).
    """
    named = dict(runs) if isinstance(runs, Mapping) else {"": runs}
    found = {str(name): read(one) for name, one in named.items()}
    start = next(iter(found), "") if run is None else run
    if start not in found or not 0 <= moment <= PLACES:
        raise ValueError(
            f"message_lines: a run of {tuple(found)}, a moment of 0 to {PLACES}, "
            f"got {start!r} and {moment}"
        )
    rows = max(lines.world for lines in found.values())
    if len(found) == 1:
        _interactive.present(
            lambda at: draw(start, found[start], at, rows),
            (moment,),
            lambda widgets: [
                widgets.IntSlider(value=moment, min=0, max=PLACES, description="moment")
            ],
        )
        return
    _interactive.present(
        lambda name, at: draw(name, found[name], at, rows),
        (start, moment),
        lambda widgets: [
            widgets.SelectionSlider(options=list(found), value=start, description="run"),
            widgets.IntSlider(value=moment, min=0, max=PLACES, description="moment"),
        ],
    )


def read(run: Outcome | WorldError) -> Lines:
    """The facts of a run, or of one that could not come to its end."""
    outcome = run.outcome if isinstance(run, WorldError) else run
    world = len(outcome.results)
    if not 1 <= world <= MOST or len(outcome.log) > MOST_EVENTS:
        raise ValueError(
            f"message_lines draws 1 to {MOST} ranks and {MOST_EVENTS} events, got {world} and "
            f"{len(outcome.log)}"
        )
    ends = [event.end for event in outcome.log]
    seconds = max([*ends, *outcome.clocks], default=0.0)
    if outcome.messages and not seconds:
        raise ValueError("message_lines: its messages take no time; run it with latency=1.0")
    spans: list[Span] = []
    for event in outcome.log:
        if isinstance(event, Computed):
            spans.append(Span(event.rank, event.start, event.end, "computes"))
        elif isinstance(event, Message):
            sends, gets = f"sends to {event.to}", f"receives from {event.source}"
            spans.append(Span(event.source, event.sent, event.start, f"waits: {sends}", True))
            spans.append(Span(event.source, event.start, event.end, sends))
            begun = max(event.awaited, min(event.start, event.end))
            spans.append(Span(event.to, event.awaited, begun, f"waits: {gets}", True))
            spans.append(Span(event.to, begun, max(begun, event.end), gets))
        else:
            for rank, posted in enumerate(event.posted):
                spans.append(Span(rank, posted, event.end, f"waits in {event.kind}", True))
    stuck = tuple(
        (rank, outcome.clocks[rank], words, outcome.awaits.get(rank, ()))
        for rank, words in outcome.waiting.items()
    )
    kept = tuple(span for span in spans if span.end > span.start)
    return Lines(world, seconds, tuple(outcome.messages), tuple(outcome.collectives), kept, stuck)


def draw(name: str, lines: Lines, moment: int, rows: int | None = None) -> tuple[Figure, str]:
    """The lines of a run with the cursor at a moment, and the alternative text.

    rows: how many ranks the sheet has room for, where other runs of the same sheet have more.
    """
    top = title_height("one line") + 30
    rows = rows or lines.world
    bottom = top + ROW * rows
    told = 3 if rows < 5 else 5  # lines of words
    canvas = Canvas(bottom + 22 + LINE * told + 16)
    canvas.title(sentence(name, lines))
    right = WIDTH - MARGIN - (STUCK if lines.stuck else 14)

    def px(time: float) -> float:
        return MARGIN + LEFT + (right - MARGIN - LEFT) * time / (lines.seconds or 1.0)

    def py(rank: float) -> float:
        return top + ROW * rank

    for rank in range(lines.world):
        canvas.text(MARGIN, py(rank), f"rank {rank}", size=TEXT)
        canvas.line([(px(0), py(rank)), (px(lines.seconds), py(rank))], colour=RULE, line=1.2)
    _draw_spans(canvas, lines, px, py)
    _draw_messages(canvas, lines, px, py)
    _draw_stuck(canvas, lines, px, py)
    last = py(lines.world - 1)
    if lines.seconds:
        at = px(lines.seconds * moment / PLACES)
        canvas.line([(at, top - 20), (at, last + 20)], colour=INK, line=1.4, dashed=True)
        canvas.text(MARGIN + LEFT, last + 32, "0", size=TEXT, colour=MUTED, ha="center")
        end = in_seconds(lines.seconds)
        canvas.text(px(lines.seconds), last + 32, end, size=TEXT, colour=MUTED, ha="right")
    for row, line in enumerate(wrap(in_words(lines, moment), INNER, size=TEXT)[:told]):
        canvas.text(MARGIN, bottom + 28 + LINE * row, line, size=TEXT)
    return canvas.finish(), describe(name, lines, moment)


def _draw_spans(canvas: Canvas, lines: Lines, px: Scale, py: Scale) -> None:
    """Computing as blue bars, waiting as amber ones; sends and receives are lines of their own."""
    looks = {"computes": STORAGE.colour, "waits": KERNEL.colour}
    for kind, fill in looks.items():
        some = [s for s in lines.spans if (s.waits if kind == "waits" else s.does == kind)]
        high = BAR if kind == "computes" else BAR / 2
        boxes: list[Box] = [
            (px(s.start), py(s.rank) - high / 2, px(s.end) - px(s.start), high) for s in some
        ]
        canvas.boxes(boxes, [fill] * len(boxes), edge=CARD, line=0.8)


def _draw_messages(canvas: Canvas, lines: Lines, px: Scale, py: Scale) -> None:
    """A slanted line from where a message leaves to where it comes; a bar for a collective."""
    ways = [
        [(px(m.start), py(m.source)), (px(max(m.end, m.awaited)), py(m.to))] for m in lines.messages
    ]
    canvas.lines(ways, colour=INK, line=1.6)
    for start, end in ways:
        canvas.polygon(_head(start, end), INK)
    for one in lines.collectives:
        x = px(one.end)
        path = [(x, py(0) - 10), (x, py(lines.world - 1) + 10)]
        canvas.line(path, colour=PARAMETER.colour, line=4)
    if 0 < len(lines.collectives) <= 6:
        edge = 0.0
        for one in lines.collectives:
            x = px(one.end)
            if x - 50 > edge:
                words = one.kind
                canvas.text(x, py(0) - 22, words, size=13, colour=PARAMETER.colour, ha="right")
                edge = x + 10


def _head(start: Point, end: Point) -> list[Point]:
    """The head of an arrow that ends a little before the middle of a rank's line."""
    dx, dy = end[0] - start[0], end[1] - start[1]
    length = (dx * dx + dy * dy) ** 0.5 or 1.0
    ux, uy = dx / length, dy / length
    back = end[0] - 9 * ux, end[1] - 9 * uy
    return [end, (back[0] - 4 * uy, back[1] + 4 * ux), (back[0] + 4 * uy, back[1] - 4 * ux)]


def _draw_stuck(canvas: Canvas, lines: Lines, px: Scale, py: Scale) -> None:
    """Red dashes from where a rank waits for ever, and a red arrow to whom it waits for."""
    red, edge = GRADIENT.colour, WIDTH - MARGIN
    for place, (rank, since, _, whom) in enumerate(lines.stuck):
        canvas.line([(px(since), py(rank)), (edge, py(rank))], colour=red, line=3, dashed=True)
        x = px(lines.seconds) + 14 + 12 * (place % 6)
        for other in whom:
            up = 5 if other > rank else -5
            start, end = (x, py(rank)), (x, py(other) - up)
            canvas.line([start, end], colour=red, line=1.8)
            canvas.polygon(_head(start, end), red)


def in_seconds(seconds: float) -> str:
    """A time in a unit that suits it: "3 s", "20 ms", "5 µs"."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= 0.9995 * size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} µs" if seconds else "0 s"


def sentence(name: str, lines: Lines) -> str:
    """How the run ended, as the figure's title."""
    lead = f"{name}: " if name else ""
    if lines.stuck:
        ranks = [str(rank) for rank, *_ in lines.stuck]
        if len(ranks) == 1:
            return f"{lead}rank {ranks[0]} waits for ever."
        return f"{lead}ranks {listed(ranks)} wait for ever."
    parts = []
    if lines.messages:
        size = sum(message.bytes for message in lines.messages)
        parts.append(f"{count(len(lines.messages), 'message')} of {human_bytes(size)} in all")
    if lines.collectives:
        parts.append(count(len(lines.collectives), "collective"))
    return f"{lead}{', '.join(parts) or 'nothing is sent'}, {in_seconds(lines.seconds)}."


def doing(lines: Lines, rank: int, at: float) -> str:
    """What a rank does at a time."""
    for other, since, words, _ in lines.stuck:
        if other == rank and at >= since:
            return f"{words}, for ever"
    now = [s.does for s in lines.spans if s.rank == rank and s.start <= at < s.end]
    if not now and at >= max((s.end for s in lines.spans if s.rank == rank), default=0.0):
        return "done"
    return " and ".join(dict.fromkeys(now)) or "nothing"


def in_words(lines: Lines, moment: int) -> str:
    """What every rank does at the cursor; ranks that do the same are named together."""
    at = lines.seconds * moment / PLACES
    by_words: dict[str, list[str]] = {}
    for rank in range(lines.world):
        by_words.setdefault(doing(lines, rank, at), []).append(str(rank))
    told = "; ".join(
        f"rank{'' if len(ranks) == 1 else 's'} {listed(ranks)}: {words}"
        for words, ranks in by_words.items()
    )
    return f"At {in_seconds(at)}: {told}."


def describe(name: str, lines: Lines, moment: int) -> str:
    """The alternative text: each message in order, and what happens at the cursor."""
    sent = "; ".join(
        f"{m.source} to {m.to} from {in_seconds(m.start)} to {in_seconds(m.end)}"
        for m in lines.messages[:24]
    )
    more = "; and more" if len(lines.messages) > 24 else ""
    told = f" Messages: {sent}{more}." if sent else ""
    return (
        f"Messages between {count(lines.world, 'rank')} over time. {sentence(name, lines)}{told} "
        f"{in_words(lines, moment)}"
    )
