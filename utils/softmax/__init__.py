"""A fused softmax in Triton: `softmax(x, dim=-1)`, an operator with all that PyTorch asks of one.

The device of the tensor decides how the kernel runs. On a CPU, Triton's interpreter runs it program
by program in NumPy: slowly, milliseconds a program, but every load and store can be recorded. It
needs no environment variable and does not depend on what was imported before. On a GPU the kernel
is compiled for that device and launched. Without a GPU, `compiled(target="sm_90")` compiles it for
one in a process of its own, and returns what the compiler wrote: TTIR, TTGIR, LLVM IR, PTX and
SASS. Without Triton (it has no build for macOS) all three raise TritonMissing.
"""

from utils.softmax.compiled import Compiled, compile_kernel, compiled
from utils.softmax.op import softmax
from utils.softmax.run import TritonMissing

__all__ = ["Compiled", "TritonMissing", "compile_kernel", "compiled", "softmax"]
