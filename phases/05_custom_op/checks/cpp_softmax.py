"""Lab 05, exercise 10: Once in C++"""

import torch

from hood.judge.checks.exercise import Case, Check, not_run
from utils.drivers.custom_op import cut
from utils.instruments.cpp_library import load_cpp
from utils.instruments.toolchain import inductor_lacks

from .shared import EXACTNESS_IS_A_FACT, precise

cpp_softmax = Check(
    "cpp_softmax",
    parts={"any tensor": 1, "any numbers": 1, "the schema": 1, "the fake": 1},
    reads="What C++ sees",
    reads_by_part={"the fake": "What comes out"},
    tolerance=EXACTNESS_IS_A_FACT,
)

# One pass for the maximum and the sum, along the input's own strides.
ONLINE = r"""
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>
#include <cmath>
#include <limits>

using torch::stable::Tensor;

template <typename T>
void fill(const Tensor& x, const Tensor& y) {
  const T* from = x.const_data_ptr<T>();
  T* to = y.mutable_data_ptr<T>();
  const int64_t last = x.dim() - 1, columns = x.size(last), step = x.stride(last);
  for (int64_t row = 0; row < x.numel() / columns; ++row) {
    int64_t start = 0, left = row;
    for (int64_t d = last - 1; d >= 0; --d) {
      start += left % x.size(d) * x.stride(d);
      left /= x.size(d);
    }
    double top = -std::numeric_limits<double>::infinity(), total = 0;
    for (int64_t i = 0; i < columns; ++i) {
      const double value = from[start + i * step];
      if (value > top) {
        total *= std::exp(top - value);
        top = value;
      }
      if (value != -std::numeric_limits<double>::infinity()) total += std::exp(value - top);
    }
    for (int64_t i = 0; i < columns; ++i)
      to[row * columns + i] = static_cast<T>(std::exp(from[start + i * step] - top) / total);
  }
}

Tensor softmax(Tensor x) {
  using torch::headeronly::ScalarType;
  Tensor y = torch::stable::new_empty(x, x.sizes());
  if (x.scalar_type() == ScalarType::Float) fill<float>(x, y);
  else if (x.scalar_type() == ScalarType::Double) fill<double>(x, y);
  else STD_TORCH_CHECK(false, "float32 and float64 only");
  return y;
}

STABLE_TORCH_LIBRARY_FRAGMENT(NAMESPACE, m) { m.def("softmax(Tensor x) -> Tensor"); }
STABLE_TORCH_LIBRARY_IMPL(NAMESPACE, CPU, m) { m.impl("softmax", TORCH_BOX(&softmax)); }
"""


@cpp_softmax.reference
def _():
    namespace = load_cpp(ONLINE)
    torch.library.register_fake(f"{namespace}::softmax", lambda x: x.new_empty(x.shape))
    return namespace


# The first false fact is reported.
FACTS = {
    "[0]": "One of torch's own operators computed something during the call.",
    "[1]": "The result is not contiguous.",
    "[2]": "For a row that has only -inf, the result has numbers where torch has NaN.",
    "[3]": "There is NaN where a number is expected. The places beside the rows contain NaN, and "
    "should not be read. inf - inf, inf / inf and 0 / 0 give NaN, too.",
    "[4]": "The result is nearly right, but less exact than its dtype allows.",
    "[5]": "the result",
}


def facts(came, x):
    """Facts about a result, and the result."""
    out, exact = came["output"], torch.softmax(x.double(), -1)
    own = not came["computed"]
    if not isinstance(out, torch.Tensor) or (out.shape, out.dtype) != (x.shape, x.dtype):
        return own, True, True, True, True, out
    nan = exact.isnan()
    nearly = torch.allclose(out.double(), exact, rtol=0.02, atol=5e-4, equal_nan=True)
    return (
        own,
        out.is_contiguous(),
        bool(out.isnan()[nan].all()),
        not bool(out.isnan()[~nan].any()),
        precise(out, exact) or not nearly,
        out.contiguous(),
    )


