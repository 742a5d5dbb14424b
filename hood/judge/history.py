"""Remember the texts of the cells that this kernel has run.

IPython's own ``In`` is not enough, because it has magics in their translated form, and because
learners may change ``In``. A lab's first cell imports this module. A cell that was run several
times counts once, with its last text: a verdict is about the notebook, not about the notebook's
history.
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
    finished: bool = True  # True if the cell ran to its end, or still runs
    bound: frozenset[str] = frozenset()  # names with another value after the cell than before it
    count: int = 0  # the number in brackets beside the cell; 0 if unknown
    at: float = 0.0  # when it began, in seconds since 1970; 0 if unknown


_cells: dict[str, Ran] = {}  # by the cell's id; the cell that ran last comes last
_ids: dict[str, int] = {}  # by variable name, the `id()` of the value after the last cell


def cells() -> dict[str, Ran]:
    """Return a dict from the cells' ids to the cells. The cell that ran last comes last."""
    return dict(_cells)


def running() -> str:
    """Return the text of the running cell, or of the cell that ran last; empty if unknown."""
    return next(reversed(_cells.values())).source if _cells else ""


def stamp() -> dict[str, Any]:
    """Return metadata for the output of a new verdict: the cells that the verdict judges.

    A cell that ended in an error is left out, because an earlier version of the cell may have
    defined the names.
    """
    return metadata.stamp(cell.source for cell in _cells.values() if cell.finished)


def begin(info: Any) -> None:
    """Save the text of a cell; IPython calls this before each cell."""
    cell = info.cell_id or f"without-id-{len(_cells)}"
    _cells.pop(cell, None)
    _cells[cell] = Ran(info.raw_cell, at=time.time())


def end(result: Any) -> None:
    """Save the names that a cell bound; IPython calls this after each cell."""
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
    """From now on, save the cells that a kernel's shell runs."""
    _ids.update(_ids_in(shell))
    for number, text in enumerate(getattr(shell.history_manager, "input_hist_raw", ())):
        if isinstance(text, str) and text:
            _cells[f"before-{number}"] = Ran(text)
    shell.events.register("pre_run_cell", begin)
    shell.events.register("post_run_cell", end)


if get_ipython() is not None:
    install(get_ipython())
