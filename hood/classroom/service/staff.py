"""Grade a lab for teachers, with the same command and the same lock as in a terminal."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path

from hood import UserError
from hood.phase_paths import environment_with

TAIL = 1 << 13  # bytes of the command's output that are shown


@dataclass(frozen=True)
class Grading:
    """The progress of the grading of one lab.

    Attributes:
        lab: the lab that is graded.
        status: the command's exit status; None while it runs.
        said: the last part of the command's output.
    """

    lab: str
    status: int | None
    said: str


class Gradings:
    """Runs ``python -m hood grade``, one lab at a time.

    Recorded grades are not redone: only a command in a terminal can redo them. If the service ends,
    the command goes on. If the command is killed, the next call continues where the command
    stopped.
    """

    def __init__(self, root: Path):
        self._root = root
        self._lock = threading.Lock()
        self._running: subprocess.Popen[bytes] | None = None
        self._lab = ""
        # a file, not a pipe, so that the command can write after the service has ended
        self._log = tempfile.TemporaryFile()  # noqa: SIM115

    def start(self, lab: str) -> Grading:
        """Start grading the ungraded submissions to a lab.

        Raises UserError if another lab is being graded at this time.
        """
        with self._lock:
            if self._running is not None and self._running.poll() is None:
                raise UserError(f"{self._lab} is being graded; wait until it is finished")
            self._lab = lab
            self._log.truncate(0)
            self._log.seek(0)
            self._running = subprocess.Popen(
                [sys.executable, "-m", "hood", "grade", lab, "--only-new"],
                cwd=self._root,
                env=environment_with(self._root),
                stdin=subprocess.DEVNULL,
                stdout=self._log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        return self.now()

    def now(self) -> Grading:
        """Return the progress of the grading that was started last."""
        status = self._running.poll() if self._running else 0
        size = os.fstat(self._log.fileno()).st_size
        end = os.pread(self._log.fileno(), TAIL, max(0, size - TAIL))
        return Grading(self._lab, status, end.decode(errors="replace"))
