"""A fused softmax in Triton: `softmax(x, dim=-1)`, a complete PyTorch operator.

On a CPU, Triton's interpreter runs the kernel program by program in NumPy. This is slow, but every
load and store can be recorded. On a GPU, the kernel is compiled and launched. On a machine without
a GPU, `compiled(target="sm_90")` returns the compiler's output for a GPU. Without Triton, which has
no build for macOS, `softmax` and `compiled` raise TritonMissing.
"""
# ruff: noqa: F401  the names of the room

from utils.instruments.launching import TritonMissing
from utils.softmax.compiled import Compiled, compile_kernel, compiled
from utils.softmax.op import softmax
