"""The controls of a view: sliders, buttons, boxes to tick, and boxes to type into."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from utils.views._numbers import listed

CONTROL_WIDTH = "420px"


@dataclass(frozen=True)
class Control:
    """A control of a view."""

    kind: str  # the class of its widget
    name: str  # the text beside it
    start: Any  # its first value
    # (label, value) of each position; empty for a box into which any text can be typed
    offered: tuple[tuple[str, Any], ...] = ()

    def __post_init__(self) -> None:
        values = [value for _, value in self.offered]
        if values and self.start not in values:
            numbers = self.kind == "IntSlider"
            span = f"{values[0]} to {values[-1]}" if numbers else listed(list(map(str, values)))
            raise ValueError(f"{self.name}: expected {span}, got {self.start!r}")

    def widget(self, ipywidgets: Any) -> Any:
        """Return the widget, made by the ipywidgets module."""
        how: dict[str, Any] = {"value": self.start, "description": self.name}
        if self.kind == "IntSlider":
            how |= {"min": self.offered[0][1], "max": self.offered[-1][1]}
        elif self.kind == "Checkbox":
            how |= {"indent": False}
        elif self.offered:
            how |= {"options": self.offered}
        elif self.kind == "Text":
            how |= {"continuous_update": False}
        else:
            how |= {"step": 0.1}
        widget = getattr(ipywidgets, self.kind)(**how)
        widget.layout.width, widget.layout.max_width = CONTROL_WIDTH, "100%"
        if self.kind == "Checkbox":  # the label of a checkbox is after it, so keep them together
            widget.layout.width, widget.layout.margin = "auto", "2px 18px 2px 2px"
        return widget


def slider(name: str, start: int, low: int, high: int) -> Control:
    """Return a slider for the whole numbers from `low` to `high`.

    Raises ValueError if the start is outside them.
    """
    return Control("IntSlider", name, start, tuple((str(k), k) for k in range(low, high + 1)))


def choice(
    name: str, start: Any, values: Sequence[Any], labels: Sequence[str] = (), buttons: bool = False
) -> Control:
    """Return a slider over any values, or a button for each value.

    There is no drop-down list, because it would need a mouse: the keys that move in a list also
    move between JupyterLab's cells. Raises ValueError if the start is not one of the values.
    """
    offered = tuple(zip(labels or map(str, values), values, strict=True))
    return Control("ToggleButtons" if buttons else "SelectionSlider", name, start, offered)


def switch(name: str, start: bool) -> Control:
    """Return a box to tick."""
    return Control("Checkbox", name, start, (("off", False), ("on", True)))
