"""What a learner's data may cost the process that reads, compares, cleans and writes it.

Parsers refuse early what would be dear; this is for what they let through. A learner's code runs
in a sandbox, with limits of its own; the process that grades does nothing but the grader's work. So
while it has a submission the machine's kernel counts the processor time and the memory of this very
process, and no other's: however busy the machine is, an honest submission never comes near. Time
ends the process in the midst of whatever it does, C code included, because a signal that nobody
handles needs no Python to run; what is out of memory gets a ``MemoryError``. Both become the
learner's own result, and are not tried again. Processes that this one starts inherit no timer.
"""

from __future__ import annotations

import resource
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

# Of the processor; the first submission of a run also pays for the answers to the lab.
SECONDS = 240.0
MEMORY = 2 << 30  # bytes beyond what the process had before
# How a process ends that took more: by the timer, or where a library can't do without memory.
ENDS = (-signal.SIGPROF, -signal.SIGABRT)
TOO_MUCH = "the submission's data took too much work to process"
# An event loop drops what is raised in one of its callbacks: so it is raised once more.
AGAIN = 20.0


class TooMuchWork(BaseException):
    """What a learner's data asks for is more than one submission may have.

    No ``Exception``, so that whoever expects errors of a learner's code does not take it for one.
    """


@contextmanager
def bounded(seconds: float = SECONDS, memory: int = MEMORY) -> Iterator[None]:
    """Let the process have so much for what is done inside; more ends it."""
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    with _limits(seconds, memory, 0.0):
        yield


@contextmanager
def alarmed(seconds: float = SECONDS, memory: int = MEMORY) -> Iterator[None]:
    """The same for a process that goes on, such as ``nbgrader autograde`` or formgrader's.

    Nothing but its end stops C code; so here time is up as soon as Python runs again, which what
    the parsers let through soon does. Only a main thread can be stopped so.

    Raises:
        TooMuchWork: when it takes more.
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
    most = _data() + memory
    if hard != resource.RLIM_INFINITY:
        most = min(most, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (most, hard))
    signal.setitimer(signal.ITIMER_PROF, seconds, again)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        resource.setrlimit(resource.RLIMIT_DATA, (before, hard))


def _data() -> int:
    """Bytes that count towards the limit now."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmData:"):
            return int(line.split()[1]) * 1024
    raise OSError("/proc/self/status has no line VmData")
