"""The types that a launch makes once for each shape are Triton's own types."""

import numpy as np
import pytest
import triton.language as tl
from triton.runtime import interpreter

from utils.instruments import shapes_once

core = tl.core


@pytest.fixture
def quick(monkeypatch):
    """Return a function that puts the quick forms into the language."""

    def put():
        for place, name, value in shapes_once.changes():
            monkeypatch.setattr(place, name, value, raising=False)

    yield put
    shapes_once._shapes.clear()


@pytest.mark.parametrize("shape", [[16], [16, 1], [2, 4, 8], core.tuple([core.constexpr(4), 32])])
@pytest.mark.parametrize("element", [tl.float32, tl.int1, core.pointer_type(tl.bfloat16)])
def test_a_type_is_the_same_the_first_time_and_the_second(quick, shape, element):
    usual = core.block_type(element, shape)
    value = core.tensor(None, usual)
    quick()
    for _ in range(2):
        made = core.block_type(element, shape)
        assert (made.name, made.numel, list(made.shape)) == (
            usual.name,
            usual.numel,
            list(usual.shape),
        )
        assert made == usual
        seen = core.tensor(None, made)
        assert [one.value for one in seen.shape] == [one.value for one in value.shape]
        assert (seen.numel.value, seen.dtype) == (value.numel.value, value.dtype)


@pytest.mark.parametrize("shape", [[], [3], [np.int64(16)], [2**21]])
def test_an_impossible_shape_is_refused_in_triton_s_words(quick, shape):
    with pytest.raises((AttributeError, TypeError, ValueError)) as usual:
        core.block_type(tl.float32, shape)
    quick()
    core.block_type(tl.float32, [16])
    for _ in range(2):
        with pytest.raises(type(usual.value)) as error:
            core.block_type(tl.float32, shape)
        assert str(error.value) == str(usual.value)


def test_dtypes_of_numpy_and_blocks_are_the_same(quick):
    types = [tl.float32, tl.bfloat16, tl.int1, tl.uint8, core.pointer_type(tl.float16)]
    types += [core.block_type(one, [4]) for one in types]
    usual = [interpreter._get_np_dtype(one) for one in types]
    quick()
    assert [interpreter._get_np_dtype(one) for one in types for _ in range(2)] == [
        one for one in usual for _ in range(2)
    ]


def test_a_row_is_spread_over_a_block(quick):
    quick()
    row = interpreter.TensorHandle(np.arange(4, dtype=np.int32)[None, :], tl.int32)
    spread = interpreter.interpreter_builder.create_broadcast(row, [2, 4])
    assert spread.data.tolist() == [[0, 1, 2, 3]] * 2
    assert (spread.data.dtype, spread.dtype) == (np.int32, tl.int32)
    with pytest.raises(ValueError, match="broadcast"):
        interpreter.interpreter_builder.create_broadcast(row, [2, 8])
