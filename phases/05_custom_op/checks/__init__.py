"""What the hidden cells of lab 05 check.

Kernels run in Triton's interpreter, on views that are cut from a larger storage; operators are
registered anew for each case, with right kernels handed in. Points hang on values. That a kernel
compiles for a GPU, that `opcheck` passes and how many graphs there were is a claim of the learner's
own process.
"""

from .make_softmax import make_softmax
from .make_twice import make_twice
from .plan_rows import plan_rows
from .read_ptx import read_ptx
from .roofline import roofline
from .softmax_backward import softmax_backward
from .swap_softmax import swap_softmax
from .triton_softmax import triton_softmax

__all__ = [
    "plan_rows",
    "triton_softmax",
    "softmax_backward",
    "read_ptx",
    "make_softmax",
    "make_twice",
    "roofline",
    "swap_softmax",
]
