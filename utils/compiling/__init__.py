"""What `torch.compile` captured, believed, saved and wrote, as plain facts.

All that the course knows of the compiler's private interface is reached in this package. It was
read on torch 2.13; `tests/utils/test_compiling.py` names the part that broke when a version
changes it.

Every function starts with an empty compiler (`torch._dynamo.reset`), so that what it finds depends
on its arguments alone. Where nothing can be compiled, a notebook's cell says so in one line.
"""

from utils import one_line  # noqa: F401
from utils.compiling.aot import Split, nbytes, split
from utils.compiling.dynamo import Answer, Kept, captured, kept, listening, replay
from utils.compiling.inductor import Pass, Written, loops, written

__all__ = [
    "Answer",
    "Kept",
    "Pass",
    "Split",
    "Written",
    "captured",
    "kept",
    "listening",
    "loops",
    "nbytes",
    "replay",
    "split",
    "written",
]
