"""Versions of an operator against proofs of it: which proof refuses which version, and how."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure

from utils.notebook.style import CARD, GRADIENT, INK, MUTED, VIEW
from utils.views import _interactive
from utils.views._canvas import INNER, MARGIN, Canvas, title_height
from utils.views._numbers import count, listed
from utils.views._slots import cut
from utils.views._text_outlines import wrap

MOST_VERSIONS, MOST_PROOFS = 12, 7
ROW, HEAD, TEXT, SMALL = 30, 19, 14, 13
LABEL_W, LINES = 196, 4  # the versions' names; the words below the table
MOST_WORDS = 340  # letters that are kept of a refusal
Refusals = Mapping[str, Mapping[str, str | None]]


def proof_matrix(
    versions: Mapping[str, Any], proofs: Mapping[str, Callable[[Any], object]]
) -> None:
    """Try each proof on each version, once, and show which refuse; live, read any refusal.

    Args:
        versions: name -> the operator, or whatever the proofs take.
        proofs: name -> a function that raises when it finds something wrong. A proof that returns,
            whatever it returns, has passed.

    Raises:
        ValueError: for none or too many.
    """
    if not (0 < len(versions) <= MOST_VERSIONS and 0 < len(proofs) <= MOST_PROOFS):
        raise ValueError(
            f"proof_matrix shows 1 to {MOST_VERSIONS} versions and 1 to {MOST_PROOFS} proofs, "
            f"got {len(versions)} and {len(proofs)}"
        )
    table = run(versions, proofs)
    version, proof = first_refusal(table)
    _interactive.present(
        lambda version, proof: draw(table, version, proof),
        (version, proof),
        lambda widgets: [
            widgets.SelectionSlider(options=list(table), value=version, description="version"),
            widgets.SelectionSlider(options=list(proofs), value=proof, description="proof"),
        ],
    )


def run(
    versions: Mapping[str, Any], proofs: Mapping[str, Callable[[Any], object]]
) -> dict[str, dict[str, str | None]]:
    """What each proof says of each version: None where it passes, else its first words."""
    return {
        name: {proof: refusal(check, version) for proof, check in proofs.items()}
        for name, version in versions.items()
    }


def refusal(check: Callable[[Any], object], version: Any) -> str | None:
    """What `check` raises on a version, in one line; None when it raises nothing."""
    aside = io.StringIO()  # what a proof prints besides is no part of its verdict
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
    """Return the first version that is refused, and by which proof; else the first of both."""
    for version, row in table.items():
        for proof, said in row.items():
            if said is not None:
                return version, proof
    return next((version, proof) for version, row in table.items() for proof in row)


def draw(table: Refusals, version: str, proof: str) -> tuple[Figure, str]:
    """Return the table with one cell lit and its refusal in words, and the alternative text."""
    names, proofs = list(table), list(next(iter(table.values())))
    words = sentence(table)
    wide = (INNER - LABEL_W) / len(proofs)
    heads = [wrap(name, wide - 4, size=SMALL) for name in proofs]
    high = max(map(len, heads))
    top = title_height(words) + 8 + HEAD * high + 8
    told_at = top + ROW * len(names) + 24
    canvas = Canvas(told_at + 21 * LINES + 8)
    canvas.title(words)
    left = MARGIN + LABEL_W
    for k, lines in enumerate(heads):
        for row, line in enumerate(reversed(lines)):
            canvas.text(
                left + wide * (k + 0.5) - 1,
                top - 14 - HEAD * row,
                line,
                size=SMALL,
                colour=INK if proofs[k] == proof else MUTED,
                ha="center",
            )
    boxes, fills = [], []
    for row, name in enumerate(names):
        y = top + ROW * row
        canvas.text(
            MARGIN,
            y + ROW / 2 - 1,
            cut(name, LABEL_W - 10, size=TEXT),
            size=TEXT,
            colour=INK if name == version else MUTED,
        )
        for k, one in enumerate(proofs):
            passes = table[name][one] is None
            boxes.append((left + wide * k, y, wide - 2, ROW - 2))
            fills.append(VIEW.tint if passes else GRADIENT.colour)
            canvas.text(
                left + wide * (k + 0.5) - 1,
                y + ROW / 2 - 1,
                "passes" if passes else "refuses",
                size=SMALL,
                colour=INK if passes else GRADIENT.on,
                ha="center",
            )
    canvas.boxes(boxes, fills, edge="none")
    at = left + wide * proofs.index(proof) - 2, top + ROW * names.index(version) - 2
    canvas.boxes([(*at, wide + 2, ROW + 2)], ["none"], edge=CARD, line=5)
    canvas.boxes([(*at, wide + 2, ROW + 2)], ["none"], edge=INK, line=2.2, radius=3)
    lines = wrap(in_words(table, version, proof), INNER, size=TEXT)
    for row, line in enumerate(lines[:LINES]):
        canvas.text(MARGIN, told_at + 6 + 21 * row, cut(line, INNER, size=TEXT), size=TEXT)
    return canvas.finish(), describe(table, version, proof, words)


def sentence(table: Refusals) -> str:
    """What the table shows, as the figure's title."""
    refused = [row for row in table.values() if any(row.values())]
    proofs = list(next(iter(table.values())))
    if not refused:
        return f"{count(len(table), 'version')}, and no proof refuses any."
    seen = {proof: sum(row[proof] is not None for row in refused) for proof in proofs}
    best = max(seen, key=lambda proof: seen[proof])
    if seen[best] == len(refused):
        return f"{best} refuses all {len(refused)} that any proof refuses."
    return f"No proof sees all: the best, {best}, sees {seen[best]} of {len(refused)}."


def in_words(table: Refusals, version: str, proof: str) -> str:
    """Return the lit cell."""
    said = table[version][proof]
    if said is not None:
        return f"{version}, {proof}: {said}"
    others = [name for name, words in table[version].items() if words is not None]
    seen = f"It is refused by {listed(others)}." if others else "No proof refuses it."
    return f"{version}, {proof}: passes. {seen}"


def describe(table: Refusals, version: str, proof: str, words: str) -> str:
    """The alternative text: each version with the proofs that refuse it, and the lit cell."""
    proofs: Sequence[str] = list(next(iter(table.values())))
    parts = [f"Versions of an operator against proofs: {listed(proofs)}. {words}"]
    for name, row in table.items():
        found = [one for one, said in row.items() if said is not None]
        parts.append(f"{name}: {f'refused by {listed(found)}' if found else 'passes all'}.")
    parts.append(in_words(table, version, proof))
    return " ".join(parts)
