"""Encode Jupyter messages for one SOCK_SEQPACKET socket between a sandbox and the grader.

A message is JSON followed by its binary buffers, cut into packets. A packet begins with a byte of
flags. A packet is sent whole or not at all. So an interrupted sender, for instance by a learner's
signal handler, can lose one message but cannot damage the next.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

SHELL, IOPUB = 0, 4  # the channel that a message belongs to
FIRST, LAST = 1, 2
PACKET = 1 << 16
LENGTH = struct.Struct(">I")

# Limits on the bytes of one message: a kernel keeps below the first, and the grader refuses what
# exceeds the second.
MOST = 1 << 23
MAX_MESSAGE = MOST + (1 << 20)
# Limit on commas and brackets outside of strings. They are counted before the JSON is parsed,
# because the objects can take forty times the memory of their JSON.
MAX_MARKS = 500_000
# One comma or bracket with what precedes it, strings included. Possessive: it reads no byte twice.
MARK = re.compile(rb'(?:[^",\[{]++|"[^"\\]*+(?:\\.[^"\\]*+)*+"?)*+(?:[,\[{]|\Z)', re.DOTALL)


class BadMessage(ValueError):
    """Bytes that are no message or too large for one."""


def packets(message: bytes, channel: int) -> Sequence[bytes]:
    """Return the packets of a message, in the order in which to send them."""
    starts = range(0, len(message), PACKET)
    return [
        bytes([channel | FIRST * (at == 0) | LAST * (at == starts[-1])]) + message[at : at + PACKET]
        for at in starts
    ]


class Assembler:
    """Assemble packets into messages; drop a message whose last packet never comes."""

    def __init__(self, most: int = MAX_MESSAGE) -> None:
        self._most = most
        self._parts: list[bytes] | None = None
        self._size = 0

    def take(self, packet: bytes) -> tuple[int, bytes] | None:
        """Return the channel and the message that a packet completes; None if it completes none.

        Raises BadMessage if the message gets too large. Its remaining packets are then ignored.
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
        return flags & IOPUB, message


def encode(message: dict[str, Any], pack: Callable[[Any], bytes]) -> bytes:
    """Encode a message of Jupyter's session as bytes; ``pack`` is the session's encoder of JSON."""
    buffers = [bytes(memoryview(buffer)) for buffer in message.get("buffers") or ()]
    head = {key: message[key] for key in ("header", "parent_header", "metadata", "content")}
    text = pack({**head, "buffers": [len(buffer) for buffer in buffers]})
    return b"".join([LENGTH.pack(len(text)), text, *buffers])


def decode(data: bytes) -> dict[str, Any]:
    """Decode a message into the form that Jupyter's session gives it; else raise BadMessage."""
    try:
        (size,) = LENGTH.unpack_from(data)
        at = LENGTH.size + size
        text = data[LENGTH.size : at]
        # The plain count also counts marks inside strings. It settles nearly all messages.
        many = sum(map(text.count, (b",", b"[", b"{"))) > MAX_MARKS
        if many and next(islice(MARK.finditer(text), MAX_MARKS, None), None):
            raise BadMessage("a message with too many values")
        message = json.loads(text)
        sizes = message["buffers"]
        parts = [message[key] for key in ("header", "parent_header", "metadata", "content")]
        if not all(type(part) is dict for part in parts) or type(sizes) is not list:
            raise BadMessage("a message whose parts have the wrong types")
        message["msg_id"] = message["header"]["msg_id"]
        message["msg_type"] = message["header"]["msg_type"]
        if type(message["msg_type"]) is not str:
            raise BadMessage("a message whose msg_type is no string")
        message["buffers"] = []
        for length in sizes:
            if type(length) is not int or not 0 <= length <= len(data) - at:
                raise BadMessage("a message that is shorter than its buffers")
            message["buffers"].append(data[at : at + length])
            at += length
    except BadMessage:
        raise
    except (struct.error, ValueError, TypeError, KeyError, RecursionError) as error:
        raise BadMessage(f"not a message ({type(error).__name__})") from None
    return message
