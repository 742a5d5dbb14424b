"""Limits on the processor time and memory that a learner's data may cost the grading process.

The parsers refuse expensive data early; these limits catch what they let through. They count what
this process alone uses, so however busy the machine is, an honest submission stays far below them.
Child processes do not inherit the timer.
"""

from __future__ import annotations

import resource
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

# Seconds of processor time. The first submission of a run also computes the answers of the lab.
SECONDS = 240.0
MEMORY = 2 << 30  # bytes beyond what the process had before
# How a process ends that exceeds a limit: by the timer, or by an abort in a library that cannot
# handle a failed allocation.
ENDS = (-signal.SIGPROF, -signal.SIGABRT)
TOO_MUCH = "the submission's data took too much work to process"
# Seconds until the exception is raised again: an event loop drops one that is raised in a callback.
AGAIN = 20.0


class TooMuchWork(BaseException):
    """A learner's data costs more than a submission may have. ``except Exception`` lets it by."""


@contextmanager
def bounded(seconds: float = SECONDS, memory: int = MEMORY) -> Iterator[None]:
    """Limit the enclosed code in a worker, where one submission is graded.

    When the processor time is up, a signal without a handler ends the process, even in the middle
    of C code. When ``memory`` bytes beyond what the process has now are used up, Python raises a
    ``MemoryError``.
    """
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    with _limits(seconds, memory, 0.0):
        yield


@contextmanager
def alarmed(seconds: float = SECONDS, memory: int = MEMORY) -> Iterator[None]:
    """Limit the enclosed code in a process that has to survive, as in nbgrader's commands.

    The exception is raised when Python code next runs; what the parsers let through keeps C code
    busy only for a short time. It reaches the main thread alone: others have no limit. Raises
    TooMuchWork when the code exceeds a limit, as :func:`bounded` has them.
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
    most = int(used) * 1024 + memory  # VmData is what the limit counts, in KiB
    if hard != resource.RLIM_INFINITY:
        most = min(most, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (most, hard))
    signal.setitimer(signal.ITIMER_PROF, seconds, again)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        resource.setrlimit(resource.RLIMIT_DATA, (before, hard))
