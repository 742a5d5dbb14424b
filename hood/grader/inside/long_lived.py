"""Reduce the cost of objects that live as long as the process, such as modules."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def long_lived() -> Iterator[None]:
    """Import modules without garbage collection, then exclude all objects from collection for ever.

    All of torch's 300,000 objects stay. Garbage collection would search them, which takes a sixth
    of the import's time. In a fork, the search would also copy shared memory.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if collects:
            gc.enable()
