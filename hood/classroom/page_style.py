"""The look of the pages that are one file: the class report, and each learner's feedback."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from hood.classroom.recording.marks import duration
from hood.judge.backquotes import in_code
from hood.verdict import in_points
from utils.notebook import style

TEMPLATES = Path(__file__).parent / "templates"


def render(folder: Path, template: str, **about: Any) -> str:
    """Return a page made from a template that extends ``base.html.j2``.

    Args:
        folder: of the template; what it includes may lie beside it.
        about: what the template shows. Everything is escaped.
    """
    environment = Environment(
        loader=FileSystemLoader([folder, TEMPLATES]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters = {"code": in_code, "sentence": as_sentence, "duration": duration}
    environment.filters |= filters | {"in_points": in_points, "percent": percent}
    return environment.get_template(template).render(**about, style=style)


def as_sentence(text: str) -> str:
    """Return the text with a capital first letter and a full stop."""
    text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "?", "!", "…")) else f"{text}."


def percent(value: float) -> str:
    """Return a share as a whole percentage."""
    return f"{value:.0%}".replace("%", "\N{NO-BREAK SPACE}%")
