"""Messages cut into packets and put together again, by an honest sender and by others."""

from __future__ import annotations

from typing import Any

import pytest

from hood.grader.inside import messages
from hood.grader.inside.messages import FIRST, LAST, PACKET, BadMessage


def message(**changed: Any) -> dict[str, Any]:
    return {"kind": "stream", "cell": "c", "name": "stdout", "text": "x"} | changed


@pytest.mark.parametrize("size", [0, 1, PACKET - 1, PACKET, PACKET + 1, 3 * PACKET])
def test_a_message_arrives_as_it_was_sent(size: int) -> None:
    said = message(text="é" * size)
    assembler = messages.Assembler()
    *before, last = [assembler.take(p) for p in messages.packets(messages.encode(said))]
    assert before == [None] * len(before)
    assert last is not None
    assert messages.decode(last) == said


def test_a_value_that_is_no_json_becomes_text() -> None:
    data = {"a": b"bytes", "b": float("nan"), "c": {1}, "d": "\ud800", "application/json": [1]}
    shown = {"kind": "execute_result", "cell": "", "data": data, "metadata": {}, "more": 1}
    came = messages.decode(messages.encode(shown))
    expected = {"a": "Ynl0ZXM=", "b": "NaN", "c": "{1}", "d": "?", "application/json": [1]}
    assert came == {"kind": "execute_result", "cell": "", "data": expected, "metadata": {}}


def test_an_optional_field_may_be_absent() -> None:
    data = {"kind": "display_data", "cell": "", "data": {}, "metadata": {}}
    assert messages.decode(messages.encode(data)) == {**data, "display_id": None}


def test_an_interrupted_message_does_not_damage_the_next() -> None:
    assembler = messages.Assembler()
    first, *rest = messages.packets(b"a" * 3 * PACKET)
    assert assembler.take(first) is None
    (whole,) = messages.packets(b"b")
    assert assembler.take(whole) == b"b"
    assert [assembler.take(packet) for packet in rest] == [None] * len(rest)
    assert assembler.take(whole) == b"b"


def test_at_most_one_message_is_kept() -> None:
    assembler = messages.Assembler()
    assembler.take(bytes([FIRST]))
    packet = bytes([0]) + bytes(PACKET)
    for _ in range(messages.MAX_MESSAGE // PACKET):
        assembler.take(packet)
    with pytest.raises(BadMessage, match="more than"):
        assembler.take(packet)
    assert assembler.take(bytes([LAST])) is None
    assert assembler.take(messages.packets(b"b")[0]) == b"b"


def error(traceback: Any) -> bytes:
    said = {"kind": "error", "cell": "c", "ename": "E", "evalue": "", "traceback": traceback}
    return messages.encode(said)


BAD = {
    "nothing": b"",
    "no JSON": b"{",
    "not UTF-8": b"\xff\xfe",
    "deep": b"[" * 100_000,
    "long number": b"1" * 100_000,
    "a list": b"[]",
    "no kind": b"{}",
    "an unknown kind": messages.encode(message(kind="status")),
    "a kind that is no text": messages.encode(message(kind=["stream"])),
    "no cell": messages.encode(message(cell=None)),
    "text that is none": messages.encode(message(text={})),
    "data that is none": messages.encode(message(kind="execute_result", data=[], metadata={})),
    "a picture that is no text": messages.encode(
        message(kind="execute_result", data={"image/png": {}}, metadata={})
    ),
    "a traceback that is none": error("line"),
    "a line that is none": error([1]),
}


@pytest.mark.parametrize("what", BAD)
def test_an_invalid_message_is_reported(what: str) -> None:
    with pytest.raises(BadMessage):
        messages.decode(BAD[what])
