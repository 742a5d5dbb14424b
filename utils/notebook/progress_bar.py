"""A progress bar with the remaining time, for cells that take longer than a few seconds."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from html import escape
from typing import TypeVar

from hood.audience import can_move
from hood.learner import cell_clock
from hood.learner.cell_clock import display_page, in_words, update_page
from utils.notebook.style import VIEW

T = TypeVar("T")
EVERY = 0.25  # seconds between two redraws


def progress_bar(items: Collection[T], name: str) -> Iterator[T]:
    """Yield `items`, and show how many items are done and how long the other items will take.

    In a live notebook, the progress is one line that is redrawn. While a lesson is built, and
    outside a notebook, one line without times is printed at the end. ``name`` is the name of the
    work, such as "training".
    """
    total = len(items)
    handle = display_page(_html(name, 0, total, "")) if can_move() else None
    cell_clock.stop()  # not needed, because the bar shows more
    began = drawn = time.monotonic()
    done = 0
    try:
        for item in items:
            yield item
            done += 1
            now = time.monotonic()
            if handle is not None and now - drawn >= EVERY:
                drawn = now
                update_page(handle, _html(name, done, total, time_left(done, total, now - began)))
    finally:
        if handle is None:
            print(f"{name}: {done:,} of {total:,}")
        else:
            update_page(
                handle, _html(name, done, total, f"{in_words(time.monotonic() - began)} taken")
            )


def time_left(done: int, total: int, spent: float) -> str:
    """Return the remaining time at the same speed, such as "12 s left" or "3 min 5 s left"."""
    return f"{in_words(spent / done * max(total - done, 0))} left"


def _html(name: str, done: int, total: int, told: str) -> str:
    share = done / total if total else 1.0
    bar = (
        '<span style="display:inline-block;width:180px;height:10px;border-radius:5px;'
        f'border:1px solid {VIEW.colour};overflow:hidden;vertical-align:middle">'
        f'<span style="display:block;height:100%;width:{share:.1%};background:{VIEW.colour}">'
        "</span></span>"
    )
    words = f"{done:,} of {total:,}" + (f", {told}" if told else "")
    return f"<div>{escape(name)} {bar} {words}</div>"
