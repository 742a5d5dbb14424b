"""nbgrader's exporters and preprocessors of this project: the steps of grading and feedback.

``exporter`` has ``nbgrader autograde`` call the batch. Before learners' code runs, ``sanitize``
(with ``links``) makes what they wrote safe to show, as it does again with the outputs of
``execute``. For feedback, ``grades`` reads the marks, ``feedback`` removes what a learner must not
read (``self_judged``: also what plain hidden tests would print), and ``page`` has
:mod:`grader.results.feedback` make the page.
``release`` is a step of making a release.

``nbgrader_config.py`` names them as attributes of this package. Each is imported at its first use,
so that a command that needs no torch, such as feedback, does not import it.
"""

import importlib
from typing import Any

STEPS = {
    "CleanFeedback": "feedback",
    "Execute": "execute",
    "FeedbackExporter": "page",
    "GetGrades": "grades",
    "Release": "release",
    "Sanitize": "sanitize",
    "SubmissionExporter": "exporter",
}
__all__ = list(STEPS)


def __getattr__(name: str) -> Any:
    if name not in STEPS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{STEPS[name]}"), name)
