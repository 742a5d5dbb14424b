"""The steps that a notebook goes through when it is graded, as nbgrader runs them.

``nbgrader_config.py`` names them as attributes of this package. Each is imported when it is first
asked for: feedback needs no torch, and a command of nbgrader's should not wait for it.
"""

import importlib
from typing import Any

STEPS = {
    "CleanFeedback": "feedback",
    "ClearMarks": "marks",
    "Execute": "execute",
    "FeedbackExporter": "page",
    "Sanitize": "sanitize",
    "SubmissionExporter": "exporter",
}
__all__ = list(STEPS)


def __getattr__(name: str) -> Any:
    """The step of that name."""
    if name not in STEPS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{STEPS[name]}"), name)
