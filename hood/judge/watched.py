"""Call the learner's code in the learner's own notebook.

A time limit or JupyterLab's Stop button can end a call.
"""

from __future__ import annotations

import signal
import threading
import time
from types import FrameType
from typing import Any

from hood.judge.connection.rpc_client import InProcess, OutOfTime

# Limits for one call of the learner's code: CPU time and real time. The longest call of a reference
# takes three seconds, mostly for imports.
CALL_SECONDS, CALL_WAITS = 15, 60


class WatchedConnection(InProcess):
    """A connection for a person's own notebook; the Stop button or a time limit ends a call."""

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """See :class:`hood.judge.connection.rpc_client.Connection`.

        Raises KeyboardInterrupt when somebody stopped the call.
        """
        alarm = Alarm(CALL_SECONDS, CALL_WAITS)
        try:
            with alarm:
                return super().ask(request)
        except (KeyboardInterrupt, OutOfTime):
            late = OutOfTime(f"{alarm.rang} for a call")
            raise late if alarm.rang else KeyboardInterrupt from None


class Alarm:
    """A context that raises KeyboardInterrupt in the code inside it when the time is up.

    Signals reach only the main thread; other threads have no limit. ``seconds`` is CPU time, which
    does not pass while other programs use the processor. ``waits`` is real time.
    """

    def __init__(self, seconds: float, waits: float):
        self.rang = ""  # the exceeded limit in words
        self._seconds, self._waits = seconds, waits

    def __enter__(self) -> None:
        self._set = threading.current_thread() is threading.main_thread()
        if self._set:
            self._worked, self._began = time.process_time(), time.monotonic()
            self._before = signal.signal(signal.SIGALRM, self._ring)
            signal.setitimer(signal.ITIMER_REAL, self._seconds, 1)

    def _ring(self, number: int, frame: FrameType | None) -> None:
        worked, passed = time.process_time() - self._worked, time.monotonic() - self._began
        if worked >= self._seconds or passed >= self._waits:
            clock = f"{self._waits:g} s by the clock"
            self.rang = f"{self._seconds:g} s" if worked >= self._seconds else clock
            raise KeyboardInterrupt

    def __exit__(self, *error: object) -> None:
        if self._set:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, self._before)
