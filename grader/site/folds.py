"""Predictions: what follows a *Predict* is folded until the reader opens it.

The answer is the output of the next code cell and the paragraph after it. The code stays in sight,
since it is what the reader predicts. For JupyterLab, `grader.build.predictions` folds the same in
two pieces, and takes its words apart again where a notebook is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from docutils import nodes
from markdown_it.token import Token

from grader.build import predictions

# The types of the tokens that stand for a code cell's source, its outputs, and a drill.
CODE, OUTPUTS, DRILL = "cell_code", "cell_outputs", "cell_drill"
SUMMARY = {"en": "Show what happens", "es": "Mostrar qué ocurre"}


class Fold(nodes.General, nodes.Element):
    """What a prediction hides."""


def visit_fold(self: Any, node: Fold) -> None:
    """Begin the fold in HTML."""
    words = SUMMARY.get(node["language"], SUMMARY["en"])
    self.body.append(f'<details class="prediction"><summary>{words}</summary>\n')


def depart_fold(self: Any, node: Fold) -> None:
    """End the fold in HTML."""
    self.body.append("</details>\n")


def folded(tokens: Iterable[Token], language: str) -> list[Token]:
    """Return the tokens with a fold around each answer to a prediction.

    Args:
        tokens: those of a page: blocks of markdown, CODE, OUTPUTS and DRILL.
    """
    found: list[Token] = []
    asked = opened = listing = False  # listing: the answer ends with the next block

    for block in blocks(tokens):
        kind = block[0].type
        if opened and not goes_on(block, listing):
            found.append(Token("fold_close", "", -1))
            opened = listing = False
        if asked and kind == OUTPUTS:
            found.append(Token("fold_open", "", 1, attrs={"language": language}))
            asked, opened = False, True
        found += block
        if opened and kind not in (CODE, OUTPUTS):
            listing = not listing and text_of(block).rstrip().endswith(":")
            if not listing:
                found.append(Token("fold_close", "", -1))
                opened = False
        elif kind != CODE:
            # what is said between question and answer does not answer
            asked = asks(block) or (asked and kind not in ("heading_open", DRILL))
    if opened:
        found.append(Token("fold_close", "", -1))
    return found


def goes_on(block: Sequence[Token], listing: bool) -> bool:
    """Return whether an answer that has begun goes on with this block."""
    kind = block[0].type
    if kind in ("heading_open", DRILL) or asks(block):
        return False
    return kind != CODE if listing else kind in (CODE, OUTPUTS, "paragraph_open")


def asks(block: Sequence[Token]) -> bool:
    """Return whether a block is a paragraph that asks for a prediction."""
    return predictions.asks(text_of(block))


def text_of(block: Sequence[Token]) -> str:
    """Return the markdown of a paragraph; nothing for another block."""
    return block[1].content if block[0].type == "paragraph_open" else ""


def blocks(tokens: Iterable[Token]) -> list[list[Token]]:
    """Return the tokens in groups, one for each block at the top level."""
    found: list[list[Token]] = []
    depth = 0
    for token in tokens:
        if depth == 0:
            found.append([])
        found[-1].append(token)
        depth += token.nesting
    return found
