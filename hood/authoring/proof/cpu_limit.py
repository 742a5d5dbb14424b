"""A limit of processor time for an author's stored code, which runs in this process."""

from __future__ import annotations

import contextlib
import gc
import signal
from collections.abc import Iterator

from hood.judge.connection.rpc_client import OutOfTime


@contextlib.contextmanager
def limited_to(seconds: float) -> Iterator[list[int]]:
    """End a block silently after some seconds of CPU time.

    The yielded list is empty until the block is ended.

    Ctrl-C inside the block still raises KeyboardInterrupt. Garbage collection is off in the block,
    because it can take longer than the block itself.
    """
    rang: list[int] = []

    def ring(number: int, frame: object) -> None:
        rang.append(number)
        raise KeyboardInterrupt

    collects, before = gc.isenabled(), signal.signal(signal.SIGPROF, ring)
    gc.disable()
    # the exception is raised repeatedly, because the code may catch it
    signal.setitimer(signal.ITIMER_PROF, seconds, seconds)
    try:
        yield rang
    except (KeyboardInterrupt, OutOfTime):
        if not rang:
            raise KeyboardInterrupt from None
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
        if collects:
            gc.enable()
