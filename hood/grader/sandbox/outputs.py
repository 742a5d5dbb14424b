"""Turn a cell's messages into the outputs of a notebook."""

from __future__ import annotations

from typing import Any

from nbformat.notebooknode import NotebookNode, from_dict
from nbformat.v4 import new_output

MOST_OF_ONE = 10  # displays with one id: each update changes all of them
NOT_AGAIN = (
    f"(More than {MOST_OF_ONE} displays have the same id. Only {MOST_OF_ONE} are shown, with the "
    "last display's content.)"
)


class Outputs:
    """Collects the messages of one cell (:mod:`hood.grader.inside.messages`) in ``shown``."""

    def __init__(self) -> None:
        self.shown: list[NotebookNode] = []
        self._displays: dict[str, list[NotebookNode]] = {}
        self._clears = False  # whether the next output clears those before it
        self._said = False  # whether NOT_AGAIN was shown

    def add(self, message: dict[str, Any]) -> None:
        """Add a message's output, update displays, or clear the outputs."""
        kind = message["kind"]
        fields = {k: v for k, v in message.items() if k not in ("kind", "cell", "display_id")}
        if kind == "clear_output":
            self._clears = message["wait"]
            if not self._clears:
                self._clear()
            return
        displays = self._displays.get(message.get("display_id") or "", ())
        for display in displays:
            display.update(from_dict({key: fields[key] for key in ("data", "metadata")}))
        if kind == "update_display_data":
            return
        if len(displays) == MOST_OF_ONE and not self._clears:
            if not self._said:
                self.shown.append(new_output("stream", name="stdout", text=NOT_AGAIN))
            self._said = True
            return
        if self._clears:
            self._clear()
        output = from_dict({"output_type": kind, **fields})
        if kind == "execute_result":
            output.execution_count = None
        if name := message.get("display_id"):
            self._displays.setdefault(name, []).append(output)
        self.shown.append(output)

    def number(self, count: int | None) -> None:
        """Give the cell's result the number that a notebook shows beside it."""
        for output in self.shown:
            if output.output_type == "execute_result":
                output.execution_count = count

    def _clear(self) -> None:
        self.shown.clear()
        self._displays.clear()
        self._said = False
        self._clears = False
