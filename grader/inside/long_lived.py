"""Make objects that last as long as the process, such as modules, at less cost."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def long_lived() -> Iterator[None]:
    """Import modules, and never search them for garbage, nor what else there is by then.

    torch alone makes 300,000 objects, all of which stay. Python searches them again and again while
    it imports more, which takes a sixth of the time, and later in each full collection. In a fork,
    a collection would also write to each of them, and so copy memory that is shared.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if collects:
            gc.enable()
