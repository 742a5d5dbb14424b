"""The messages between a kernel and the grader: JSON over one socket that keeps packets apart.

The grader sends ``cell`` (a random id for this cell) and ``source``. A kernel answers with messages
of the kinds in :data:`FORMS`. Each message has ``kind``, and the ``cell`` that ran when the message
was sent; ``done`` is the last message of a cell.

A message is cut into packets, each of which begins with a byte of flags. A packet is sent whole or
not at all. So if a sender is interrupted, for instance by a learner's signal handler, one message
may be lost, but the next message is not damaged.
"""

from __future__ import annotations

import base64
import json
import re
import socket
import sys
from collections.abc import Sequence
from itertools import islice
from types import NoneType
from typing import Any

FIRST, LAST = 1, 2
PACKET = 1 << 16
# Without a sandbox a kernel may run on macOS, which has no SOCK_SEQPACKET: there the grader itself
# checks whether the other end was closed.
KIND = socket.SOCK_SEQPACKET if sys.platform == "linux" else socket.SOCK_DGRAM

# A kernel's messages, with their fields and types. `display_id` is None or names a display that
# `update_display_data` changes. `ename` is None if the cell raised nothing. `bound` has the names
# that got a new value, by the first line of the statement that set them.
DISPLAY: dict[str, tuple[type, ...]] = {"data": (dict,), "metadata": (dict,)}
FORMS: dict[str, dict[str, tuple[type, ...]]] = {
    "stream": {"name": (str,), "text": (str,)},
    "display_data": {**DISPLAY, "display_id": (str, NoneType)},
    "update_display_data": {**DISPLAY, "display_id": (str, NoneType)},
    "execute_result": DISPLAY,
    "error": {"ename": (str,), "evalue": (str,), "traceback": (list,)},
    "clear_output": {"wait": (bool,)},
    "done": {"ename": (str, NoneType), "evalue": (str,), "count": (int,), "bound": (dict,)},
}

LINE = re.compile(r"[0-9]{1,9}\Z")

JSON_KIND = re.compile(r"application/(.*\+)?json\Z")  # all other kinds are text

# Limits on the bytes of one message. A kernel's messages stay below the first limit, and the grader
# refuses messages above the second limit.
MOST = 1 << 23
MAX_MESSAGE = MOST + (1 << 20)
# Limit on commas and brackets outside of strings. They are counted before the JSON is parsed,
# because the parsed objects can take forty times the memory of the JSON.
MAX_MARKS = 500_000
# One comma or bracket with the text before it (this text may contain strings). The pattern is
# possessive, so it reads no byte twice.
MARK = re.compile(rb'(?:[^",\[{]++|"[^"\\]*+(?:\\.[^"\\]*+)*+"?)*+(?:[,\[{]|\Z)', re.DOTALL)


class BadMessage(ValueError):
    """Bytes that are not a message, or are too many for one message."""


def packets(message: bytes) -> Sequence[bytes]:
    """Return the packets of a message, in the order in which to send them."""
    starts = range(0, len(message), PACKET)
    return [
        bytes([FIRST * (at == 0) | LAST * (at == starts[-1])]) + message[at : at + PACKET]
        for at in starts
    ]


class Assembler:
    """Assemble packets into messages; drop a message whose last packet never comes."""

    def __init__(self, most: int = MAX_MESSAGE) -> None:
        self._most = most
        self._parts: list[bytes] | None = None
        self._size = 0

    def take(self, packet: bytes) -> bytes | None:
        """Return the message that a packet completes; None if the message is not complete yet.

        Raises BadMessage if the message gets too large. The message's remaining packets are then
        ignored.
        """
        flags, part = packet[0], packet[1:]
        if flags & FIRST:
            self._parts, self._size = [], 0
        if self._parts is None:
            return None
        self._parts.append(part)
        self._size += len(part)
        if self._size > self._most:
            self._parts = None
            raise BadMessage(f"a message of more than {self._most} bytes")
        if not flags & LAST:
            return None
        message, self._parts = b"".join(self._parts), None
        return message


def encode(message: dict[str, Any]) -> bytes:
    """Encode a message; bytes become base64, and objects unknown to JSON become their ``str``."""
    return json.dumps(message, ensure_ascii=False, default=_plain).encode(errors="replace")


def _plain(value: Any) -> Any:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)


def decode(data: bytes) -> dict[str, Any]:
    """Decode a kernel's message; raise BadMessage if it is not a message of :data:`FORMS`."""
    # This sum also counts commas and brackets inside strings. For nearly all messages, even the sum
    # is within the limit.
    many = sum(map(data.count, (b",", b"[", b"{"))) > MAX_MARKS
    if many and next(islice(MARK.finditer(data), MAX_MARKS, None), None):
        raise BadMessage("a message with too many values")
    try:
        message = json.loads(data, parse_constant=str)  # JSON has no NaN
        form = {"kind": (str,), "cell": (str,)} | FORMS[message["kind"]]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise BadMessage(f"not a message ({type(error).__name__})") from None
    if not all(type(message.get(field)) in types for field, types in form.items()):
        raise BadMessage(f"a message of the kind {message['kind']} with parts of wrong types")
    texts = [value for kind, value in message.get("data", {}).items() if not JSON_KIND.match(kind)]
    if not all(type(text) is str for text in [*texts, *message.get("traceback", ())]):
        raise BadMessage(f"a message of the kind {message['kind']} with something that is not text")
    bound = message.get("bound", {})
    lists = all(LINE.match(line) and type(names) is list for line, names in bound.items())
    if not lists or not all(type(name) is str for names in bound.values() for name in names):
        raise BadMessage("a message of the kind `done` with something that is not a name")
    return {field: message.get(field) for field in form}
