"""Drills that answer without a kernel: their paper form becomes a form that a script judges."""

from __future__ import annotations

import base64
import json
import re
from typing import Any

DRILL = re.compile(
    r'<div role="note" data-drill="([^"]*)" style="[^"]*"><div>(.*?)</div>(.*)</div>'
)
ANSWER = re.compile(
    r"<details[^>]*><summary[^>]*>(.*?)</summary><div[^>]*>(.*?)</div></details>", re.DOTALL
)


def is_drill_html(markup: str) -> bool:
    """Return whether an HTML output is the paper form of a drill."""
    return DRILL.fullmatch(markup) is not None


def form(markup: str) -> str:
    """Return the form for a drill's paper form, with what the script answers encoded in it.

    Encoded, because a reader who searches the page, or looks at its source, should find no answer.
    """
    drill = DRILL.fullmatch(markup)
    assert drill is not None
    judged: dict[str, Any] = json.loads(base64.b64decode(drill[1]))
    answers = ANSWER.findall(drill[3])
    if "answer" in judged:
        judged["reason"], *reasons = (words for _, words in answers)
        judged["wrong"] = list(zip(judged["wrong"], reasons, strict=True))
        controls = number_controls(judged["unit"])
    else:
        judged["options"] = [words for _, words in answers]
        controls = "".join(f'<button type="button">{option}</button>' for option, _ in answers)
    encoded = base64.b64encode(json.dumps(judged).encode()).decode()
    return (
        f'<form class="drill" data-drill="{encoded}"><p class="question">{drill[2]}</p>'
        f'<div class="answers">{controls}</div><output></output></form>'
    )


def number_controls(unit: str) -> str:
    """Return the field for a number, and its button."""
    hint = f"a number, in {unit}" if unit else "a number"
    return (
        f'<input type="text" inputmode="decimal" autocomplete="off" aria-label="{hint}" '
        f'placeholder="{hint}"><button type="submit">Check</button>'
    )
