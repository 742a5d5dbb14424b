"""A clock for a cell that takes more than two seconds, so that nobody waits in the dark.

It stands above all that the cell shows, and goes when the cell ends: what is saved of it is an
output without data, which shows nothing.

What imports this module has asked for the clock: `utils.views`, for lessons, and `check`, for
labs. Where nobody waits, as in a build or while a class is graded, there is none.
"""

from __future__ import annotations

import contextvars
import sys
import threading
import time
from collections.abc import Callable
from html import escape
from typing import Any

from hood.audience import can_move

UNNOTICED = 2.0  # seconds that a cell may take before anybody wonders
EVERY = 0.5  # seconds between two looks at the clock


class _Clock:
    """The clock of one cell: a line that is redrawn while the cell runs.

    Outputs stand in the order in which they came. So an output without data comes before the cell's
    first one, and becomes the line if the cell takes long. A cell that shows nothing has none.
    """

    def __init__(self) -> None:
        self.what = "running"
        self._place: Any = None  # the handle of the output that is, or becomes, the line
        self._alone = True  # whether the cell has shown nothing so far
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._began = time.monotonic()
        # in the cell's own context, which tells the kernel below which cell a thread displays
        context = contextvars.copy_context()
        self._thread = threading.Thread(target=context.run, args=(self._show,), daemon=True)
        shell = sys.modules["IPython"].get_ipython()
        shown_by = (sys.stdout, "write"), (sys.stderr, "write"), (shell.display_pub, "publish")
        self._watched = [(owner, name, self._noticing(owner, name)) for owner, name in shown_by]
        self._thread.start()

    def stop(self, result: Any = None) -> None:
        """End it. `result` is IPython's, of the cell that has ended."""
        self._over.set()
        self._thread.join()
        self._unwatch()
        ended_silent = result is not None and result.success and result.result is None
        if self._place is not None and self._alone and ended_silent:
            from IPython.display import clear_output

            clear_output()
        elif self._place is not None:
            self._place.update({}, raw=True)

    def _noticing(self, owner: Any, name: str) -> Callable[..., Any]:
        """Let a method, by which a cell shows something, take this clock's place before."""
        method = getattr(owner, name)

        def noticing(*args: Any, **kwargs: Any) -> Any:
            if threading.current_thread() is not self._thread:
                self._unwatch()
                self._alone = False
                with self._lock:
                    if self._place is None:
                        self._place = _display({})
            return method(*args, **kwargs)

        setattr(owner, name, noticing)
        return noticing

    def _unwatch(self) -> None:
        for owner, name, noticing in self._watched:
            if vars(owner).get(name) is noticing:
                delattr(owner, name)

    def _show(self) -> None:
        wait = UNNOTICED
        while not self._over.wait(wait):
            wait = EVERY
            passed = in_words(time.monotonic() - self._began)
            words = escape(f"{self.what} … {passed}")
            page = f'<div style="opacity:0.7">{words}</div>'
            with self._lock:
                if self._place is None:
                    self._place = display_page(page)
                else:
                    update_page(self._place, page)


_of_this_cell: _Clock | None = None


def say(what: str) -> None:
    if _of_this_cell is not None:
        _of_this_cell.what = what


def stop(result: Any = None) -> None:
    """End the clock of the cell that runs, if there is one; IPython calls this after each cell."""
    global _of_this_cell
    clock, _of_this_cell = _of_this_cell, None
    if clock is not None:
        clock.stop(result)


def start(*_: Any) -> None:
    """Start the clock of a cell; IPython calls this before each cell."""
    global _of_this_cell
    stop()
    _of_this_cell = _Clock()


def install() -> None:
    """Give this cell and all later ones of the notebook that runs a clock, if there is one."""
    if can_move():
        events = sys.modules["IPython"].get_ipython().events
        events.register("pre_run_cell", start)
        events.register("post_run_cell", stop)
        start()


def in_words(seconds: float) -> str:
    """Return a time as people say it: "12 s", "3 min 5 s"."""
    whole = round(seconds)
    return f"{whole} s" if whole < 60 else f"{whole // 60} min {whole % 60} s"


def display_page(page: str) -> Any:
    """Display a line of HTML and return the handle with which it can be replaced."""
    return _display({"text/html": page, "text/plain": ""})


def update_page(handle: Any, page: str) -> None:
    handle.update({"text/html": page, "text/plain": ""}, raw=True)


def _display(data: dict[str, str]) -> Any:
    from IPython.display import display

    return display(data, raw=True, display_id=True)


install()
