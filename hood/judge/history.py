"""What this kernel has run, cell by cell, as it was written.

IPython's own ``In`` has what magics become, and learners may change it. A lab's first cell imports
this module. A cell that was run again counts once, as it was run last, because a notebook is judged
and not how it came about.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from IPython import get_ipython

from hood import metadata


@dataclass
class Ran:
    """A cell that was run, or runs now."""

    source: str
    finished: bool = True  # whether it ran to its end, or still runs
    bound: frozenset[str] = frozenset()  # names that had another value after it than before
    count: int = 0  # the number that stands in brackets beside it; 0 if unknown
    at: float = 0.0  # when it began, in seconds since 1970; 0 if unknown


_cells: dict[str, Ran] = {}  # by id, in the order in which they were run last
_ids: dict[str, int] = {}  # of the values of all names, after the last cell


def cells() -> dict[str, Ran]:
    """Return what was run, by the cells' ids, in the order in which each was run last."""
    return dict(_cells)


def running() -> str:
    """Return the text of the cell that runs, or ran last; empty if none is known."""
    return next(reversed(_cells.values())).source if _cells else ""


def stamp() -> dict[str, Any]:
    """Return what a verdict that is given now is of: metadata for its output in the notebook.

    A cell that ended in an error is not among them: what it defined is an older text's.
    """
    return metadata.stamp(cell.source for cell in _cells.values() if cell.finished)


def begin(info: Any) -> None:
    """Keep the text of a cell; IPython calls this before each cell."""
    cell = info.cell_id or f"without-id-{len(_cells)}"
    _cells.pop(cell, None)
    _cells[cell] = Ran(info.raw_cell, at=time.time())


def end(result: Any) -> None:
    """Keep what a cell bound; IPython calls this after each cell."""
    if result is None or not _cells:
        return
    ids = _ids_in(get_ipython())
    ran = next(reversed(_cells.values()))
    ran.finished = bool(result.success)
    ran.count = result.execution_count or 0
    ran.bound = frozenset(name for name, now in ids.items() if _ids.get(name) != now)
    _ids.clear()
    _ids.update(ids)


def _ids_in(shell: Any) -> dict[str, int]:
    return {str(name): id(value) for name, value in list(shell.user_ns.items())}


def install(shell: Any) -> None:
    """Keep the cells that a kernel's shell runs, from now on."""
    _ids.update(_ids_in(shell))
    for number, text in enumerate(getattr(shell.history_manager, "input_hist_raw", ())):
        if isinstance(text, str) and text:
            _cells[f"before-{number}"] = Ran(text)
    shell.events.register("pre_run_cell", begin)
    shell.events.register("post_run_cell", end)


if get_ipython() is not None:
    install(get_ipython())
