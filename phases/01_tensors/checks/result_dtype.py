"""Lab 01, exercise 10: Which dtype comes out?"""

import torch

from utils.checks.exercise import ByHand, Check, case, edited

result_dtype = Check(
    "result_dtype",
    parts={"two tensors": 1, "a tensor and a number": 1, "0-dim tensors": 2},
    reads="Which dtype comes out",
    by_hand=ByHand(
        "the exercise is to say what the operation would do without doing it",
        forbid_ops=frozenset(
            {"aten.add", "aten.sub", "aten.mul", "aten.div", "aten.where", "aten.cat"}
            | {"aten._to_copy", "aten.empty_like", "aten.zeros_like", "aten.ones_like"}
            | {"aten.pow", "aten.maximum", "aten.minimum", "aten.remainder", "aten.stack"}
        ),
        forbid_names=frozenset({"result_type", "*elementwise_dtypes*", "numpy.result_type"})
        | {"zeros*", "ones*", "*empty*", "full*", "rand*"},
    ),
)


@result_dtype.reference
def _(a, b):
    return torch.result_type(a, b)


@result_dtype.cases
def _(draw):
    def tensor(dtype, rank=1):
        return draw.tensor((3,) * rank, dtype)

    def named(operand):
        if not isinstance(operand, torch.Tensor):
            return f"Python {type(operand).__name__}"
        kind = "0-dim tensor" if operand.dim() == 0 else "tensor"
        return f"{str(operand.dtype).removeprefix('torch.')} {kind}"

    def pair(part, a, b):
        return case(part, a, b, shown=f"{named(a)} + {named(b)}")

    pairs = [
        (torch.int32, torch.int64),
        (torch.uint8, torch.int8),
        (torch.int64, torch.float16),
        (torch.float16, torch.bfloat16),
        (torch.float32, torch.float64),
        (torch.bool, torch.uint8),
        (torch.int64, torch.bfloat16),
        (torch.float64, torch.complex64),
    ]
    for a, b in pairs:
        a, b = draw.sample((a, b), 2)
        yield pair("two tensors", tensor(a), tensor(b, draw.integer(1, 2)))
    yield pair("two tensors", draw.tensor((1,), torch.int64), tensor(torch.int32))
    yield pair("two tensors", tensor(torch.float32), draw.tensor((0,), torch.float64))
    numbers = [
        (torch.uint8, 3),
        (torch.int32, 300),
        (torch.float16, 7),
        (torch.bfloat16, 0.5),
        (torch.int32, 0.5),
        (torch.int64, 2.0),
        (torch.bool, 1),
        (torch.bool, 300),
        (torch.uint8, -1),
        (torch.bool, True),
        (torch.uint8, False),
        (torch.int64, 2j),
        (torch.float64, 1j),
        (torch.float16, 1j),
    ]
    for dtype, number in draw.sample(numbers, len(numbers)):
        t = tensor(dtype)
        yield pair("a tensor and a number", *draw.sample((t, number), 2))
    mixed = [
        (torch.float16, torch.float64),
        (torch.int32, torch.int64),
        (torch.int32, torch.float64),
        (torch.bool, torch.int16),
        (torch.bfloat16, torch.float32),
        (torch.float32, torch.float64),
        (torch.uint8, torch.bool),
        (torch.float32, torch.complex128),
        (torch.int32, torch.float16),
        (torch.bool, torch.bfloat16),
    ]
    for dtype, small in mixed:
        yield pair("0-dim tensors", *draw.sample((tensor(dtype), tensor(small, 0)), 2))
    # either may come first, in every run
    yield pair("0-dim tensors", tensor(torch.float64, 0), tensor(torch.float16))
    yield pair("0-dim tensors", tensor(torch.float16), tensor(torch.float64, 0))
    yield pair("a tensor and a number", True, tensor(torch.uint8))
    yield pair("a tensor and a number", tensor(torch.uint8), True)
    yield pair("0-dim tensors", tensor(torch.float16, 0), tensor(torch.float64, 0))
    yield pair("0-dim tensors", tensor(torch.int16, 0), 70000)
    yield pair("0-dim tensors", tensor(torch.float16, 0), 0.1)
    yield pair("0-dim tensors", tensor(torch.int64, 0), 0.1)


