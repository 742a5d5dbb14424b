"""The look of the two pages that are single files: the class report and a learner's feedback."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from hood.classroom.formats.words import duration, percent
from hood.judge.backquotes import as_sentence, in_code
from hood.palette import palette
from hood.verdict import in_points

TEMPLATES = Path(__file__).parent / "templates"


def render(folder: Path, template: str, **about: Any) -> str:
    """Return a page made from a template that extends ``base.html.j2``.

    Args:
        folder: the folder of the template and of the templates that it includes.
        about: the template's values, which are escaped.
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
