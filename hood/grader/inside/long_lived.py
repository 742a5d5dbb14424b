"""Make objects that last as long as the process, such as modules, at less cost."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def long_lived() -> Iterator[None]:
    """Import modules, and never search them for garbage, nor what else there is by then.

    Of torch's 300,000 objects all stay. To search them takes a sixth of the time of an import, and
    in a fork it would copy memory that is shared.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if collects:
            gc.enable()