@cpp_softmax.cases
def _(draw):
    tensors, numbers, schema, fake = cpp_softmax.parts
    if lack := inductor_lacks():
        for part in cpp_softmax.parts:
            yield not_run(part, f"needs a C++ compiler, and {lack}")
        return

    def asked(part, x, shown):
        def play(subject):
            return facts(subject.drive("cpp_operator:run_cpp", x), x)

        kind = str(x.dtype).removeprefix("torch.")
        return Case(part, play, shown=f"{kind} {tuple(x.shape)}, {shown}", places=FACTS)

    yield asked(tensors, draw.tensor(draw.shape(2)), "contiguous")
    yield asked(tensors, draw.tensor(draw.shape(1)), "contiguous")
    yield asked(tensors, draw.tensor(draw.shape(4, 2, 6)), "contiguous")
    yield asked(tensors, draw.tensor(draw.shape(3), layout="transposed"), "transposed")
    yield asked(tensors, draw.tensor(draw.shape(3, 3, 7)).transpose(0, 1), "two dimensions exchanged")
    rows, columns = draw.shape(2, 3, 7)
    apart = cut(draw.tensor((rows, columns)), 2 * columns + draw.integer(1, 4), 2)
    yield asked(tensors, apart, "with NaN between its numbers")
    rows, columns = draw.shape(2, 2, 6)
    alike = cut(draw.tensor((1, columns))).expand(rows, columns)
    yield asked(tensors, alike, "one row, expanded")
    yield asked(tensors, draw.tensor((draw.integer(2, 7), 1)), "one column")
    yield asked(tensors, draw.tensor((1, 1, 1100)), "one long row")
    for shape in (0, draw.integer(1, 7)), (draw.integer(2, 5), 0, draw.integer(2, 5)):
        yield asked(tensors, draw.tensor(shape), "no rows")

    columns = draw.integer(3, 9)
    x = draw.tensor((2, columns))
    yield asked(numbers, x + torch.tensor([[800.0], [0.0]]), "numbers near 800 in a row")
    yield asked(numbers, x - 800, "numbers near -800")
    x = draw.tensor((3, columns))
    x[0, 0] = -torch.inf
    x[1, :-1] = -torch.inf
    x[2, draw.integer(1, columns - 1)] = -torch.inf
    yield asked(numbers, x, "with -inf")
    x = draw.tensor((2, columns))
    x[draw.integer(0, 1)] = -torch.inf
    yield asked(numbers, x, "a row of -inf")
    x = draw.tensor((draw.integer(2, 4), columns), torch.float64)
    yield asked(numbers, x, "contiguous")
    x = draw.tensor((2, draw.integer(3, 6)), torch.float64)
    large = torch.tensor([[1e9], [-1e300]], dtype=torch.float64)
    yield asked(numbers, x + large, "numbers near 1e9 and near -1e300")

    dtypes = (torch.float16, torch.bfloat16, torch.int64)
    shape = draw.shape(2)
    others = [draw.tensor(shape, dtype) for dtype in dtypes]

    def refused(subject):
        came = [subject.drive("cpp_operator:run_cpp", x, refuses=True) for x in others]
        return [one["refused"] for one in came]

    names = [str(dtype).removeprefix("torch.") for dtype in dtypes]
    places = {f"[{at}]": f"A call with {name} raises no error." for at, name in enumerate(names)}
    yield Case(numbers, refused, shown="another dtype", places=places)

    x = draw.tensor(draw.shape(2))

    def said(subject):
        return subject.drive("cpp_operator:cpp_schema", x)

    places = {
        "['arguments']": "the arguments in the schema",
        "['results']": "the results in the schema",
        "['writes']": "The schema says that the operator writes into an argument.",
        "['shares']": "The schema says that the result shares memory with an argument.",
        "['opcheck']": "opcheck's test_schema does not succeed.",
    }
    yield Case(schema, said, shown="the schema", places=places)

    rows, columns = draw.shape(2, 3, 9)
    inputs = [
        ((rows, columns), (columns, 1), torch.float32, "cpu"),
        ((rows, columns), (1, rows), torch.float64, "cpu"),
        ((columns,), (2,), torch.float32, "cpu"),
        ((2, rows, columns), (1, 2 * columns, 2), torch.float64, "cuda"),
    ]

    def faked(subject):
        return subject.drive("cpp_operator:cpp_fakes", inputs)

    places = {}
    for at, (shape, strides, dtype, device) in enumerate(inputs):
        words = f"of {str(dtype).removeprefix('torch.')} {shape}, strides {strides}, on {device}"
        for place, name in enumerate(("shape", "strides", "dtype", "device")):
            places[f"[{at}][{place}]"] = f"the {name} of the fake result for an input {words}"
    yield Case(fake, faked, shown="the fake", places=places)

    def traced(subject):
        came = subject.drive("cpp_operator:trace_cpp", x)
        return came["graphs"], came["same"]

    places = {"[0]": "The compiler should get exactly one graph.", "[1]": "The compiled code gives another result."}
    yield Case(fake, traced, shown="traced", places=places)
