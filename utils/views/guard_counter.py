"""Calls of one compiled function: the version that takes a call, and the versions that refuse it.

If every version refuses a call, a new version is made. A version is a graph with its guards.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from utils.instruments.compiling import Answer, replay
from utils.notebook.style import GRADIENT, IDLE, INK, KERNEL, MUTED, VIEW
from utils.views._canvas import INNER, LINE, MARGIN, RIGHT, Canvas, Drawing
from utils.views._controls import slider
from utils.views._numbers import count, require
from utils.views._text_outlines import cut
from utils.views._view import present

MOST_CALLS, MOST_VERSIONS = 12, 8
ROW = 30
NAME_W, SUM_W, LINES = 150, 70, 5
# The role of a version in a call: the word for it, its fill and the colour of the word.
MADE = ("made", KERNEL.colour, KERNEL.on)
TAKES = ("takes it", VIEW.colour, VIEW.on)
REFUSES = ("refuses", GRADIENT.tint, INK)
ABSENT = ("", IDLE, MUTED)


def guard_counter(
    function: Callable[..., Any], calls: Mapping[str, tuple[Any, ...]], *, call: int = 1
) -> None:
    """Compile `function`, make the calls in order, and show which versions refuse each call.

    In a live view, a slider chooses the described call.

    calls: name -> arguments.
    call: the number of the call that is described first, from 1.

    Raises ValueError for no calls or too many calls.
    """
    require("guard_counter", len(calls), "calls", MOST_CALLS)
    moved = slider("call", call, 1, len(calls))
    answers = replay(function, list(calls.values()))
    found = dict(zip(calls, answers, strict=True))
    present(lambda at: draw(found, at), moved)


def cell(answer: Answer, version: int) -> tuple[str, str, str]:
    if version < len(answer.refusals):
        return TAKES if answer.refusals[version] is None else REFUSES
    return MADE if version == answer.used else ABSENT


def draw(calls: Mapping[str, Answer], call: int) -> Drawing:
    answers = list(calls.values())
    alone = sum(answer.used is None for answer in answers)
    words = f"{count(len(calls), 'call')}, {count(answers[-1].graphs, 'graph')}"
    canvas = Canvas(f"{words}; {alone} ran without the compiler." if alone else f"{words}.")
    top, left = canvas.top + 38, MARGIN + NAME_W
    most = max(max(len(answer.refusals), (answer.used or 0) + 1) for answer in answers)
    versions = range(min(MOST_VERSIONS, most))
    wide = (INNER - NAME_W - SUM_W) / max(4, len(versions))
    for version in versions:
        head = f"graph {version + 1}" if wide > 66 else f"{version + 1}"
        canvas.text(left + wide * (version + 0.5), top - 16, head, MUTED, "center")
    canvas.text(RIGHT, top - 16, "graphs", MUTED, "right")
    parts = [f"Calls of a compiled function. {canvas.title}"]
    for row, (name, answer) in enumerate(calls.items()):
        y = top + ROW * row
        colour = INK if row + 1 == call else MUTED
        canvas.text(MARGIN, y + ROW / 2 - 1, cut(name, NAME_W - 10), colour)
        canvas.text(RIGHT, y + ROW / 2 - 1, f"{answer.graphs}", colour, "right")
        for version in versions:
            word, fill, ink = cell(answer, version)
            x = left + wide * version
            canvas.box((x, y, wide - 2, ROW - 2), fill)
            word = word if wide > 66 else word[:1]
            canvas.text(x + wide / 2 - 1, y + ROW / 2 - 1, word, ink, "center")
        parts.append(f"{name}: {_taken(answer)}, {count(answer.graphs, 'graph')}.")
    canvas.frame((left - 3, top + ROW * (call - 1) - 3, wide * len(versions) + 4, ROW + 4))
    told_at = top + ROW * len(calls) + 26
    told = in_words(*list(calls.items())[call - 1])
    canvas.paragraph(told_at + 6, told, LINES)
    return canvas.finish(told_at + LINE * LINES + 4, f"{' '.join(parts)} {told}")


def _taken(answer: Answer) -> str:
    if answer.used is None:
        return "not compiled"
    made = answer.used >= len(answer.refusals)
    return f"graph {answer.used + 1} {'is made' if made else 'takes it'}"


def in_words(name: str, answer: Answer) -> str:
    told = [
        f"Graph {version + 1} refuses: {why(reason)}."
        for version, reason in enumerate(answer.refusals)
        if reason is not None
    ]
    if answer.used is None:
        told.append("No further graph is made: the limit is reached, and Python runs alone.")
    elif answer.used < len(answer.refusals):
        told.append(f"Graph {answer.used + 1} takes it.")
    else:
        told.append(f"So graph {answer.used + 1} is made." if told else "The first graph is made.")
    return f"{name}: {' '.join(told)}"


def why(reason: str) -> str:
    """Return a guard's message in which Dynamo's names are short: "L['x']" becomes "x"."""
    words = re.sub(r"'?[LG]\['(\w+)'\]'?", r"\1", reason).rstrip(".")
    return words if words.startswith("tensor") else f"it needs {words}"
