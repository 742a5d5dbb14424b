"""Wait for an event in a test, with one generous limit for all tests.

Machines are busy, so tests do not check how fast something happens. They check only that it
happens. If a test shows that one thing happens before another, it lets the second thing take an
hour.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE = 300.0  # seconds


def eventually(happened: Callable[[], T], what: str = "it", step: float = 0.02) -> T:
    """Call a function until its result is true, and return the result.

    Args:
        happened: the function.
        what: the event, for the message.
        step: seconds between two calls.

    Raises:
        AssertionError: if the result is not true within :data:`PATIENCE`.
    """
    end = time.monotonic() + PATIENCE
    while not (found := happened()):
        assert time.monotonic() < end, f"{what} did not happen within {PATIENCE:g} s"
        time.sleep(step)
    return found
