"""Digests of submissions, which tell whether two are the same to a sandbox.

Hidden cases are drawn anew for each run. The cases of an earlier grading are used again only for
the same submission. Otherwise a learner could hand in code that prints its inputs, and then their
answers.
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
    """Return the SHA-256 of everything that a sandbox can see of a submission.

    nbgrader's timestamp is left out: it is parsed outside the sandbox and never shown inside.

    Args:
        notebooks: bytes of each notebook by name, or why there are none.
        files: the other files, by relative path.
        notes: further texts that make a difference.
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
    """Return the SHA-256 of texts, each followed by a zero byte."""
    found = hashlib.sha256()
    for part in parts:
        found.update(part.encode("utf-8", "surrogatepass") + b"\0")
    return found.hexdigest()
