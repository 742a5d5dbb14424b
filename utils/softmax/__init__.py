"""A fused softmax in Triton: `softmax(x, dim=-1)`, an operator with all that PyTorch asks of one.

On a CPU, Triton's interpreter runs the kernel program by program in NumPy: slowly, but every load
and store can be recorded. On a GPU the kernel is compiled and launched. Without one,
`compiled(target="sm_90")` returns what the compiler writes for it. Without Triton (it has no build
for macOS) all three raise TritonMissing.
"""
# ruff: noqa: F401  the names of the room

from utils.instruments.launching import TritonMissing
from utils.softmax.compiled import Compiled, compile_kernel, compiled
from utils.softmax.op import softmax
