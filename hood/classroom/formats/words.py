"""Format numbers and sentences for a page or a terminal."""

from __future__ import annotations


def percent(value: float) -> str:
    """Return a share as a whole percentage."""
    return f"{value:.0%}".replace("%", "\N{NO-BREAK SPACE}%")


def duration(seconds: float) -> str:
    """Return a duration as text: ``0.4 s``, ``3 min 20 s``, ``2 h 5 min`` or ``3 days 1 h``."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if minutes else f"{rest} s"
    if minutes < 48 * 60:
        return f"{minutes // 60} h {minutes % 60} min"
    return f"{minutes // 1440} days {minutes % 1440 // 60} h"