def _result_dtype(a, b):
    def described(operand):
        if isinstance(operand, torch.Tensor):
            return (2 if operand.dim() else 1), operand.dtype
        return 0, torch.tensor(operand).dtype

    def category(dtype):
        if dtype.is_complex:
            return 3
        if dtype.is_floating_point:
            return 2
        return 0 if dtype == torch.bool else 1

    (rank_a, a), (rank_b, b) = described(a), described(b)
    if rank_a == rank_b:
        return torch.promote_types(a, b)
    strong, weak = (a, b) if rank_a > rank_b else (b, a)
    if category(weak) <= category(strong):
        return strong
    if category(strong) == 2:
        return strong.to_complex()
    return torch.promote_types(strong, weak)


@result_dtype.misconception(
    "every operand has the same say",
    "a number or a 0-dim tensor widens the result within its own category, as only a tensor with "
    "dimensions may.",
    earns=1,
)
def _(a, b):
    def dtype_of(operand):
        return operand.dtype if isinstance(operand, torch.Tensor) else torch.tensor(operand).dtype

    return torch.promote_types(dtype_of(a), dtype_of(b))


@result_dtype.misconception(
    "a number never matters",
    "the tensor's dtype was kept beside a number of a higher category, such as 0.5 beside "
    "integers.",
    earns=1,
)
def _(a, b):
    if not isinstance(a, torch.Tensor):
        return b.dtype
    if not isinstance(b, torch.Tensor):
        return a.dtype

    def category(t):
        if t.dtype.is_complex:
            return 3
        if t.dtype.is_floating_point:
            return 2
        return 0 if t.dtype == torch.bool else 1

    if (a.dim() == 0) != (b.dim() == 0):
        big, small = (b, a) if a.dim() == 0 else (a, b)
        return small.dtype if category(small) > category(big) else big.dtype
    return torch.promote_types(a.dtype, b.dtype)


result_dtype.misconception(
    "a 0-dim tensor is like any other",
    "a 0-dim tensor widened a tensor with dimensions of its own category.",
    earns=2,
)(edited(_result_dtype, ("2 if operand.dim() else 1", "1")))
result_dtype.misconception(
    "NumPy's float",
    "a Python float beside integers gives float64, NumPy's default; torch's default is float32.",
    earns=1,
)(
    edited(
        _result_dtype,
        ("torch.tensor(operand).dtype",
         "{bool: torch.bool, int: torch.int64, float: torch.float64, "
         "complex: torch.complex128}[type(operand)]"),
    )
)  # fmt: skip
result_dtype.misconception(
    "a complex of its own width",
    "a float tensor took over the width of the complex operand; it only becomes complex.",
    earns=1,
)(
    edited(
        _result_dtype,
        ("""    if category(strong) == 2:
        return strong.to_complex()
""", ""),
    )
)  # fmt: skip
result_dtype.alternate("priority first, then promote")(_result_dtype)
result_dtype.equivalent(
    ("return (0, torch.tensor", "return (-1, torch.tensor"),
    ("else 2, operand", "else 3, operand"),
    ("return (2 if", "return (3 if"),
    ("return 0", "return -1"),
    ("return 3", "return 4"),
    because="of ranks and categories only the order counts",
)
result_dtype.equivalent(
    ("operand.dim() == 0", "operand.dim() <= 0"), because="no tensor has fewer dimensions than 0"
)
result_dtype.equivalent(
    ("(rank_and_dtype(a), rank_and_dtype(b))", "(rank_and_dtype(b), rank_and_dtype(a))"),
    ("(described(a), described(b))", "(described(b), described(a))"),
    ("rank_a < rank_b", "rank_a <= rank_b"),
    ("rank_a > rank_b", "rank_a >= rank_b"),
    because="a sum has the same dtype whichever operand comes first",
)
result_dtype.equivalent(
    ("rank_a == rank_b", "rank_a <= rank_b"),
    because="the first is of no lower rank by then",
    of="the lab's solution",
)
result_dtype.equivalent(
    ("category(dtype_a) == 2", "category(dtype_a) >= 2"),
    ("category(strong) == 2", "category(strong) >= 2"),
    because="nothing is of a higher category than complex, so here it is less",
)
