import contextlib
import dataclasses
import json
import math
import sys
import types

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hood.judge.connection import codec
from hood.judge.connection.codec import NotByValue, pack, unpack
from hood.judge.values import tensors
from tests.hood.by_value import copy_by_value
from utils.minigpt import MiniGPTConfig


def message(tree, blobs=b""):
    text = json.dumps(tree).encode()
    return codec.HEADER.pack(len(text), len(blobs)) + text + blobs


def test_copies_keep_the_view_and_share_nothing_with_the_original():
    base = torch.arange(24.0).view(4, 6)
    view = base[1:].t()
    copy_base, copy_view = copy_by_value((base, view))
    assert copy_view.stride() == view.stride()
    assert copy_view.storage_offset() == view.storage_offset()
    assert torch.equal(copy_view, view)
    copy_base[1, 0] = -1
    assert copy_view[0, 0] == -1, "the two copies share a storage, as the originals do"
    assert base[1, 0] == 6


def test_a_view_of_part_of_any_storage_is_transferred():
    bytes_of = torch.arange(11, dtype=torch.uint8)
    view = bytes_of[:8].view(torch.float32)[1:]
    came = copy_by_value(view)
    assert torch.equal(came, view)
    assert came.untyped_storage().nbytes() == 11
    assert not any(copy._is_view() for copy in (came, *copy_by_value([bytes_of, torch.ones(2, 3)])))


def test_each_nan_is_separate():
    assert copy_by_value([math.nan]) != copy_by_value([math.nan])
    assert len(copy_by_value({math.nan: 1, float("nan"): 2})) == 2


def test_scalars_containers_and_configurations_are_transferred():
    value = {"a": [1, 2.5, "s", None, True], "b": (np.float64(0.5), torch.float16), 3: b"\x00"}
    back = {"a": [1, 2.5, "s", None, True], "b": (0.5, torch.float16), 3: b"\x00"}
    assert copy_by_value(value) == back
    assert copy_by_value(MiniGPTConfig(d_model=32)) == MiniGPTConfig(d_model=32)
    assert copy_by_value(slice(1, None, 2)) == slice(1, None, 2)
    assert copy_by_value(1 + 2j) == 1 + 2j
    assert copy_by_value(torch.ones(2, requires_grad=True)).requires_grad


@pytest.mark.parametrize("dtype", sorted(tensors.DTYPES), ids=str)
def test_every_dtype_is_transferred_bit_for_bit(dtype):
    kind = tensors.DTYPES[dtype]
    data = torch.arange(1, 17, dtype=torch.uint8)
    if kind is torch.bool:
        data = data % 2
    value = data.view(kind)
    came = copy_by_value(value)
    assert came.dtype == kind
    assert bytes(came.untyped_storage()) == bytes(value.untyped_storage())


def test_conjugates_negatives_and_empty_tensors_are_transferred():
    z = torch.tensor([1 + 2j])
    assert torch.equal(copy_by_value(z.conj()), z.conj())
    assert torch.equal(copy_by_value(z.conj().imag), z.conj().imag)
    for shape in [(0,), (3, 0, 2)]:
        assert copy_by_value(torch.empty(shape)).shape == shape


def test_arrays_keep_dtype_shape_and_order():
    arrays = (np.arange(6.0).reshape(2, 3), np.asfortranarray(np.eye(3)), np.array(2))
    for array in (*arrays, np.empty((3, 0, 2)), np.array([True])):
        came = copy_by_value(array)
        assert came.dtype == array.dtype
        assert came.flags.f_contiguous == array.flags.f_contiguous
        assert np.array_equal(came, array)
        assert came.flags.writeable
    backwards = np.arange(6, dtype="u2")[::-1]
    assert np.array_equal(copy_by_value(backwards), backwards)


@given(st.floats(allow_nan=True))
@settings(max_examples=200)
def test_floats_are_exact(value):
    came = copy_by_value(value)
    assert came == value or (math.isnan(came) and math.isnan(value))
    assert math.isnan(value) or math.copysign(1, came) == math.copysign(1, value)


class _Liar(torch.Tensor):
    pass


class _Int(int):
    def __eq__(self, other):
        return True

    __hash__ = int.__hash__


def test_subclasses_arrive_as_their_base_class():
    assert type(copy_by_value(torch.ones(2).as_subclass(_Liar))) is torch.Tensor
    assert type(copy_by_value(_Int(3))) is int
    assert copy_by_value(_Int(3)) != 4


class _Wrapper(torch.Tensor):
    """A subclass without its own storage."""

    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    def __init__(self, inner):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        plain = [a.inner if isinstance(a, cls) else a for a in args]
        return cls(func(*plain, **(kwargs or {})))


def test_a_wrapper_around_a_tensor_is_refused_with_a_remedy():
    with pytest.raises(NotByValue, match="class _Wrapper: expected the plain tensor inside it"):
        copy_by_value(_Wrapper(torch.ones(2)))


def nested(depth):
    return [nested(depth - 1)] if depth else 0


