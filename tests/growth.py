"""Whether work grows as fast as what it is given, measured side by side: no test names seconds."""

from __future__ import annotations

import gc
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

# Twice what is quadratic would come to is far above, what is linear stays below.
TIMES = 8
SLACK = 3
TRIES = 3
TOO_SHORT = 0.02  # seconds of the processor; below, clocks and caches decide


def grows_too_fast(work: Callable[[Any], object], make: Callable[[int], Any], size: int) -> str:
    """Empty when eight times as much takes about eight times as long, else both times.

    Args:
        work: what is measured; it may refuse what it is given, and must not raise.
        make: what it is given, of a size.
        size: of the smaller one.
    """
    given = make(size)
    less = min(_seconds(work, given) for _ in range(TRIES))
    given, enough = make(TIMES * size), max(TOO_SHORT, SLACK * TIMES * less)
    tries = []
    while len(tries) < TRIES:
        tries.append(_seconds(work, given))
        if tries[-1] <= enough:  # what one try shows, no other can take back
            return ""
    return f"{less:.3f} s for {size}, {min(tries):.3f} s for {TIMES * size}"


def peak(work: Callable[[Any], object], given: Any) -> int:
    """Bytes of Python objects that the work had at once, beyond what it was given."""
    tracemalloc.start()
    try:
        work(given)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def _seconds(work: Callable[[Any], object], given: Any) -> float:
    gc.disable()  # a full collection looks at all that this process has ever imported
    begun = time.process_time()
    try:
        work(given)
        return time.process_time() - begun
    finally:
        gc.enable()
