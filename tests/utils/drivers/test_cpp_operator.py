"""The drivers of an operator in C++ hear what ran, and refuse a kernel that is not C++."""

import pytest
import torch

from utils.drivers.cpp_operator import OperatorError, cpp_fakes, cpp_schema, run_cpp, trace_cpp
from utils.instruments.cpp_library import load_cpp
from utils.instruments.toolchain import inductor_lacks

pytestmark = [
    pytest.mark.slow(12),
    pytest.mark.skipif(bool(inductor_lacks()), reason="needs a C++ compiler"),
]

COPY = """
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

torch::stable::Tensor softmax(const torch::stable::Tensor& x) {
  STD_TORCH_CHECK(x.dim() > 1, "a matrix, please");
  return torch::stable::clone(x);
}

STABLE_TORCH_LIBRARY(NAMESPACE, m) { m.def("softmax(Tensor x) -> Tensor"); }
STABLE_TORCH_LIBRARY_IMPL(NAMESPACE, CPU, m) { m.impl("softmax", TORCH_BOX(&softmax)); }
"""
X = torch.tensor([[1.0, 2.0], [0.0, 5.0]])


def copy(source=COPY):
    namespace = load_cpp(source)
    torch.library.register_fake(f"{namespace}::softmax", torch.empty_like)
    return namespace


def sums():
    call = "torch::stable::sum(x)"
    return copy(COPY.replace("torch::stable::clone(x)", call))


def in_python():
    torch.library.define("test_cpp_operator::softmax", "(Tensor x) -> Tensor")
    torch.library.impl("test_cpp_operator::softmax", "CPU")(torch.clone)
    return "test_cpp_operator"


def test_a_copy_computes_nothing_and_a_sum_does():
    came = run_cpp(copy, X)
    assert came["output"].equal(X)
    assert not came["computed"]
    assert run_cpp(sums, X)["computed"]


def test_a_refusal_is_heard():
    assert run_cpp(copy, X[0], refuses=True)["refused"]
    assert not run_cpp(copy, X, refuses=True)["refused"]


def test_schema_fake_and_graph():
    said = cpp_schema(copy, X)
    assert (said["arguments"], said["results"]) == (["Tensor"], ["Tensor"])
    assert (said["writes"], said["shares"], said["opcheck"]) == (False, False, "SUCCESS")
    like = ((2, 3), (1, 2), torch.float64, "cuda")
    assert cpp_fakes(copy, [like]) == [like]
    assert trace_cpp(copy, X) == {"graphs": 1, "same": True}


def test_errors_name_no_number():
    with pytest.raises(
        OperatorError, match="^LookupError: the C\\+\\+ has no kernel at the key CPU"
    ):
        run_cpp(in_python, X)
    with pytest.raises(OperatorError, match="^LookupError: there is no operator `softmax`"):
        run_cpp(lambda: "no_such_namespace", X)
    with pytest.raises(TypeError, match="expected the namespace"):
        run_cpp(lambda: None, X)