@pytest.mark.parametrize(
    "value",
    [
        object(),
        len,
        np.array([object()]),
        np.zeros(2, dtype=">f4"),
        torch.ones(2, device="meta"),
        torch.eye(2).to_sparse(),
        nested(40),
        list(range(200_000)),
        torch.zeros(1 << 29, dtype=torch.uint8),
        torch.zeros(1).expand(1 << 15, 1 << 15),
        "x" * (codec.MAX_JSON + 1),
        10**5000,
        dataclasses.make_dataclass("Elsewhere", ["x"])(1),
    ],
    ids=lambda value: type(value).__name__,
)
def test_unsupported_values_are_refused(value):
    with pytest.raises(NotByValue):
        copy_by_value(value)


T = [0, 8, "float32", 0, [2], [1], ""]


@pytest.mark.parametrize(
    ("tree", "blobs"),
    [
        ({"pickle": "gASV"}, b""),
        ({"bytes": "", "tuple": []}, b""),
        ({"complex": [1.0, 2.0, 3.0]}, b""),
        ({"complex": [[], 0.0]}, b""),
        ({"complex": ["1", "2"]}, b""),
        ({"complex": "12"}, b""),
        ({"tensor": [0, 8.0, "float32", 0, [2], [1], ""]}, b"x" * 8),
        ({"tensor": [0.0, 8, "float32", 0, [2], [1], ""]}, b"x" * 8),
        ({"tensor": [0, 8, "float32", 0.0, [2], [1], ""]}, b"x" * 8),
        ({"tensor": [0, 8, "float32", 0, [2.0], [1], ""]}, b"x" * 8),
        ({"dict": [[[]], [1]]}, b""),
        ({"dict": [[1, 2], [3]]}, b""),
        ({"dict": [[1], [2], [3]]}, b""),
        ({"dict": [1, 2]}, b""),
        ({"dtype": "save"}, b""),
        ({"config": ["os", "system", {}]}, b""),
        ({"config": ["hood.judge.checks.exercise", "case", {}]}, b""),
        ({"tensor": T}, b""),
        ({"tensor": [0, 8, "float32", 1, [2], [1], ""]}, b"x" * 8),
        ({"tensor": [0, 8, "float32", 0, [2], [2], ""]}, b"x" * 8),
        ({"tensor": [0, 8, "float32", 0, [2], [-1], ""]}, b"x" * 8),
        ({"tensor": [0, 8, "float32", 0, [-2], [1], ""]}, b"x" * 8),
        ({"tensor": [0, 8, "float32", 0, [True], [1], ""]}, b"x" * 8),
        ({"tensor": [1, 8, "float32", 0, [2], [1], ""]}, b"x" * 8),
        ({"tensor": [-1, 8, "float32", 0, [2], [1], ""]}, b"x" * 8),
        ({"tensor": [0, 8, "float32", 0, [1 << 40], [0], ""]}, b"x" * 8),
        ({"tensor": [0, 8, "int32", 0, [2], [1], "g"]}, b"x" * 8),
        ({"array": [0, 8, "O", 0, [1], [1], ""]}, b"x" * 8),
        ({"array": [0, 8, "bfloat16", 0, [4], [1], ""]}, b"x" * 8),
        ({"array": [0, 8, "float32", 0, [2], [1], "g"]}, b"x" * 8),
        ({"array": [0, 8, "float32", 0, [3], [1], ""]}, b"x" * 8),
    ],
    ids=str,
)
def test_hostile_messages_are_refused(tree, blobs):
    with pytest.raises(NotByValue):
        unpack(message(tree, blobs))


def test_a_class_named_in_a_message_must_be_a_class(monkeypatch):
    @dataclasses.dataclass
    class Caller:
        def __call__(self) -> str:
            raise AssertionError("called")

    monkeypatch.setattr("hood.judge.checks.compare.EXACT", Caller())
    with pytest.raises(NotByValue):
        unpack(message({"config": ["hood.judge.checks.compare", "EXACT", {}]}))


def test_a_message_loads_no_module(monkeypatch):
    """A package may load an attribute on request, as utils.views does with its views."""
    lazy = types.ModuleType("utils.lazy")

    def load(name: str) -> type:
        raise AssertionError("loaded")

    lazy.__getattr__ = load
    monkeypatch.setitem(sys.modules, "utils.lazy", lazy)
    for module in ("utils.lazy", "utils.not_loaded_yet"):
        with pytest.raises(NotByValue):
            unpack(message({"config": [module, "MiniGPTConfig", {}]}))
    assert "utils.not_loaded_yet" not in sys.modules


def test_hostile_bytes_are_refused():
    whole = pack([torch.arange(3.0), "x"])
    for cut in (codec.HEADER.size, len(whole) - 1):
        with pytest.raises(NotByValue):
            unpack(whole[:cut])
    with pytest.raises(NotByValue):
        unpack(whole + b"x")
    with pytest.raises(NotByValue):
        unpack(message("x").replace(b'"x"', b"nan"))
    with pytest.raises(NotByValue):
        codec.sizes(codec.HEADER.pack(1, 1 << 60))
    deep = b"[" * 100_000
    with pytest.raises(NotByValue):
        unpack(codec.HEADER.pack(len(deep), 0) + deep)


@given(st.binary(max_size=200), st.binary(max_size=64))
@settings(max_examples=300)
def test_random_bytes_are_only_refused(text, blobs):
    with contextlib.suppress(NotByValue):
        unpack(codec.HEADER.pack(len(text), len(blobs)) + text + blobs)


def test_lone_surrogates_become_question_marks():
    assert unpack(message("a\ud800b")) == "a?b"
