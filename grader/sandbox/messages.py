"""A kernel's messages, each small enough to be read outside.

Outside, a message above a limit ends the connection, because it could fill the grader's memory.
An honest kernel should not run into that by printing a large list, so it shortens beforehand.
"""

from __future__ import annotations

from typing import Any

from jupyter_client.session import Session

LONGEST = 1 << 20  # characters of one text
MOST = 1 << 23  # bytes of one message


class RoomSession(Session):
    """Jupyter's session; what is too long in a message is cut, and the cut is said."""

    def serialize(self, msg: dict[str, Any], ident: Any = None) -> list[bytes]:
        """The parts of a message."""
        parts = super().serialize({**msg, "content": _cut(msg.get("content"))}, ident)
        if sum(map(len, parts)) > MOST:
            left_out = {"text/plain": f"... an output of more than {MOST >> 20} MiB was left out"}
            small = {"data": left_out, "metadata": {}, "name": "stdout", "text": "", "status": "ok"}
            parts = super().serialize({**msg, "content": small}, ident)
        return parts


def _cut(value: Any) -> Any:
    if isinstance(value, str) and len(value) > LONGEST:
        return f"{value[:LONGEST]}\n... {len(value) - LONGEST} more characters were left out ...\n"
    if isinstance(value, dict):
        return {key: _cut(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_cut(item) for item in value]
    return value
