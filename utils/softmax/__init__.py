"""A fused softmax in Triton: `softmax(x, dim=-1)`, an operator with everything that PyTorch
requires.

On a CPU, Triton's interpreter runs the kernel program by program in NumPy: slowly, but every load
and store can be recorded. On a GPU the kernel is compiled and launched. Without a GPU,
`compiled(target="sm_90")` returns the compiler's output for such a GPU. Without Triton (it has no
build for macOS) all three raise TritonMissing.
"""
# ruff: noqa: F401  the names of the room

from utils.instruments.launching import TritonMissing
from utils.softmax.compiled import Compiled, compile_kernel, compiled
from utils.softmax.op import softmax
