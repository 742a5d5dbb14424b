"""Show only the first and last frames of a deep recursion's traceback, so that the cell ends soon.

IPython searches all modules for the source of each frame. The traceback of a recursion has a
thousand frames. To show all of them would take up to a minute, and nobody reads them.
"""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any

FIRST, LAST = 8, 8  # frames of an error that are shown
# The number of errors that are shown of a chain. In a chain, each error was raised while the error
# before it was handled.
ERRORS = 4


def shortened(trace: TracebackType | None) -> tuple[TracebackType | None, int]:
    """Return a traceback of the first and last frames, and how many frames it leaves out.

    ``trace`` itself does not change: ``%debug`` needs it.
    """
    every = []
    while trace is not None:
        every.append(trace)
        trace = trace.tb_next
    kept = every if len(every) <= FIRST + LAST + 1 else every[:FIRST] + every[-LAST:]
    made = None
    for one in reversed(kept):
        made = TracebackType(made, one.tb_frame, one.tb_lasti, one.tb_lineno)
    return made, len(every) - len(kept)


class Bounded:
    """Replacements for two methods of IPython that format a cell's traceback.

    ``formatter`` is a shell's ``InteractiveTB``; the replacements call its own methods.
    """

    def __init__(self, formatter: Any) -> None:
        self._formatter = formatter
        self._whole = formatter.structured_traceback
        self._before = formatter.get_parts_of_chained_exception
        self._frames = self._errors = self._left_out = 0

    def structured_traceback(
        self, kind: Any, error: Any = None, trace: Any = None, *given: Any, **named: Any
    ) -> list[str]:
        """Return the lines of a traceback. If frames are left out, the second line says so."""
        if trace is None:
            kind, error, trace = sys.exc_info()
        self._errors = self._left_out = 0
        short, self._frames = shortened(trace)
        lines = self._whole(kind, error, short, *given, **named)
        if said := self._said():
            lines[1:1] = [said] if len(lines) > 1 else []
        return lines

    def get_parts_of_chained_exception(self, error: Any) -> tuple[Any, Any, Any] | None:
        """Return the error that was handled when ``error`` was raised; None ends the chain."""
        if (parts := self._before(error)) is None:
            return None
        self._errors += 1
        if self._errors >= ERRORS:
            self._left_out += 1
            return None
        kind, earlier, trace = parts
        short, frames = shortened(trace)
        self._frames += frames
        return kind, earlier, short

    def _said(self) -> str:
        said = []
        if self._frames:
            said.append(f"{self._frames} frames, between the first {FIRST} and the last {LAST}")
        if self._left_out:
            said.append(f"the errors before the last {ERRORS}")
        return f"[... not shown: {'; '.join(said)}]\n" if said else ""


def install() -> None:
    """Shorten the tracebacks of this notebook's kernel. A second call does nothing."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    formatter = getattr(shell, "InteractiveTB", None)
    if formatter is None or "structured_traceback" in vars(formatter):
        return
    bounded = Bounded(formatter)
    formatter.structured_traceback = bounded.structured_traceback
    formatter.get_parts_of_chained_exception = bounded.get_parts_of_chained_exception


install()
