"""Limit the processor time and memory that a learner's data may cost the grading process.

The parsers refuse most of the expensive data early; these limits stop the rest. The limits count
only this process's use, so an honest submission stays far below them on a busy machine too. Child
processes do not inherit the timer.
"""

from __future__ import annotations

import resource
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

# seconds of processor time for the grader's own work on a submission. For the first submission of a
# run, this includes the computation of the lab's answers
SECONDS = 240.0
MEMORY = 2 << 30  # bytes of memory for the grader's own work on a submission
# Exit statuses of a process that exceeds a limit: killed by the timer, or aborted in a library that
# cannot handle a failed allocation.
ENDS = (-signal.SIGPROF, -signal.SIGABRT)
TOO_MUCH = "the submission's data took too much work to process"
# Seconds until the exception is raised again: an event loop drops an exception that is raised in a
# callback.
AGAIN = 20.0


class TooMuchWork(BaseException):
    """A learner's data cost more than the limit. ``except Exception`` does not catch this error."""


@contextmanager
def bounded(seconds: float = SECONDS, memory: int = MEMORY) -> Iterator[None]:
    """Limit the enclosed code in a worker, where one submission is graded.

    When the processor time is up, a signal without a handler ends the process, even in the middle
    of C code. If the process would use more than ``memory`` bytes in addition to its present
    memory, Python raises a ``MemoryError``.
    """
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    with _limits(seconds, memory, 0.0):
        yield


@contextmanager
def alarmed(seconds: float = SECONDS, memory: int = MEMORY) -> Iterator[None]:
    """Limit the enclosed code in a process that must survive, for example nbgrader's commands.

    Raises TooMuchWork if the code exceeds a limit of :func:`bounded`. The exception is raised when
    Python code next runs. Python code runs again soon, because data that the parsers accept keeps C
    code busy only for a short time. In a thread other than the main thread, nothing is limited.
    """

    def stop(number: int, frame: FrameType | None) -> None:
        raise TooMuchWork

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGPROF, stop)
    try:
        with _limits(seconds, memory, AGAIN):
            yield
    except MemoryError:
        raise TooMuchWork from None
    finally:
        signal.signal(signal.SIGPROF, before)


@contextmanager
def _limits(seconds: float, memory: int, again: float) -> Iterator[None]:
    before, hard = resource.getrlimit(resource.RLIMIT_DATA)
    status = Path("/proc/self/status").read_text()
    used = next(line.split()[1] for line in status.splitlines() if line.startswith("VmData:"))
    most = int(used) * 1024 + memory  # the limit counts VmData, which is in KiB
    if hard != resource.RLIM_INFINITY:
        most = min(most, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (most, hard))
    signal.setitimer(signal.ITIMER_PROF, seconds, again)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        resource.setrlimit(resource.RLIMIT_DATA, (before, hard))
