"""A table of the proofs that refuse each version of an operator, with their errors."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from utils.notebook.style import GRADIENT, INK, MUTED, VIEW
from utils.views._canvas import INNER, LINE, MARGIN, Canvas, Drawing
from utils.views._controls import choice
from utils.views._numbers import count, listed, require
from utils.views._text_outlines import cut, wrap
from utils.views._view import present

MOST_VERSIONS, MOST_PROOFS = 12, 7
ROW, HEAD, SMALL = 30, 19, 13
LABEL_W, LINES = 196, 4  # the width of the versions' names; the lines of text below the table
MOST_WORDS = 340  # letters of the longest text of a refusal
Refusals = Mapping[str, Mapping[str, str | None]]


def proof_matrix(
    versions: Mapping[str, Any], proofs: Mapping[str, Callable[[Any], object]]
) -> None:
    """Try each proof once on each version, and show the refusals.

    In a live view, controls choose the version and the proof whose result is shown in words.

    versions: name -> the operator, or another object that the proofs take.
    proofs: name -> a function that raises an error when it finds a fault. If the function returns,
        the version has passed.

    Raises ValueError for no or too many versions or proofs.
    """
    require("proof_matrix", len(versions), "versions", MOST_VERSIONS)
    require("proof_matrix", len(proofs), "proofs", MOST_PROOFS)
    table = run(versions, proofs)
    version, proof = first_refusal(table)
    present(
        lambda version, proof: draw(table, version, proof),
        choice("version", version, list(table)),
        choice("proof", proof, list(proofs)),
    )


def run(
    versions: Mapping[str, Any], proofs: Mapping[str, Callable[[Any], object]]
) -> dict[str, dict[str, str | None]]:
    """Return each proof's result for each version: None for a pass, or the error's first words."""
    return {
        name: {proof: refusal(check, version) for proof, check in proofs.items()}
        for name, version in versions.items()
    }


def refusal(check: Callable[[Any], object], version: Any) -> str | None:
    """Return the error that `check` raises for a version, in one line, or None."""
    aside = io.StringIO()  # the output that a proof prints is not part of its result
    with (
        contextlib.redirect_stderr(aside),
        contextlib.redirect_stdout(aside),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        try:
            check(version)
        except Exception as error:
            said = f"{type(error).__name__}: {' '.join(str(error).split())}"
            return said if len(said) <= MOST_WORDS else f"{said[:MOST_WORDS]}…"
    return None


def first_refusal(table: Refusals) -> tuple[str, str]:
    """Return the first refused version and the proof that refuses it.

    If no version is refused, the result is the first version and the first proof.
    """
    cells = [(version, proof) for version, row in table.items() for proof in row]
    refused = (cell for cell in cells if table[cell[0]][cell[1]] is not None)
    return next(refused, cells[0])


def draw(table: Refusals, version: str, proof: str) -> Drawing:
    names, proofs = list(table), list(table[version])
    canvas = Canvas(sentence(table))
    left, wide = MARGIN + LABEL_W, (INNER - LABEL_W) / len(proofs)
    xs = [left + wide * (k + 0.5) - 1 for k in range(len(proofs))]
    heads = [wrap(name, wide - 4, size=SMALL) for name in proofs]
    top = canvas.top + 16 + HEAD * max(map(len, heads))
    for x, one, lines in zip(xs, proofs, heads, strict=True):
        ink = INK if one == proof else MUTED
        for row, line in enumerate(reversed(lines)):
            canvas.text(x, top - 14 - HEAD * row, line, ink, "center", size=SMALL)
    parts = [f"Versions of an operator against proofs: {listed(proofs)}. {canvas.title}"]
    for row, name in enumerate(names):
        y = top + ROW * row
        middle = y + ROW / 2 - 1
        canvas.text(MARGIN, middle, cut(name, LABEL_W - 10), INK if name == version else MUTED)
        for x, one in zip(xs, proofs, strict=True):
            cell = "passes", VIEW.tint, INK
            if table[name][one] is not None:
                cell = "refuses", GRADIENT.colour, GRADIENT.on
            words, fill, ink = cell
            canvas.box((x + 1 - wide / 2, y, wide - 2, ROW - 2), fill)
            canvas.text(x, middle, words, ink, "center", size=SMALL)
        found = _refusing(table, name)
        parts.append(f"{name}: {f'refused by {listed(found)}' if found else 'passes all'}.")
    at = left + wide * proofs.index(proof) - 2, top + ROW * names.index(version) - 2
    canvas.frame((*at, wide + 2, ROW + 2))
    told_at = top + ROW * len(names) + 24
    told = in_words(table, version, proof)
    canvas.paragraph(told_at + 6, told, LINES)
    return canvas.finish(told_at + LINE * LINES + 8, " ".join([*parts, told]))


def _refusing(table: Refusals, version: str) -> list[str]:
    return [proof for proof, said in table[version].items() if said is not None]


def sentence(table: Refusals) -> str:
    refused = [_refusing(table, name) for name in table if _refusing(table, name)]
    if not refused:
        return f"{count(len(table), 'version')}, and no proof refuses any of them."
    proofs = list(next(iter(table.values())))
    seen = {proof: sum(proof in found for found in refused) for proof in proofs}
    best = max(seen, key=seen.__getitem__)
    if seen[best] == len(refused):
        return f"{best} refuses {count(len(refused), 'version')}, as many as all proofs together."
    return f"No proof refuses all: the best, {best}, refuses {seen[best]} of {len(refused)}."


def in_words(table: Refusals, version: str, proof: str) -> str:
    said = table[version][proof]
    if said is not None:
        return f"{version}, {proof}: {said}"
    others = _refusing(table, version)
    seen = f"It is refused by {listed(others)}." if others else "No proof refuses it."
    return f"{version}, {proof}: passes. {seen}"
