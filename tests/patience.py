"""How long a test waits for what must come: until it is clear that it never will.

Machines are busy, so no test says how fast something is; it says that it happens. What must come
before something else is made to come before something that takes an hour.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE = 300.0  # seconds


def eventually(happened: Callable[[], T], what: str = "it", step: float = 0.02) -> T:
    """Wait until something is true, and return it.

    Args:
        happened: asked again and again.
        what: should happen, for the message.
        step: seconds between two questions.

    Raises:
        AssertionError: when it has not happened within :data:`PATIENCE`.
    """
    end = time.monotonic() + PATIENCE
    while not (found := happened()):
        assert time.monotonic() < end, f"{what} did not happen within {PATIENCE:g} s"
        time.sleep(step)
    return found
