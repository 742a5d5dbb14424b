"""A clock for a cell that takes more than two seconds.

The clock is above the cell's outputs, and disappears when the cell ends. In the saved notebook, an
empty output is in the clock's place.

JupyterLab lets no screen reader read out a new output. So words about a new verdict also go through
the clock's place: a handler there adds the words to a log of the page, which is read out.

Importing this module starts the clock. `utils.views` imports it for lessons, and `check` for labs.
A build and the grading of a class have no clock, because nobody watches them.
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

UNNOTICED = 2.0  # after this many seconds, a cell gets a clock
EVERY = 0.5  # seconds between two updates of the clock
# The log must be in the page before a line is added, or a screen reader misses the line. Every
# second line ends in a space, because Orca leaves out a line that is the same as the last one. The
# browser calls the handler even if the cell has ended and its output is already replaced.
HEARD = """
const log = document.getElementById('open-the-hood-log') ?? document.createElement('div');
const line = document.createElement('div');
log.odd = !log.odd;
line.textContent = this.dataset.said + (log.odd ? '' : '\\u00a0');
log.id = 'open-the-hood-log';
log.setAttribute('role', 'log');
log.style = 'position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)';
if (!log.isConnected) document.body.append(log);
setTimeout(() => log.append(line), 300);
setTimeout(() => line.remove(), 30000);
"""


class _Clock:
    """The clock of one cell: a line that is redrawn while the cell runs.

    Jupyter shows outputs in their order of arrival. So an output without data is displayed before
    the cell's first output, and becomes the clock if the cell takes long.
    """

    def __init__(self) -> None:
        self.what = "running"
        self._place: Any = None  # the handle of the output that shows the line, or will show it
        self._alone = True  # whether the cell has shown nothing so far
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._began = time.monotonic()
        # The thread runs in the cell's own context, so the kernel shows the thread's output below
        # that cell.
        context = contextvars.copy_context()
        self._thread = threading.Thread(target=context.run, args=(self._show,), daemon=True)
        shell = sys.modules["IPython"].get_ipython()
        shown_by = (sys.stdout, "write"), (sys.stderr, "write"), (shell.display_pub, "publish")
        self._watched = [(owner, name, self._noticing(owner, name)) for owner, name in shown_by]
        self._thread.start()

    def announce(self, words: str) -> None:
        """Let a screen reader say words. The saved notebook does not have them."""
        handler = escape(" ".join(HEARD.split()))
        page = (
            f'<style onload="{handler}" data-said="{escape(words)}">.open-the-hood-log{{}}</style>'
        )
        with self._lock:
            if self._place is not None:  # the cell has shown something
                update_page(self._place, page)

    def stop(self, result: Any = None) -> None:
        """End the clock. `result` is IPython's result of the cell that has ended."""
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
        """Patch a method that shows output. Before the first output, display an empty output."""
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


def announce(words: str) -> None:
    """Let a screen reader say what the running cell has just shown, such as a verdict."""
    if _of_this_cell is not None:
        _of_this_cell.announce(words)


def stop(result: Any = None) -> None:
    """End the running cell's clock, if there is one; IPython calls this after each cell."""
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
    """Give a clock to this cell and to all later cells of this kernel's notebook."""
    if can_move():
        events = sys.modules["IPython"].get_ipython().events
        events.register("pre_run_cell", start)
        events.register("post_run_cell", stop)
        start()


def in_words(seconds: float) -> str:
    """Return a time in words: "12 s", "3 min 5 s"."""
    whole = round(seconds)
    return f"{whole} s" if whole < 60 else f"{whole // 60} min {whole % 60} s"


def display_page(page: str) -> Any:
    """Display a line of HTML and return a handle to replace it."""
    return _display({"text/html": page, "text/plain": ""})


def update_page(handle: Any, page: str) -> None:
    handle.update({"text/html": page, "text/plain": ""}, raw=True)


def _display(data: dict[str, str]) -> Any:
    from IPython.display import display

    return display(data, raw=True, display_id=True)


install()
