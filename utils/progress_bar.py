"""What a cell that takes more than seconds shows: a bar with the time left, or a clock."""

from __future__ import annotations

import contextlib
import contextvars
import threading
import time
from collections.abc import Iterable, Iterator, Sized
from html import escape
from typing import Any, TypeVar

from utils.style import VIEW
from utils.views._interactive import can_move

T = TypeVar("T")
EVERY = 0.25  # seconds between two redraws
UNNOTICED = 2.0  # seconds that a cell may take before anybody wonders


def progress_bar(items: Iterable[T], name: str, total: int | None = None) -> Iterator[T]:
    """Yield `items` and show how many are done and how long the rest will take.

    In a live notebook it is one line that is redrawn; it ends with the time that was taken. While a
    lesson is built, and outside a notebook, one line is printed at the end, without times.

    Args:
        items: what to go through, lazily.
        name: what is counted, such as "training".
        total: how many there are; by default their length.

    Raises:
        ValueError: when `items` has no length and `total` is not given.
    """
    if total is None:
        if not isinstance(items, Sized):
            raise ValueError("progress_bar needs a total: these items have no length")
        total = len(items)
    return _counted(items, name, total)


def _counted(items: Iterable[T], name: str, total: int) -> Iterator[T]:
    handle = _display(_html(name, 0, total, "")) if can_move() else None
    began = drawn = time.monotonic()
    done = 0
    try:
        for item in items:
            yield item
            done += 1
            now = time.monotonic()
            if handle is not None and now - drawn >= EVERY:
                drawn = now
                _update(handle, _html(name, done, total, time_left(done, total, now - began)))
    finally:
        if handle is None:
            print(f"{name}: {done:,} of {total:,}")
        else:
            _update(handle, _html(name, done, total, f"{_clock(time.monotonic() - began)} taken"))


@contextlib.contextmanager
def running(what: str) -> Iterator[None]:
    """Show what the enclosed code does, and for how long, once it takes more than two seconds.

    For code that can't count what is left. In a live notebook it is one line with a clock, which
    ends with the time that was taken; anywhere else it is nothing.

    Args:
        what: what is done, such as "compiling".
    """
    if not can_move():
        yield
        return
    over = threading.Event()
    began = time.monotonic()

    def show() -> None:
        handle = None
        while not over.wait(EVERY if handle else UNNOTICED):
            page = f"<div>{escape(what)} … {_clock(time.monotonic() - began)}</div>"
            if handle is None:
                handle = _display(page)
            else:
                _update(handle, page)
        if handle is not None:
            taken = _clock(time.monotonic() - began)
            _update(handle, f"<div>{escape(what)}: {taken} taken</div>")

    # in the cell's own context: it says below which cell a thread displays
    clock = threading.Thread(target=contextvars.copy_context().run, args=(show,), daemon=True)
    clock.start()
    try:
        yield
    finally:
        over.set()
        clock.join()


def time_left(done: int, total: int, spent: float) -> str:
    """How long the rest takes if it goes on as before: "12 s left", "3 min 5 s left"."""
    return f"{_clock(spent / done * max(total - done, 0))} left"


def _clock(seconds: float) -> str:
    whole = round(seconds)
    return f"{whole} s" if whole < 60 else f"{whole // 60} min {whole % 60} s"


def _html(name: str, done: int, total: int, told: str) -> str:
    """One line: the name, a bar in the course's green, and the count in words."""
    share = done / total if total else 1.0
    bar = (
        '<span style="display:inline-block;width:180px;height:10px;border-radius:5px;'
        f'border:1px solid {VIEW.colour};overflow:hidden;vertical-align:middle">'
        f'<span style="display:block;height:100%;width:{share:.1%};background:{VIEW.colour}">'
        "</span></span>"
    )
    words = f"{done:,} of {total:,}" + (f", {told}" if told else "")
    return f"<div>{escape(name)} {bar} {words}</div>"


def _display(page: str) -> Any:
    from IPython.display import display

    data = {"text/html": page, "text/plain": ""}
    return display(data, raw=True, display_id=True)


def _update(handle: Any, page: str) -> None:
    handle.update({"text/html": page, "text/plain": ""}, raw=True)
