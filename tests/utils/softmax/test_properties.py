"""For any shape, strides, dtype, values and tiling, the results agree with float64."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.softmax_cases import LAYOUTS, VALUES, Case
from benchmarks.softmax_checks import check_case
from utils.softmax import run, softmax
from utils.softmax.launch import Launch
from utils.softmax.run import DTYPES

pytestmark = pytest.mark.slow(7)

CPU = torch.device("cpu")

launches = st.none() | st.builds(
    Launch, loop=st.booleans(), tile=st.sampled_from([16, 32, 64, 256]), warps=st.just(1)
)
shapes = st.builds(
    lambda leading, columns: (*leading, columns),
    st.lists(st.integers(0, 4), max_size=3),
    st.integers(0, 70),
)
cases = st.builds(
    Case,
    shape=shapes.filter(lambda shape: 0 not in shape),
    dtype=st.sampled_from(DTYPES),
    layout=st.sampled_from(LAYOUTS),
    values=st.sampled_from(VALUES),
    launch=launches,
    seed=st.integers(0, 999),
)


@settings(max_examples=60, deadline=None)
@given(cases)
def test_forward_and_backward_agree_with_float64(case):
    check_case(case, CPU)


@settings(max_examples=30, deadline=None)
@given(shapes, st.data())
def test_any_dimension_of_any_shape_also_an_empty_one(shape, data):
    dim = data.draw(st.integers(-len(shape), len(shape) - 1))
    x = torch.randn(shape, dtype=torch.float64, requires_grad=True)
    y = softmax(x, dim)
    want = torch.softmax(x, dim)
    torch.testing.assert_close(y, want)
    g = torch.randn(shape, dtype=torch.float64)
    got, expected = torch.autograd.grad(y, x, g), torch.autograd.grad(want, x, g)
    torch.testing.assert_close(got, expected)


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 40), st.sampled_from([16, 32]), st.integers(0, 999))
def test_both_kernels_agree_to_rounding(columns, tile, seed):
    x = Case((3, columns), seed=seed).tensor(CPU)
    once, loop = (run.forward(x, Launch(kind, tile, 1)) for kind in (False, True))
    torch.testing.assert_close(once, loop, rtol=1e-6, atol=1e-30)


@pytest.mark.parametrize("columns", [4095, 4096, 4097, 9000])
def test_rows_wider_than_a_block(columns):
    check_case(Case((2, columns), values="some -inf"), CPU)
