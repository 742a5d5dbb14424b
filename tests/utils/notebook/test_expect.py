import pytest
import torch

from utils.notebook.expect import (
    ExpectationFailed,
    expect_close,
    expect_equal,
    expect_raises,
    expect_shape,
    expect_shares_storage,
    shares_storage,
)

X = torch.arange(6.0).view(2, 3)


def test_ok_is_one_line_that_names_the_tensor(capsys):
    expect_equal("a matrix", X, X.clone())
    assert capsys.readouterr().out == "ok       a matrix  (float32 (2, 3))\n"


def test_failure_tells_shape_before_values():
    with pytest.raises(ExpectationFailed, match=r"expected \(3, 2\), got \(2, 3\)"):
        expect_equal("a matrix", X, X.t())


def test_failure_shows_mismatches_and_a_guess():
    with pytest.raises(ExpectationFailed) as failed:
        expect_close("scores", X * 2, X)
    message = str(failed.value)
    assert message.startswith("scores: right shape and dtype, wrong values: 5 of 6 differ")
    assert "2 times too large" in message
    assert "[0, 1]: got 2, expected 1" in message


def test_equal_allows_no_rounding_and_close_does():
    nearly = X + 1e-7
    expect_close("nearly", nearly, X)
    with pytest.raises(ExpectationFailed):
        expect_equal("nearly", nearly, X)


def test_close_takes_numbers_as_they_are_typed():
    expect_close("thirds", torch.tensor([1 / 3, 2 / 3]), [0.3333, 0.6667])
    with pytest.raises(ExpectationFailed):
        expect_close("thirds", torch.tensor([1 / 3, 2 / 3]), [0.333, 0.667])
    with pytest.raises(ExpectationFailed, match="expected a tensor|wrong shape"):
        expect_close("a row", torch.ones(1, 2), [1.0, 1.0])


def test_close_refuses_the_wrong_dtype():
    with pytest.raises(ExpectationFailed, match="dtype"):
        expect_close("doubles", X.double(), X)


def test_shape_and_storage():
    expect_shape("x", X, (2, 3))
    expect_shares_storage("a view", X.t(), X)
    with pytest.raises(ExpectationFailed, match="wrong shape"):
        expect_shape("x", X, (3, 2))
    with pytest.raises(ExpectationFailed, match="one is a copy"):
        expect_shares_storage("a copy", X.clone(), X)
    with pytest.raises(ExpectationFailed, match="got a list"):
        expect_shape("x", [1.0, 2.0], (2,))


def test_no_storage_is_shared_where_there_is_no_memory():
    empty = torch.empty(0)
    assert not shares_storage(torch.empty(0), empty)
    assert not shares_storage(torch.empty(3, device="meta"), torch.empty(3, device="meta"))
    assert shares_storage(empty.view(0, 2), empty)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int16, torch.float16, torch.complex64])
def test_a_typed_expectation_takes_the_dtype_of_the_result(dtype):
    expect_close("numbers", torch.tensor([1, 2], dtype=dtype), [1, 2])
    with pytest.raises(ExpectationFailed, match="values"):
        expect_close("numbers", torch.tensor([1, 2], dtype=dtype), [1, 3])


def test_floats_never_become_whole_numbers():
    with pytest.raises(ExpectationFailed, match="dtype"):
        expect_close("numbers", torch.tensor([1, 2]), [1.0, 2.5])


def test_raises():
    expect_raises("no such key", KeyError, {}.__getitem__, "a")
    with pytest.raises(ExpectationFailed, match="expected ValueError, got KeyError"):
        expect_raises("no such key", ValueError, {}.__getitem__, "a")
    with pytest.raises(ExpectationFailed, match="it returned an int"):
        expect_raises("a sum", ValueError, sum, [1, 2])


def test_jupyter_shows_the_message_without_a_traceback():
    lines = ExpectationFailed("x: wrong\nbecause")._render_traceback_()
    assert lines == ["not yet  x: wrong", "         because"]
