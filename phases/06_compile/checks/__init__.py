"""What the hidden cells of lab 06 check.

Functions and backends are tried by drivers, with drawn programs and numbers. Points hang on values
first. How many graphs there were is a claim of the learner's own process. Two exercises run Inductor:
one at fixed shapes, and one on products, for which it writes no C++.
"""

from .compiled_head import compiled_head
from .count_graphs import count_graphs
from .fuse import fuse_check
from .generated import generated
from .mended import mended
from .read_code import read_code
from .reporting_backend import reporting_backend
from .saved import saved_check
from .softmax_backend import softmax_backend

__all__ = [
    "reporting_backend",
    "count_graphs",
    "mended",
    "softmax_backend",
    "saved_check",
    "fuse_check",
    "generated",
    "read_code",
    "compiled_head",
]
