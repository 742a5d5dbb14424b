"""C++ text becomes operators. An error in a text is said, and does not end the process."""

import pytest
import torch

from utils.instruments.cpp_library import CppError, load_cpp
from utils.instruments.toolchain import inductor_lacks

pytestmark = [
    pytest.mark.slow(12),
    pytest.mark.skipif(bool(inductor_lacks()), reason="needs a C++ compiler"),
]

TWICE = """
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

torch::stable::Tensor twice(const torch::stable::Tensor& x) {
  auto y = torch::stable::clone(x);
  float* at = y.mutable_data_ptr<float>();
  for (int64_t i = 0; i < y.numel(); ++i) at[i] *= 2;
  return y;
}

STABLE_TORCH_LIBRARY(NAMESPACE, m) { m.def("twice(Tensor x) -> Tensor"); }
STABLE_TORCH_LIBRARY_IMPL(NAMESPACE, CPU, m) { m.impl("twice", TORCH_BOX(&twice)); }
"""


def test_each_load_has_a_namespace_of_its_own():
    first, second = load_cpp(TWICE), load_cpp(TWICE)
    assert first != second
    for namespace in (first, second):
        op = getattr(torch.ops, namespace).twice
        assert op(torch.ones(3)).tolist() == [2, 2, 2]
        assert str(op.default._schema) == f"{namespace}::twice(Tensor x) -> Tensor"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "at[i] *= 2;",
            "at[i] *= 2",
            r"does not compile:\noperator.cpp:9:\d+: error: expected ';'",
        ),
        ("twice(Tensor x)", "twice(Tensor x", r"can't be registered:\nexpected \) but found"),
        ("NAMESPACE", "fixed", r"registers nothing with STABLE_TORCH_LIBRARY\(NAMESPACE"),
    ],
)
def test_what_is_wrong_with_a_text_is_said(old, new, said):
    for _ in range(2):  # the second answer comes without the compiler
        with pytest.raises(CppError, match=said):
            load_cpp(TWICE.replace(old, new))
