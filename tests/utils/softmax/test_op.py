"""The public function: its refusals, its results and its use."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from utils.softmax import TritonMissing, softmax
from utils.softmax.op import row_softmax

pytestmark = pytest.mark.slow(5)

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.complex64])
def test_another_dtype_is_refused_with_the_ones_there_are(dtype):
    with pytest.raises(TypeError, match="float16, bfloat16, float32, float64, got torch"):
        softmax(torch.zeros(2, 3, dtype=dtype))


@pytest.mark.parametrize("dim", [2, -3, 7])
def test_a_dimension_that_is_not_there_is_refused(dim):
    with pytest.raises(IndexError, match=rf"dim={dim}, but x of shape \(2, 3\) has 2"):
        softmax(torch.zeros(2, 3), dim)


def test_the_schema_says_that_nothing_is_changed():
    assert str(torch.ops.open_the_hood.softmax.default._schema) == (
        "open_the_hood::softmax(Tensor x) -> Tensor"
    )


def test_result_is_contiguous_for_the_last_dimension_and_a_view_for_others():
    x = torch.randn(3, 4, 5)
    assert softmax(x.transpose(0, 2)).is_contiguous()
    y = softmax(x, 0)
    assert y.shape == x.shape
    assert y.movedim(0, -1).is_contiguous()


def test_meta_tensors_get_a_shape_without_a_kernel():
    x = torch.empty(3, 4, dtype=torch.bfloat16, device="meta", requires_grad=True)
    y = softmax(x)
    assert (y.shape, y.dtype, y.device.type) == (x.shape, x.dtype, "meta")
    (dx,) = torch.autograd.grad(y.sum(), x)
    assert dx.shape == x.shape


def test_an_lm_head_takes_it_in_one_line():
    head = nn.Sequential(nn.Linear(64, 600), nn.Softmax(-1))
    x = torch.randn(2, 3, 64)
    want = head(x)
    head[1].forward = softmax
    torch.testing.assert_close(head(x), want)


def test_stderr_stays_empty(capfd):
    row_softmax(torch.full((2, 5), -torch.inf))
    row_softmax(torch.full((2, 5), torch.nan))
    row_softmax(torch.full((2, 5000), -torch.inf))
    assert capfd.readouterr() == ("", "")


def test_without_triton_it_imports_and_says_what_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "triton", None)
    with pytest.raises(TritonMissing, match="pip install triton"):
        softmax(torch.randn(2, 3))
    assert softmax(torch.empty(2, 3, device="meta")).shape == (2, 3)


def test_importing_it_imports_no_triton():
    # the first call of a custom op imports torch._dynamo, which imports Triton; importing our
    # module must not do this
    code = "import sys, utils.softmax; sys.exit('triton' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0
