"""MiniGPT writes a sentence with the learner's layers, and the picture names these layers."""

from __future__ import annotations

from functools import cache
from typing import Any

from hood.audience import text_only
from utils import minigpt
from utils.minigpt.own_parts import PARTS, UNWRITTEN, Assembled, assemble, from_labs
from utils.notebook.style import CARD, INK, KERNEL, MUTED, PARAMETER, RULE
from utils.views._canvas import INNER, MARGIN, Canvas, Drawing
from utils.views._controls import choice
from utils.views._numbers import listed
from utils.views._text_outlines import wrap
from utils.views._view import present

SUBJECTS = ("yo", "tú", "ella", "Ana y yo", "ustedes")
VERBS = ("hablar", "comer", "vivir", "tener", "ir", "hacer", "ser", "decir")
TENSES = ("present", "past", "imperfect", "future", "progressive", "perfect")
BOX_H, ROW_H, GAP = 44, 62, 8
# The rows of the picture. Each box has a text, a part, and a width as a share of the row.
BLOCK = (
    ("norm", "LayerNorm", 2), ("query", "Linear", 2), ("key", "Linear", 2), ("value", "Linear", 2),
    ("attention", "MultiHead", 3), ("in tiles", "flash", 2), ("output", "Linear", 2),
    ("norm", "LayerNorm", 2), ("up", "Linear", 2), ("down", "Linear", 2),
)  # fmt: skip
ROWS = (
    ("", (("words", "Embedding", 9), ("positions", "Embedding", 10))),
    ("block 0", BLOCK),
    ("block 1", BLOCK),
    ("", (("norm", "LayerNorm", 4), ("head", "Linear", 9), ("softmax", "softmax", 6))),
)
NAME_W = 58


def my_minigpt(
    subject: str = "yo", verb: str = "hablar", tense: str = "past", **parts: Any
) -> None:
    """Assemble the trained MiniGPT from your layers, and let it write a sentence.

    In a live view, controls choose the subject, the verb and the tense.

    parts: classes and functions that you wrote, by their names in the labs. The classes are
        ``Linear``, ``Embedding``, ``LayerNorm`` and ``MultiHead``. The functions are ``softmax`` of
        lab 05 and ``flash`` of lab 11. Parts that you do not pass are read from your saved labs.

    A part is left out if it is missing, raises an error, or gives other numbers than PyTorch's
    part. The picture then says so. While work is graded, no picture is shown. Raises ValueError for
    another part, subject, verb or tense.
    """
    if text_only():
        return
    made = assemble(from_labs([name for name in PARTS if name not in parts]) | parts)

    @cache
    def said(subject: str, verb: str, tense: str) -> str:
        return minigpt.generate(subject, verb=verb, tense=tense, model=made.model)

    present(
        lambda *words: draw(made, said(*words)),
        choice("subject", subject, SUBJECTS),
        choice("verb", verb, VERBS),
        choice("tense", tense, TENSES),
    )


def draw(made: Assembled, said: str) -> Drawing:
    canvas = Canvas(f"“{said[:1].upper()}{said[1:]}”")
    canvas.text(MARGIN, canvas.top, sentence(made), MUTED)
    y = canvas.top + 30
    for name, boxes in ROWS:
        canvas.text(MARGIN, y + BOX_H / 2, name, MUTED, size=13)
        shares = sum(share for _, _, share in boxes)
        room = INNER - NAME_W - GAP * (len(boxes) - 1)
        x = float(MARGIN + NAME_W)
        middle = y + BOX_H / 2
        canvas.line([(x, middle), (MARGIN + INNER, middle)], RULE, 2)
        for word, part, share in boxes:
            wide = room * share / shares
            look = KERNEL if part in ("MultiHead", "flash", "softmax") else PARAMETER
            own = part in made.own
            edge = look.colour if own else RULE
            canvas.box((x, y, wide, BOX_H), look.colour if own else CARD, edge=edge, radius=6)
            ink = look.on if own else INK
            canvas.text(x + wide / 2, middle, word, ink, "center", size=13)
            x += wide + GAP
        y += ROW_H
    y += 6
    canvas.legend(
        MARGIN,
        y,
        (
            ("a layer of yours, with trained weights", PARAMETER.colour),
            ("a computation of yours", KERNEL.colour),
            ("PyTorch's", CARD, RULE),
        ),
    )
    y += 28
    told = [f"Your {name} {why}." for name, why in made.why_not.items() if why != UNWRITTEN]
    later = [
        f"{name} (lab {lab:02d})"
        for name, lab in PARTS.items()
        if name not in made.own and made.why_not.get(name, UNWRITTEN) == UNWRITTEN
    ]
    if later:
        told.append(f"Not written yet: {listed(later)}.")
    for line in (line for words in told for line in wrap(words, INNER, size=13)):
        canvas.text(MARGIN, y, line, size=13)
        y += 20
    theirs = f"Yours: {listed(sorted(made.own)) or 'nothing yet'}."
    alt = " ".join(["MiniGPT, part by part.", canvas.title, sentence(made), theirs, *told])
    return canvas.finish(y + 10, alt)


def sentence(made: Assembled) -> str:
    mine, total = made.numbers()
    if not made.own:
        return "You have not written any of its parts yet."
    if mine == total:
        return f"All {total:,} of its numbers are in layers that you wrote."
    return f"{mine:,} of its {total:,} numbers are in layers that you wrote."
