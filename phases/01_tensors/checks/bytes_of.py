"""Lab 01, exercise 1: What a slice keeps alive"""

import torch

from hood.judge.checks.exercise import Check, case

from .shared import DTYPES, OTHERS

bytes_of = Check(
    "bytes_of",
    parts={"a tensor that fills its storage": 1, "views": 1},
    reads="A tensor is a storage and a view",
)


@bytes_of.reference
def _(t):
    return t.nbytes, t.untyped_storage().nbytes()


@bytes_of.cases
def _(draw):
    for dtype in (*DTYPES, *OTHERS):
        yield case("a tensor that fills its storage", draw.tensor(draw.shape(2), dtype))
    for shape in ((), (draw.integer(2, 9),), draw.shape(3), (3, 0, 2)):
        yield case("a tensor that fills its storage", draw.tensor(shape, torch.uint8))
    wide = draw.tensor((draw.integer(4, 6), 9), torch.bfloat16)
    yield case("views", wide[1, 2])
    yield case("views", wide[1:1])
    seven = draw.tensor((7,), torch.uint8)  # 7 bytes are 3.5 elements of the view
    yield case("views", seven[:6].view(torch.float16)[1:])
    yield case("views", wide[1:3])
    yield case("views", wide[:, ::2])
    yield case("views", draw.tensor((draw.integer(3, 7), 1), torch.float64).expand(-1, 50))
    yield case("views", draw.tensor((draw.integer(7, 12),), torch.float32).unfold(0, 3, 1))
