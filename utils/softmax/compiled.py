"""Compile kernels on any machine, without a GPU, and return the compiler's output."""

from __future__ import annotations

import functools
import inspect
import re
import subprocess
import tempfile
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from utils.instruments.accelerator import triton_target
from utils.instruments.launching import CompileError, require_triton
from utils.softmax.launch import Direction, Launch, choose
from utils.softmax.run import find_kernel, plan

# This path replaces the source path in PTX, so that PTX is the same on every machine.
_FILE = "/tmp/the_kernels/kernel_under_compilation.py"
_STAGES = ("ttir", "ttgir", "llir", "ptx")
_POINTERS = {
    torch.float16: "*fp16",
    torch.bfloat16: "*bf16",
    torch.float32: "*fp32",
    torch.float64: "*fp64",
}


@dataclass(frozen=True)
class Compiled:
    """The texts of a compiled kernel, from Triton's IR down to machine code."""

    name: str  # the kernel's name
    target: str  # the target for which it was compiled, such as "sm_90"
    ttir: str  # Triton's IR, which has blocks and no threads
    ttgir: str  # Triton's GPU IR, which says which thread has which element
    llir: str  # LLVM IR
    ptx: str  # NVIDIA's virtual assembly
    sass: str | None  # machine code; None if nvdisasm and cuobjdump are missing
    registers: int | None  # registers of one thread; None if sass is None
    # bytes of memory that a thread uses in place of registers; None if sass is None
    stack: int | None
    shared: int  # bytes of shared memory of one program
    num_warps: int  # warps of 32 threads each in one program


def compiled(
    target: str = "sm_90",
    dtype: torch.dtype = torch.float32,
    columns: int = 600,
    *,
    rows: int = 65536,
    direction: Direction = "forward",
    align: int | None = None,
    launch: Launch | None = None,
) -> Compiled:
    """Return the softmax kernel that a GPU would run for contiguous (rows, columns) inputs.

    target: "sm_80", "sm_90", …. This machine needs no such GPU.
    rows: decides how many rows a program takes.
    align: a power of two that divides the number of columns. The kernel relies on it. By default
        it is the largest such power up to 16. With align=1 the kernel must load 600 columns one by
        one.
    launch: replaces the launch from the table.

    Raises ValueError if `target`, `dtype` or `align` is not supported. Raises TritonMissing and
    CompileError like `compile_kernel`.
    """
    if dtype not in _POINTERS:
        raise ValueError(f"dtype: expected one of {', '.join(map(str, _POINTERS))}, got {dtype}")
    if align is not None and (align not in (1, 2, 4, 8, 16) or columns % align):
        raise ValueError(
            "align must be 1, 2, 4, 8 or 16 and must divide the number of columns "
            f"({columns}), got {align}"
        )
    launch = launch or choose(direction, dtype.itemsize, rows, columns)
    meta = torch.empty(rows, columns, dtype=dtype, device="meta")
    inputs = {"x": meta} if direction == "forward" else {"g": meta, "y": meta}
    _, arguments = plan(inputs, meta, launch)
    if align is not None:
        arguments["ALIGN"] = align

    # A launch turns strides of 1 into constants. Arguments with names in capitals are also
    # constants.
    constants = {
        key: value for key, value in arguments.items() if key.isupper() or key.endswith("stride")
    }
    signature = {
        key: _POINTERS[dtype] if key.endswith("_ptr") else "i32"
        for key in arguments
        if key not in constants
    }
    pointers = [key for key in signature if key.endswith("_ptr")]
    return compile_kernel(
        find_kernel(direction, launch),
        signature,
        constants,
        target=target,
        num_warps=launch.warps,
        divisible=pointers,
    )


def compile_kernel(
    kernel: Any,
    signature: Mapping[str, str],
    constants: Mapping[str, Any] | None = None,
    *,
    target: str = "sm_90",
    num_warps: int = 4,
    divisible: Sequence[str] = (),
) -> Compiled:
    """Compile any Triton kernel for a target::

        compile_kernel(add, {"x_ptr": "*fp32", "n": "i32"}, {"BLOCK": 1024}, divisible=["x_ptr"])

    kernel: the result of `@triton.jit`, or the plain function. It may use these names of its
        module: `tl`, `triton`, other `@triton.jit` functions and `tl.constexpr` values.
    signature: argument -> its type in Triton, such as "*fp32" (a pointer), "i32" or "fp32".
    constants: `tl.constexpr` argument -> its value: a number, a bool, or a dtype of `tl`.
    divisible: the names of arguments that are multiples of 16. In a real launch, Triton finds them.
        An address that is a multiple of 16 allows wide loads.

    Raises ValueError if arguments are missing or the target is unknown. Raises TritonMissing
    without Triton. If the kernel does not compile, raises CompileError with Triton's message.
    """
    require_triton()
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from utils.instruments.interpreter import INTERPRETED, compiled_form, compiling

    gpu, function = GPUTarget(*triton_target(target)), getattr(kernel, "fn", kernel)
    name, constants = function.__name__, dict(constants or {})
    expected, given = list(inspect.signature(function).parameters), [*signature, *constants]
    if sorted(expected) != sorted(given):
        raise ValueError(
            f"{name} takes {', '.join(expected)}: list each argument once, either in signature or "
            f"in constants; got {', '.join(given)}"
        )
    with compiling(), tempfile.TemporaryDirectory() as folder, triton.knobs.cache.scope():
        triton.knobs.cache.dir = folder
        jitted = compiled_form(triton.jit(function))
        if not isinstance(triton.language.max, triton.JITFunction):
            raise CompileError(f"{name} can't be compiled here: {INTERPRETED}")
        jitted.fn = types.FunctionType(
            function.__code__.replace(co_filename=_FILE), jitted.fn.__globals__, name
        )
        types_of = {key: "constexpr" if key in constants else signature[key] for key in expected}
        sixteens = {(expected.index(key),): [["tt.divisibility", 16]] for key in divisible}
        try:
            source = ASTSource(jitted, types_of, constants, sixteens)
            made = triton.compile(source, target=gpu, options={"num_warps": num_warps})
        except Exception as error:
            raise CompileError(f"{name} did not compile for {target}:\n{error}") from error
        machine = _machine_code(Path(folder), made)
    texts = {stage: made.asm[stage] for stage in _STAGES}
    shared = made.metadata.shared
    return Compiled(name, target, **texts, **machine, shared=shared, num_warps=num_warps)


def _machine_code(folder: Path, made: Any) -> dict[str, Any]:
    """Return SASS, registers and stack. They are None if Triton's package has no tools for SASS."""
    from unittest import mock

    import triton
    from triton.tools import disasm

    cubin = folder / "kernel.cubin"
    cubin.write_bytes(made.asm["cubin"])
    command = [triton.knobs.nvidia.cuobjdump.path, "--dump-resource-usage", str(cubin)]
    silent = functools.partial(subprocess.check_output, stderr=subprocess.DEVNULL)
    try:
        with mock.patch.object(disasm, "subprocess", mock.Mock(check_output=silent)):
            sass = made.asm["sass"]  # the disassembler prints warnings that do not matter here
        numbers = dict(re.findall(r"(REG|STACK):(\d+)", silent(command, text=True)))
    except (OSError, RuntimeError, subprocess.CalledProcessError):
        return dict.fromkeys(("sass", "registers", "stack"))
    return {"sass": sass, "registers": int(numbers["REG"]), "stack": int(numbers["STACK"])}
