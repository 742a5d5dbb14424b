"""``python -m hood`` with less patience, or with a planned point at which its writer kills the
process.

``python -m tests.faults.patched SPEC grade LAB ...``. SPEC is JSON: ``patience`` in seconds for a
locked gradebook; ``point``, one of :data:`POINTS`, at which the process kills itself; ``at``, the
number of the submission in the order of recording; ``statement``, the number of its statement.
"""

from __future__ import annotations

import functools
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sqlalchemy import event

from hood.__main__ import main
from hood.classroom.recording import command
from hood.classroom.recording import writer as module
from hood.classroom.recording.writer import Writer

POINTS = {
    "preparing": "while it adds its table and indexes",
    "writing": "with half of the files written aside",
    "renaming": "with the old files moved away and the new ones not there",
    "renamed": "after the files are renamed, before the first statement",
    "statement": "between two statements",
    "committing": "after the last statement, before the commit",
    "committed": "after the commit, before what follows",
    "leaving": "with all recorded, before it closes the gradebook",
}


def die(*_: object) -> None:
    """End as if killed by the kernel: without a flush and without any cleanup."""
    os.kill(os.getpid(), signal.SIGKILL)


class Plan:
    """Kills this process at a point.

    Args:
        point: one of :data:`POINTS`.
        at: in which submission, from 1.
        statement: after which of the database's statements, from 1.
    """

    def __init__(self, point: str, at: int = 1, statement: int = 1):
        self._point, self._at, self._statement = point, at, statement
        self._records = self._statements = 0

    def here(self, point: str) -> bool:
        """Whether the planned point and the planned submission are reached."""
        return point == self._point and self._records == self._at

    def make(self) -> None:
        """Wrap the function that contains the point."""
        _after(module, "_write_file", lambda: self.here("writing") and die())
        _before(Writer, "_write", lambda *_: self.here("renamed") and die())
        _before(Path, "rename", self._rename)
        _before(Writer, "record", self._record)
        _after(Writer, "record", lambda: self.here("committed") and die())
        _before(Writer, "__exit__", lambda *_: self._point == "leaving" and die())
        _before(Writer, "_prepare", self._listen)

    def _record(self, *_: object) -> None:
        self._records += 1
        self._statements = 0

    def _rename(self, path: Path, target: Path) -> None:
        if self.here("renaming") and not str(target).endswith(".old"):
            die()

    def _listen(self, writer: Writer) -> None:
        engine = writer.gradebook.engine
        event.listen(engine, "after_cursor_execute", self._executed)
        event.listen(engine, "commit", lambda _: self.here("committing") and die())

    def _executed(self, *_: object) -> None:
        self._statements += 1
        in_time = self._point == "preparing" or self.here("statement")
        if in_time and self._statements == self._statement:
            die()


def _before(owner: Any, name: str, action: Callable[..., Any]) -> None:
    wrapped = getattr(owner, name)

    @functools.wraps(wrapped)
    def first(*args: Any, **kwargs: Any) -> Any:
        action(*args)
        return wrapped(*args, **kwargs)

    setattr(owner, name, first)


def _after(owner: Any, name: str, action: Callable[[], Any]) -> None:
    wrapped = getattr(owner, name)

    @functools.wraps(wrapped)
    def last(*args: Any, **kwargs: Any) -> Any:
        result = wrapped(*args, **kwargs)
        action()
        return result

    setattr(owner, name, last)


if __name__ == "__main__":
    spec = json.loads(sys.argv[1])
    if "patience" in spec:
        command.Writer = functools.partial(Writer, patience=spec.pop("patience"))
    if spec:
        Plan(**spec).make()
    sys.exit(main(sys.argv[2:]))
