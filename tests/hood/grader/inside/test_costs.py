"""The cost of reading any message is proportional to its bytes."""

import contextlib
import json

import pytest
import torch

from hood.grader.inside import messages
from hood.judge.connection import codec
from hood.judge.connection.codec import NotByValue
from tests.growth import grows_too_fast, peak
from tests.hood.by_value import copy_by_value

MIB = 2**20


def message(text: str) -> bytes:
    return codec.HEADER.pack(len(text), 0) + text.encode()


def a_dict(key) -> object:
    return lambda n: json.dumps({"dict": [[key(k) for k in range(n)], [0] * n]})


# Name -> a function from a size to JSON, and the smaller of two sizes.
HOSTILE = {
    "keys that collide": (a_dict(lambda k: k * (2**61 - 1)), 6_000),
    "keys that share low bits": (a_dict(lambda k: k << 40), 6_000),
    "floats that collide": (a_dict(lambda k: 2.0 ** (61 * (k % 16))), 6_000),
    "tuples as keys": (a_dict(lambda k: {"tuple": [0, k]}), 6_000),
    "texts as keys": (a_dict(str), 6_000),
    "fields of a dtype": (
        lambda n: json.dumps({"array": [0, 0, "i1," * n, 0, [0], [1], ""]}),
        50_000,
    ),
    "empty lists": (lambda n: "[" + "[]," * n + "0]", 600_000),
    "objects": (lambda n: "[" + '{"":0},' * n + "0]", 250_000),
    "equal objects' keys": (lambda n: "{" + '"":0,' * n + '"a":0}', 300_000),
    "depth": (lambda n: "[" * n, 1_000_000),
    "digits": (lambda n: "[" + ",".join(["9" * 4300] * n) + "]", 400),
    "digits of a float": (lambda n: "0." + "1" * n, 1_000_000),
    "digits of many floats": (lambda n: "[" + ",".join(["0." + "9" * 400] * n) + "]", 4_000),
    "an exponent": (lambda n: "1e" + "9" * n, 1_000_000),
    "escapes": (lambda n: '"' + "\\ud800" * n + '"', 300_000),
    "a shape": (
        lambda n: json.dumps({"array": [0, 0, "int8", 0, [1] * n, [1] * n, ""]}),
        40_000,
    ),
    "empty tensors": (
        lambda n: json.dumps([{"tensor": [0, 0, "int8", 0, [0], [1], ""]}] * n),
        3_000,
    ),
}


def read(data: bytes) -> None:
    with contextlib.suppress(NotByValue):
        codec.unpack(data)


@pytest.mark.slow(20)
@pytest.mark.parametrize("what", HOSTILE)
def test_reading_a_message_takes_linear_time(what):
    make, size = HOSTILE[what]
    assert grows_too_fast(read, lambda n: message(make(n)), size) == ""


@pytest.mark.slow(20)
@pytest.mark.parametrize("what", HOSTILE)
def test_reading_a_message_takes_bounded_memory(what):
    make, size = HOSTILE[what]
    data = message(make(8 * size))
    assert peak(read, data) < 4 * len(data) + 100 * MIB


@pytest.mark.slow(1)
def test_keys_of_honest_answers_are_accepted():
    given = dict.fromkeys((1, "a", True, None, 0.5, torch.float32, (1, "a"), -(2**40)), 0)
    assert copy_by_value(given) == given
    assert len(copy_by_value({f"n{k}": [] for k in range(20_000)})) == 20_000
    assert len(copy_by_value({k: k for k in range(codec.MAX_KEYS)})) == codec.MAX_KEYS


@pytest.mark.parametrize(
    "given",
    [dict.fromkeys(range(codec.MAX_KEYS + 1), 0), {2**63: 0}, {tuple(range(9)): 0}, {((1,),): 0}],
    ids=["many", "large", "long", "nested"],
)
def test_other_keys_are_refused_and_the_allowed_ones_are_named(given):
    with pytest.raises(NotByValue, match="texts are allowed, and at most 1000 small numbers"):
        copy_by_value(given)


def test_too_many_values_are_refused_before_they_are_created():
    data = message("[" + "[]," * 4_000_000 + "0]")
    assert peak(read, data) < 2 * len(data)


@pytest.mark.slow(1)
@pytest.mark.parametrize("unit", ["[],", '{"":0},', '"\\"', "0,"])
def test_a_kernels_message_is_not_made_of_millions_of_values(unit):
    head = '{"kind": "display_data", "cell": "", "metadata": {}, "data": {"a": ['
    data = (head + unit * (8_000_000 // len(unit))).encode()

    def decode(data):
        with pytest.raises(messages.BadMessage):
            messages.decode(data)

    assert peak(decode, data) < 4 * len(data)


def test_text_with_many_commas_is_an_ordinary_message():
    text = 'a, [b], {"c"}\\\n' * 200_000
    data = messages.encode({"kind": "stream", "cell": "", "name": "stdout", "text": text})
    assert messages.decode(data)["text"] == text
