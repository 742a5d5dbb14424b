"""Compile kernels on any machine, and return what the compiler writes; it needs no GPU."""

from __future__ import annotations

import ast
import inspect
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from utils.instruments.accelerator import triton_target
from utils.softmax.launch import Direction, Launch, choose
from utils.softmax.run import DTYPES, find_kernel, plan, require_triton

_CHILD = Path(__file__).with_name("_compile_child.py")
_SECONDS = 300  # a compile takes under one; a busy machine gets its time
_POINTERS = {
    torch.float16: "*fp16",
    torch.bfloat16: "*bf16",
    torch.float32: "*fp32",
    torch.float64: "*fp64",
    torch.int8: "*i8",
    torch.uint8: "*u8",
    torch.int16: "*i16",
    torch.int32: "*i32",
    torch.int64: "*i64",
    torch.bool: "*i1",
}


@dataclass(frozen=True)
class Compiled:
    """A kernel's texts, from Triton's own language down to the machine's.

    Attributes:
        name: the kernel's name.
        target: what it was compiled for, such as "sm_90".
        ttir: Triton's IR: blocks, no threads yet.
        ttgir: Triton's GPU IR: who holds which element.
        llir: LLVM IR.
        ptx: NVIDIA's virtual assembly.
        sass: the machine's own; None where nvdisasm and cuobjdump can't be found.
        registers: of one thread; None where sass is.
        stack: bytes of memory that a thread uses in place of registers; None where sass is.
        shared: bytes of shared memory of one program.
        num_warps: warps of 32 threads each in one program.
    """

    name: str
    target: str
    ttir: str
    ttgir: str
    llir: str
    ptx: str
    sass: str | None
    registers: int | None
    stack: int | None
    shared: int
    num_warps: int


class CompileError(RuntimeError):
    """The kernel did not compile; the message ends with Triton's."""


def pointer_type(dtype: torch.dtype) -> str:
    """Return Triton's name of a pointer to elements of a dtype, such as "*fp32".

    Raises:
        CompileError: if kernels get no tensors of this dtype here.
    """
    if dtype not in _POINTERS:
        names = ", ".join(str(known).removeprefix("torch.") for known in _POINTERS)
        raise CompileError(f"expected tensors of {names} for a kernel, got {dtype}")
    return _POINTERS[dtype]


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

    Args:
        target: "sm_80", "sm_90", …; the GPU need not be there.
        dtype: of the inputs.
        columns: the width of a row.
        rows: their number, which decides how many a program takes.
        direction: "forward" or "backward".
        align: the power of two that the kernel is told divides the width, by default the largest up
            to 16; with align=1 it must load 600 columns one by one.
        launch: instead of the one that the table chooses.

    Raises:
        ValueError: if `target`, `dtype` or `align` is not one of those supported.
        TritonMissing: if Triton is not installed.
        CompileError: if the kernel does not compile.
    """
    if dtype not in DTYPES:
        raise ValueError(f"dtype: expected one of {', '.join(map(str, DTYPES))}, got {dtype}")
    if align is not None and (align not in (1, 2, 4, 8, 16) or columns % align):
        raise ValueError(
            f"align: expected 1, 2, 4, 8 or 16, dividing columns={columns}, got {align}"
        )
    launch = launch or choose(direction, dtype.itemsize, rows, columns)
    meta = torch.empty(rows, columns, dtype=dtype, device="meta")
    inputs = {"x": meta} if direction == "forward" else {"g": meta, "y": meta}
    _, arguments = plan(inputs, meta, launch)
    if align is not None:
        arguments["ALIGN"] = align

    # A launch makes a constant of a stride that is 1, and of what is written in capitals.
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
    divisible: tuple[str, ...] | list[str] = (),
) -> Compiled:
    """Compile any Triton kernel for a target, in a process of its own::

        compile_kernel(add, {"x_ptr": "*fp32", "n": "i32"}, {"BLOCK": 1024}, divisible=["x_ptr"])

    Args:
        kernel: what `@triton.jit` returned, or the plain function. Its source is sent to the other
            process with the `@triton.jit` functions and `tl.constexpr` globals that it uses. Apart
            from these, `tl` and `triton` it may use no globals.
        signature: maps an argument to its type in Triton: "*fp32" (a pointer), "i32", "fp32".
        constants: maps each `tl.constexpr` argument to its value: a number, bool, or dtype of `tl`.
        target: "sm_80", "sm_90", …
        num_warps: warps of a program.
        divisible: arguments known to be multiples of 16, as a launch finds out; an address that is
            one allows wide loads.

    Raises:
        ValueError: if arguments are missing or the target is unknown.
        TritonMissing: if Triton is not installed.
        CompileError: with Triton's message, or naming a global that cannot be sent.
    """
    require_triton()
    gpu = triton_target(target)
    function = getattr(kernel, "fn", kernel)
    constants = dict(constants or {})
    _require_all(function, signature, constants)
    with tempfile.TemporaryDirectory() as folder:
        request = {
            "folder": folder,
            "source": _sources(function),
            "name": function.__name__,
            "signature": {
                name: "constexpr" if name in constants else signature[name]
                for name in inspect.signature(function).parameters
            },
            "constants": {name: _encode(value) for name, value in constants.items()},
            "divisible": list(divisible),
            "target": gpu,
            "num_warps": num_warps,
        }
        answer = _ask(request, function.__name__, target)
    return Compiled(
        function.__name__,
        target,
        sass=answer.pop("sass", None),
        registers=answer.pop("registers", None),
        stack=answer.pop("stack", None),
        num_warps=num_warps,
        **answer,
    )


def _require_all(function: Any, signature: Mapping[str, str], constants: Mapping) -> None:
    expected, given = list(inspect.signature(function).parameters), [*signature, *constants]
    if sorted(expected) != sorted(given):
        raise ValueError(
            f"{function.__name__} takes {', '.join(expected)}: each must be in signature or "
            f"constants, once; got {', '.join(given)}"
        )


def _sources(function: Any) -> str:
    """Return a file's text with the function, and above it what it uses of its module."""
    return "\n\n".join(_globals_of(function).values()) + f"\n\n@triton.jit\n{_source(function)}"


