"""Pages on which an instructor marks answers in words, question by question.

``book`` reads and writes nbgrader's gradebook, ``answer_reader`` reads what learners wrote,
:mod:`hood.rubric` makes boxes of a question's rubric, ``share`` divides the work by sections,
``origin`` says which requests of a browser are refused. ``routes`` answer the browser, with
``page`` and its templates, for two servers: the service (``hood/classroom/service``), and
Jupyter's, which has them as an extension (``handlers``) that only ``make teach`` loads, by the
settings in ``jupyter/``.
"""

from __future__ import annotations

from typing import Any


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    """Return which module is the extension; Jupyter's server asks."""
    return [{"module": "hood.classroom.marking"}]


def _load_jupyter_server_extension(server: Any) -> None:
    """Add the pages to a server, which calls this when it starts."""
    from hood.classroom.marking.handlers import add_handlers

    add_handlers(server)
