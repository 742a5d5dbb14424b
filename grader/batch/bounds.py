"""What a learner's data may cost the process that reads, compares, cleans and writes it.

Parsers refuse early what would be dear; this is for what they let through. A learner's code runs
in a room, with limits of its own; the process that grades does nothing but the grader's work. So
while it has a submission the machine's kernel counts the processor time and the memory of this very
process, and no other's: however busy the machine is, an honest submission never comes near. Time
ends the process in the midst of whatever it does, C code included, because a signal that nobody
handles needs no Python to run; what is out of memory gets a ``MemoryError``. Both become the
learner's own result, and are not tried again. Processes that this one starts inherit no timer.
"""

from __future__ import annotations

import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# Of the processor; the first submission of a run also pays for the answers to the lab.
SECONDS = 240.0
MEMORY = 2 << 30  # bytes beyond what the process had before
# How a process ends that took more: by the timer, or where a library can't do without memory.
ENDS = (-signal.SIGPROF, -signal.SIGABRT)
TOO_MUCH = "the submission's data took too much work to process"


@contextmanager
def bounded(seconds: float = SECONDS, memory: int = MEMORY) -> Iterator[None]:
    """Let the process have so much for what is done inside; more ends it."""
    before, hard = resource.getrlimit(resource.RLIMIT_DATA)
    most = _data() + memory
    if hard != resource.RLIM_INFINITY:
        most = min(most, hard)
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_DATA, (most, hard))
    signal.setitimer(signal.ITIMER_PROF, seconds)
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
