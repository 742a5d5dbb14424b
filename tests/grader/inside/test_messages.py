"""Messages cut into packets and put together again, by an honest sender and by others."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from grader.inside import messages
from grader.inside.messages import FIRST, IOPUB, LAST, LENGTH, PACKET, SHELL, BadMessage


def message(**content: Any) -> dict[str, Any]:
    header = {"msg_id": "1", "msg_type": "stream"}
    return {"header": header, "parent_header": {}, "metadata": {}, "content": content}


def packed(value: Any) -> bytes:
    return json.dumps(value).encode()


@pytest.mark.parametrize("size", [0, 1, PACKET - 1, PACKET, PACKET + 1, 3 * PACKET])
@pytest.mark.parametrize("channel", [SHELL, IOPUB])
def test_a_message_arrives_as_it_was_sent(size: int, channel: int) -> None:
    text, buffer = "é" * size, random.randbytes(size)
    data = messages.encode({**message(text=text), "buffers": [buffer, memoryview(b"z")]}, packed)
    assembler = messages.Assembler()
    *before, last = [assembler.take(packet) for packet in messages.packets(data, channel)]
    assert before == [None] * len(before)
    assert last == (channel, data)
    came = messages.decode(data)
    assert came["content"] == {"text": text}
    assert came["buffers"] == [buffer, b"z"]
    assert (came["msg_id"], came["msg_type"]) == ("1", "stream")


def test_a_message_that_was_broken_off_does_not_spoil_the_next() -> None:
    assembler = messages.Assembler()
    first, *rest = messages.packets(b"a" * 3 * PACKET, IOPUB)
    assert assembler.take(first) is None
    (whole,) = messages.packets(b"b", SHELL)
    assert assembler.take(whole) == (SHELL, b"b")
    assert [assembler.take(packet) for packet in rest] == [None] * len(rest)
    assert assembler.take(whole) == (SHELL, b"b")


def test_no_more_than_a_message_is_kept() -> None:
    assembler = messages.Assembler()
    assembler.take(bytes([IOPUB | FIRST]))
    packet = bytes([IOPUB]) + bytes(PACKET)
    for _ in range(messages.MAX_MESSAGE // PACKET):
        assembler.take(packet)
    with pytest.raises(BadMessage, match="more than"):
        assembler.take(packet)
    assert assembler.take(bytes([IOPUB | LAST])) is None
    assert assembler.take(messages.packets(b"b", SHELL)[0]) == (SHELL, b"b")


def framed(value: Any) -> bytes:
    text = value if isinstance(value, bytes) else packed(value)
    return LENGTH.pack(len(text)) + text


BAD = {
    "nothing": b"",
    "no length": b"ab",
    "no JSON": framed(b"{"),
    "not UTF-8": framed(b"\xff\xfe"),
    "deep": framed(b"[" * 100_000),
    "long number": framed(b"1" * 100_000),
    "a list": framed([]),
    "parts missing": framed({"buffers": []}),
    "no buffers": framed(message()),
    "buffers of no size": framed({**message(), "buffers": ["x"]}),
    "buffers that are not there": framed({**message(), "buffers": [1]}),
    "negative buffers": framed({**message(), "buffers": [-1]}),
    "content of another kind": framed({**message(), "content": [], "buffers": []}),
    "no type": framed({**message(), "header": {"msg_id": "1"}, "buffers": []}),
    "a type that is no text": framed(
        {**message(), "header": {"msg_id": "1", "msg_type": []}, "buffers": []}
    ),
}


@pytest.mark.parametrize("what", BAD)
def test_what_is_no_message_is_said(what: str) -> None:
    with pytest.raises(BadMessage):
        messages.decode(BAD[what])
