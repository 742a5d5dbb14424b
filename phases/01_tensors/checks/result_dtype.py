"""Lab 01, exercise 10: Which dtype comes out?"""

import torch

from hood.judge.checks.exercise import ByHand, Check, case

result_dtype = Check(
    "result_dtype",
    parts={"two tensors": 1, "a tensor and a number": 1, "0-dim tensors": 2},
    reads="Which dtype comes out",
    by_hand=ByHand(
        "the exercise is to predict the result of the operation, and not to run it",
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
    # in every run, each of these two operands is the first operand once
    yield pair("0-dim tensors", tensor(torch.float64, 0), tensor(torch.float16))
    yield pair("0-dim tensors", tensor(torch.float16), tensor(torch.float64, 0))
    yield pair("a tensor and a number", True, tensor(torch.uint8))
    yield pair("a tensor and a number", tensor(torch.uint8), True)
    yield pair("0-dim tensors", tensor(torch.float16, 0), tensor(torch.float64, 0))
    yield pair("0-dim tensors", tensor(torch.int16, 0), 70000)
    yield pair("0-dim tensors", tensor(torch.float16, 0), 0.1)
    yield pair("0-dim tensors", tensor(torch.int64, 0), 0.1)
