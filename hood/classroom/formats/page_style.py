"""The look of the pages that are one file: the class report, and each learner's feedback."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from hood.classroom.formats.words import as_sentence, duration, percent
from hood.course import course, course_folder
from hood.judge.backquotes import in_code
from hood.verdict import in_points

TEMPLATES = Path(__file__).parent / "templates"
# Colours by their role; a course's own stand below [palette] in its course.toml.
PALETTE = {
    "ink": "#1f2a37",
    "muted": "#5b6675",
    "rule": "#d3d9e0",
    "card": "#fdfdfb",  # the ground that the others can be read on
    "link": "#1f6aa5",
    "full": "#0b7a5e",  # of a bar: all points
    "on_full": "#ffffff",  # text on it
    "alarm": "#c2471b",
    "on_alarm": "#ffffff",
    "hint": "#faebc6",  # a pale ground
    "right": "#2e7d32",
    "wrong": "#c62838",
}


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
    return environment.get_template(template).render(**about, palette=palette())


def palette() -> dict[str, str]:
    """Return the colours of pages, by their role: the course's own, else the engine's."""
    return {**PALETTE, **course(course_folder()).palette}