def _globals_of(function: Any) -> dict[str, str]:
    """Return the texts, by name, of the helpers and constants that a kernel uses, in order."""
    import triton
    import triton.language as tl

    found: dict[str, str] = {}
    for name in _loaded(function):
        if name not in function.__globals__:
            continue
        value = function.__globals__[name]
        if isinstance(value, tl.constexpr):
            constant = value.value
            if not isinstance(constant, (bool, int, float, str)):
                raise CompileError(f"the global {name} is a tl.constexpr of {constant!r}")
            # repr writes infinity as inf, which is no Python
            text = f"float({str(constant)!r})" if type(constant) is float else repr(constant)
            found[name] = f"{name} = tl.constexpr({text})"
        elif hasattr(value, "fn") and hasattr(value, "arg_names"):
            if value.fn is not function:
                found |= _globals_of(value.fn)
                found[name] = f"@triton.jit\n{_source(value.fn)}"
        elif value not in (tl, triton):
            raise CompileError(
                f"{function.__name__} uses the global {name}, a {type(value).__name__}: a kernel "
                "sees tl, triton, tl.constexpr values and @triton.jit functions, no others"
            )
    return found


def _loaded(function: Any) -> list[str]:
    """Return the names that a function's code reads and does not set, in order."""
    tree = ast.parse(_source(function))
    [definition] = tree.body
    assert isinstance(definition, ast.FunctionDef)
    body = [node for statement in definition.body for node in ast.walk(statement)]
    names = [n for n in body if isinstance(n, ast.Name)]
    own = {n.id for n in names if not isinstance(n.ctx, ast.Load)}
    own |= set(inspect.signature(function).parameters)
    return list(dict.fromkeys(n.id for n in names if n.id not in own))


def _source(function: Any) -> str:
    """Return the function's text from its `def` on."""
    text = inspect.cleandoc("\n" + inspect.getsource(function))
    begin = re.search(r"^def ", text, re.MULTILINE)
    assert begin is not None
    return text[begin.start() :] + "\n"


def _encode(value: Any) -> Any:
    name = getattr(value, "name", None)  # of a tl.dtype
    return {"dtype": name} if name else value


def _ask(request: dict[str, Any], name: str, target: str) -> dict[str, Any]:
    environment = os.environ | {"TRITON_INTERPRET": "0", "TRITON_CACHE_DIR": request["folder"]}
    # -P: the child's own folder is no place to import from.
    done = subprocess.run(
        [sys.executable, "-P", str(_CHILD)],
        input=json.dumps(request),
        env=environment,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
    )
    if done.returncode:
        said = "\n".join(done.stderr.strip().splitlines()[-20:])
        raise CompileError(f"{name} did not compile for {target}:\n{said}")
    return json.loads(done.stdout)
