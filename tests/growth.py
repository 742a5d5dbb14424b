"""Test that work takes time and memory in proportion to its input.

Times are compared with each other, so no test depends on the speed of the machine.
"""

from __future__ import annotations

import gc
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

# If an input is TIMES as large, the work may take SLACK * TIMES as long: 24 times. Linear work
# takes 8 times as long, quadratic work 64 times.
TIMES = 8
SLACK = 3
TRIES = 3
TOO_SHORT = 0.02  # CPU seconds; a shorter measurement is too inexact


def grows_too_fast(work: Callable[[Any], object], make: Callable[[int], Any], size: int) -> str:
    """Measure whether work takes more than linear time.

    Args:
        work: the function to measure; it must not raise.
        make: makes its argument, of a given size.
        size: the size of the smaller argument; the larger one is eight times that size.

    Returns:
        Both times in words if the larger argument takes too long; otherwise an empty string.
    """
    given = make(size)
    less = min(_seconds(work, given) for _ in range(TRIES))
    given, enough = make(TIMES * size), max(TOO_SHORT, SLACK * TIMES * less)
    tries = []
    while len(tries) < TRIES:
        tries.append(_seconds(work, given))
        if tries[-1] <= enough:  # one fast try suffices; slow tries may be the machine's fault
            return ""
    return f"{less:.3f} s for {size}, {min(tries):.3f} s for {TIMES * size}"


def peak(work: Callable[[Any], object], given: Any) -> int:
    """Return the peak of the bytes of Python objects that the work allocates."""
    tracemalloc.start()
    try:
        work(given)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def _seconds(work: Callable[[Any], object], given: Any) -> float:
    gc.disable()  # a full collection visits every object that this process has imported
    begun = time.process_time()
    try:
        work(given)
        return time.process_time() - begun
    finally:
        gc.enable()
