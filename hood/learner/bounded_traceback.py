"""Show of a deep recursion's traceback the frames that matter, so that its cell ends at once.

IPython looks for the source of each frame among all modules. A recursion has a thousand frames and
would take up to a minute, for a text that nobody reads.
"""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any

FIRST, LAST = 8, 8  # frames of an error that are shown
ERRORS = 4  # errors that are shown where each was raised while another was handled


def shortened(trace: TracebackType | None) -> tuple[TracebackType | None, int]:
    """Return a traceback with its first and last frames, and how many it has left out.

    The traceback that is given stays as it is, for ``%debug``.
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
    """The two methods with which IPython formats the traceback of a cell, bounded.

    ``formatter`` is a shell's ``InteractiveTB``, whose methods they call.
    """

    def __init__(self, formatter: Any) -> None:
        self._formatter = formatter
        self._whole = formatter.structured_traceback
        self._before = formatter.get_parts_of_chained_exception
        self._frames = self._errors = self._left_out = 0

    def structured_traceback(
        self, kind: Any, error: Any = None, trace: Any = None, *given: Any, **named: Any
    ) -> list[str]:
        """Return the lines of a traceback; the second one says what is left out, if anything."""
        if trace is None:
            kind, error, trace = sys.exc_info()
        self._errors = self._left_out = 0
        short, self._frames = shortened(trace)
        lines = self._whole(kind, error, short, *given, **named)
        if said := self._said():
            lines[1:1] = [said] if len(lines) > 1 else []
        return lines

    def get_parts_of_chained_exception(self, error: Any) -> tuple[Any, Any, Any] | None:
        """Return the error that was handled when one was raised; None if it is not shown."""
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
    """Bound the tracebacks of the notebook that runs, if there is one; twice is as once."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    formatter = getattr(shell, "InteractiveTB", None)
    if formatter is None or "structured_traceback" in vars(formatter):
        return
    bounded = Bounded(formatter)
    formatter.structured_traceback = bounded.structured_traceback
    formatter.get_parts_of_chained_exception = bounded.get_parts_of_chained_exception


install()
