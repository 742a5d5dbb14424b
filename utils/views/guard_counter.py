"""Calls of one compiled function: which version takes each, which refuse it, and when one is made.

A version is a graph with its guards.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from matplotlib.figure import Figure

from utils.instruments.compiling import Answer, replay
from utils.notebook.style import CARD, GRADIENT, IDLE, INK, KERNEL, MUTED, VIEW
from utils.views import _interactive
from utils.views._canvas import INNER, MARGIN, Canvas, title_height
from utils.views._numbers import count
from utils.views._slots import cut
from utils.views._text_outlines import wrap

MOST_CALLS, MOST_VERSIONS = 12, 8
ROW, TEXT = 30, 14
NAME_W, SUM_W, LINES = 150, 70, 5
Calls = Mapping[str, Answer]


@dataclass(frozen=True)
class Cell:
    """What a version is to a call: the word for it, its fill and the colour of the word."""

    word: str
    fill: str
    ink: str


MADE = Cell("made", KERNEL.colour, KERNEL.on)
TAKES = Cell("takes it", VIEW.colour, VIEW.on)
REFUSES = Cell("refuses", GRADIENT.tint, INK)
ABSENT = Cell("", IDLE, MUTED)


def guard_counter(
    function: Callable[..., Any],
    calls: Mapping[str, tuple[Any, ...]],
    *,
    call: int = 1,
    dynamic: bool | None = None,
) -> None:
    """Compile `function`, make the calls in order, and show what each version says to each call.

    calls: name -> arguments. call: the one that is told of, from 1; live, a slider moves it.
    dynamic: as in `torch.compile`. Raises ValueError for none or too many calls.
    """
    if not 0 < len(calls) <= MOST_CALLS:
        raise ValueError(f"guard_counter shows 1 to {MOST_CALLS} calls, got {len(calls)}")
    answers = replay(function, list(calls.values()), dynamic=dynamic)
    found = dict(zip(calls, answers, strict=True))
    draw(found, call)
    _interactive.present(
        lambda at: draw(found, at),
        (call,),
        lambda widgets: [widgets.IntSlider(value=call, min=1, max=len(found), description="call")],
    )


def cell(answer: Answer, version: int) -> Cell:
    """What a version is to a call."""
    if version < len(answer.refusals):
        return TAKES if answer.refusals[version] is None else REFUSES
    return MADE if version == answer.used else ABSENT


def draw(calls: Calls, call: int) -> tuple[Figure, str]:
    """The table with one call lit, and its alternative text."""
    if not 1 <= call <= len(calls):
        raise ValueError(f"call: expected 1 to {len(calls)}, got {call}")
    words = sentence(calls)
    top = title_height(words) + 38
    versions = _versions(calls)
    wide = (INNER - NAME_W - SUM_W) / max(4, versions)
    told_at = top + ROW * len(calls) + 26
    canvas = Canvas(told_at + 21 * LINES + 4)
    canvas.title(words)
    left = MARGIN + NAME_W
    for version in range(versions):
        middle = left + wide * (version + 0.5)
        head = f"graph {version + 1}" if wide > 66 else f"{version + 1}"
        canvas.text(middle, top - 16, head, size=TEXT, colour=MUTED, ha="center")
    right = MARGIN + INNER
    canvas.text(right, top - 16, "graphs", size=TEXT, colour=MUTED, ha="right")
    for row, (name, answer) in enumerate(calls.items()):
        y = top + ROW * row
        lit = row + 1 == call
        colour = INK if lit else MUTED
        canvas.text(
            MARGIN, y + ROW / 2 - 1, cut(name, NAME_W - 10, size=TEXT), size=TEXT, colour=colour
        )
        canvas.text(
            right, y + ROW / 2 - 1, f"{answer.graphs}", size=TEXT, colour=colour, ha="right"
        )
        for version in range(versions):
            kind = cell(answer, version)
            x = left + wide * version
            canvas.boxes([(x, y, wide - 2, ROW - 2)], [kind.fill], edge="none")
            if kind.word:
                word = kind.word if wide > 66 else kind.word[0]
                canvas.text(
                    x + wide / 2 - 1, y + ROW / 2 - 1, word, size=TEXT, colour=kind.ink, ha="center"
                )
    at = (left - 3, top + ROW * (call - 1) - 3, wide * versions + 4, ROW + 4)
    canvas.boxes([at], ["none"], edge=CARD, line=5)
    canvas.boxes([at], ["none"], edge=INK, line=2.2, radius=3)
    lines = wrap(in_words(calls, call), INNER, size=TEXT)
    for row, line in enumerate(lines[:LINES]):
        canvas.text(MARGIN, told_at + 6 + 21 * row, cut(line, INNER, size=TEXT), size=TEXT)
    return canvas.finish(), describe(calls, call)


def _versions(calls: Calls) -> int:
    return min(MOST_VERSIONS, max(_after(answer) for answer in calls.values()))


def _after(answer: Answer) -> int:
    """How many versions there are after a call."""
    return max(len(answer.refusals), (answer.used or 0) + 1)


def sentence(calls: Calls) -> str:
    """How many graphs the calls made, as the figure's title."""
    last = list(calls.values())[-1]
    alone = sum(answer.used is None for answer in calls.values())
    words = f"{count(len(calls), 'call')}, {count(last.graphs, 'graph')}"
    return f"{words}; {alone} ran without the compiler." if alone else f"{words}."


def in_words(calls: Calls, call: int) -> str:
    """The lit call: what each version says to it, and what comes of that."""
    name, answer = list(calls.items())[call - 1]
    told = [
        f"Graph {version + 1} refuses: {why(reason)}."
        for version, reason in enumerate(answer.refusals)
        if reason is not None
    ]
    if answer.used is None:
        told.append("No further one is made: the limit is reached, and Python runs alone.")
    elif answer.used < len(answer.refusals):
        told.append(f"Graph {answer.used + 1} takes it.")
    else:
        told.append(f"So graph {answer.used + 1} is made." if told else "The first graph is made.")
    return f"{name}: {' '.join(told)}"


def why(reason: str) -> str:
    """What a guard said, without the marks of Dynamo's name spaces: "L['x']" is x."""
    words = re.sub(r"'?[LG]\['(\w+)'\]'?", r"\1", reason).rstrip(".")
    return words if words.startswith("tensor") else f"it needs {words}"


def describe(calls: Calls, call: int) -> str:
    """The alternative text: each call with the graphs after it, and the lit call in full."""
    each = " ".join(
        f"{name}: {_taken(answer)}, {count(answer.graphs, 'graph')}."
        for name, answer in calls.items()
    )
    return f"Calls of a compiled function. {sentence(calls)} {each} {in_words(calls, call)}"


def _taken(answer: Answer) -> str:
    if answer.used is None:
        return "not compiled"
    made = answer.used >= len(answer.refusals)
    return f"graph {answer.used + 1} {'is made' if made else 'takes it'}"
