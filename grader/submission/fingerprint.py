"""When a submission is the same as one before: when all that a sandbox can see of it is.

Hidden cases are drawn anew for each grading. Those of an earlier grading are asked again only where
somebody says so (``grade --regrade``, ``SubmissionExporter.same_cases``) and the submission is the
same: otherwise a learner could hand in code that shows its inputs, and then their answers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

from grader.submission.files import TIMESTAMP
from grader.submission.notebook import Unreadable


def digest(
    notebooks: Mapping[str, bytes | Unreadable],
    files: Mapping[str, bytes],
    notes: Iterable[str] = (),
) -> str:
    """SHA-256 of what a sandbox can see of a submission.

    nbgrader's timestamp is parsed and no sandbox shows it, so a submission with another one is the
    same.

    Args:
        notebooks: by name.
        files: the others, by relative path.
        notes: what else makes a difference.
    """
    parts = []
    for name, data in notebooks.items():
        shown = hashlib.sha256(data).hexdigest() if isinstance(data, bytes) else str(data)
        parts.append(f"notebook {name} {shown}")
    for name, data in sorted(files.items()):
        if name != TIMESTAMP:
            parts.append(f"file {name} {hashlib.sha256(data).hexdigest()}")
    return digest_of([*parts, *notes])


def digest_of(parts: Iterable[str]) -> str:
    """SHA-256 of texts, each with its end."""
    found = hashlib.sha256()
    for part in parts:
        found.update(part.encode("utf-8", "surrogatepass") + b"\0")
    return found.hexdigest()
