"""Jupyter messages over one SOCK_SEQPACKET socket, which is all that leads out of a sandbox.

A message is JSON with its binary buffers behind it, cut into packets. A packet begins with a byte
of flags. Packets are sent whole or not at all, so whatever interrupts a sender, be it a learner's
own signal handler, can cost a message, and never the beginning of the next one.
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

# What one message may come to: for honest kernels, and outside, where more is not taken.
MOST = 1 << 23
MAX_MESSAGE = MOST + (1 << 20)
# Commas and brackets outside of texts: they are counted before any of it is made into objects,
# which can be forty times as large as their JSON.
MAX_MARKS = 500_000
# One of them and what stands before it, texts included; it never looks at a byte twice.
MARK = re.compile(rb'(?:[^",\[{]++|"[^"\\]*+(?:\\.[^"\\]*+)*+"?)*+(?:[,\[{]|\Z)', re.DOTALL)


class Unreadable(ValueError):
    """Something that is not a message, or too large for one."""


def packets(message: bytes, channel: int) -> Sequence[bytes]:
    """The packets of a message, to be sent one after the other."""
    starts = range(0, len(message), PACKET)
    return [
        bytes([channel | FIRST * (at == 0) | LAST * (at == starts[-1])]) + message[at : at + PACKET]
        for at in starts
    ]


class Assembler:
    """Puts packets together to messages; a message that was broken off is dropped.

    most: bytes that a message may have
    """

    def __init__(self, most: int = MAX_MESSAGE) -> None:
        self._most = most
        self._parts: list[bytes] | None = None
        self._size = 0

    def take(self, packet: bytes) -> tuple[int, bytes] | None:
        """The channel and the message that this packet completes, or None.

        Raises Unreadable when the message gets too large; what follows of it is passed over.
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
            raise Unreadable(f"a message of more than {self._most} bytes")
        if not flags & LAST:
            return None
        message, self._parts = b"".join(self._parts), None
        return flags & IOPUB, message


def encode(message: dict[str, Any], pack: Callable[[Any], bytes]) -> bytes:
    """A message of Jupyter's session as bytes.

    pack: makes JSON of what the session has in its messages
    """
    buffers = [bytes(memoryview(buffer)) for buffer in message.get("buffers") or ()]
    head = {key: message[key] for key in ("header", "parent_header", "metadata", "content")}
    text = pack({**head, "buffers": [len(buffer) for buffer in buffers]})
    return b"".join([LENGTH.pack(len(text)), text, *buffers])


def decode(data: bytes) -> dict[str, Any]:
    """The message, in the form that Jupyter's session gives it. Raises Unreadable."""
    try:
        (size,) = LENGTH.unpack_from(data)
        at = LENGTH.size + size
        text = data[LENGTH.size : at]
        if _has_too_many_values(text):
            raise Unreadable("a message of too many values")
        message = json.loads(text)
        sizes = message["buffers"]
        parts = [message[key] for key in ("header", "parent_header", "metadata", "content")]
        if not all(type(part) is dict for part in parts) or type(sizes) is not list:
            raise Unreadable("a message with parts of another kind")
        message["msg_id"] = message["header"]["msg_id"]
        message["msg_type"] = message["header"]["msg_type"]
        if type(message["msg_type"]) is not str:
            raise Unreadable("a message of no known type")
        message["buffers"] = []
        for length in sizes:
            if type(length) is not int or not 0 <= length <= len(data) - at:
                raise Unreadable("a message without its buffers")
            message["buffers"].append(data[at : at + length])
            at += length
    except Unreadable:
        raise
    except (struct.error, ValueError, TypeError, KeyError, RecursionError) as error:
        raise Unreadable(f"not a message ({type(error).__name__})") from None
    return message


def _has_too_many_values(text: bytes) -> bool:
    if sum(map(text.count, (b",", b"[", b"{"))) <= MAX_MARKS:  # most often, and faster
        return False
    return next(islice(MARK.finditer(text), MAX_MARKS, None), None) is not None
