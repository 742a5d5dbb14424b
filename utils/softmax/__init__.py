"""A fused softmax in Triton: `softmax(x, dim=-1)`, an operator with all that PyTorch asks of one.

Where the tensor lives decides how the kernel runs. On a CPU, Triton's interpreter runs it program
by program in NumPy: slow, milliseconds a program, but every load and store can be followed; no
environment variable is needed, and it doesn't matter what was imported before. On a GPU it
is compiled for that device and launched. With no GPU at all, `compiled(target="sm_90")` compiles it
for one all the same, in a process of its own, and shows what the compiler wrote: TTIR, TTGIR, LLVM
IR, PTX and SASS. Without Triton (it has no build for macOS) all three say so.
"""

from utils.softmax.compiled import Compiled, compile_kernel, compiled
from utils.softmax.op import softmax
from utils.softmax.run import TritonMissing

__all__ = ["Compiled", "TritonMissing", "compile_kernel", "compiled", "softmax"]
