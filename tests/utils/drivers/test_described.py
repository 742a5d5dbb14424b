"""Tensors described by numbers alone, too large for a real tensor."""

import pytest
import torch

from utils.drivers.described import Described, asked
from utils.views import stride_explorer

FAR = 2**70


@pytest.fixture
def wide():
    return Described((3, 4), (FAR, 2), FAR + 1, torch.float16)


def test_it_says_how_it_is_laid_out(wide):
    assert wide.shape == wide.size() == torch.Size((3, 4))
    assert (wide.size(1), wide.stride(1), wide.dim(), wide.ndim) == (4, 2, 2, 2)
    assert (wide.stride(), wide.storage_offset()) == ((FAR, 2), FAR + 1)
    assert (wide.dtype, wide.itemsize, wide.element_size()) == (torch.float16, 2, 2)


@pytest.mark.parametrize(
    "make", [torch.as_strided, Described.as_strided], ids=["the function", "the method"]
)
def test_as_strided_makes_another(wide, make):
    view = make(wide, (4,), [FAR])
    assert (view.shape, view.stride(), view.storage_offset()) == ((4,), (FAR,), FAR + 1)
    assert make(wide, (4,), (2,), 7).storage_offset() == 7


@pytest.mark.parametrize(
    ("ask", "error"),
    [
        (lambda t: t.transpose(0, 1), AttributeError),
        (lambda t: torch.transpose(t, 0, 1), TypeError),
        (lambda t: t[0], TypeError),
        (lambda t: t.numpy(), AttributeError),
        (lambda t: t.data_ptr(), AttributeError),
        (
            lambda t: stride_explorer(t, index=(0, 0)),
            TypeError,
        ),  # the course's own class has only tensors
        (lambda t: torch.empty_strided(t.shape, t.stride(), device="meta"), TypeError),
    ],
)
def test_other_operations_are_refused(wide, ask, error):
    with pytest.raises(error):
        ask(wide)


def test_the_driver_returns_the_functions_result():
    layout = (2, 3), (FAR, 1), 5, torch.float32
    assert asked(lambda t, i: t.stride(i), layout, 0) == FAR
    assert asked(lambda t: t.as_strided((3,), (FAR,)), layout) == ((3,), (FAR,), 5)
