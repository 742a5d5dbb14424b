"""Serve the pages on which an instructor marks written answers, question by question.

``book`` reads and writes nbgrader's gradebook, ``answer_reader`` reads learners' answers,
:mod:`hood.rubric` makes check boxes from a question's rubric, ``share`` divides the work by
sections, and ``origin`` refuses requests from other pages. ``routes`` answers the browser's
requests; ``page`` makes the pages from templates. Two servers have these pages: the service
(``hood/classroom/service``) and Jupyter's server. In Jupyter's server, the pages are an extension
(``handlers``), which only ``make teach`` loads, with the settings in ``jupyter/``.
"""

from __future__ import annotations

from typing import Any


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    """Name the module of the extension. Jupyter's server calls this."""
    return [{"module": "hood.classroom.marking"}]


def _load_jupyter_server_extension(server: Any) -> None:
    """Add the pages to a server. Jupyter's server calls this when it starts."""
    from hood.classroom.marking.handlers import add_handlers

    add_handlers(server)
