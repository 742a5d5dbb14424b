"""Launch a Triton kernel on its tensors' device, and compile it for a GPU that this machine lacks.

For tensors on the CPU, `launch` uses Triton's interpreter. The kernel of a recorded launch can be
compiled for a GPU on a machine without a GPU. This finds code that only the interpreter accepts.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from utils.instruments.accelerator import compiles_for, triton_target

_recordings: list[list[Launched]] = []
# The PTX of kernels that were compiled before: a cell and a check compile the same kernel. The keys
# have everything that determines the PTX, as in Triton's own cache on a disk.
_lowered_before: dict[tuple[str, ...], str] = {}


class TritonMissing(RuntimeError):
    """Triton cannot be imported. The message says what to do."""


class CompileError(RuntimeError):
    """The kernel did not compile. The message ends with Triton's message."""


@dataclass(frozen=True, eq=False)
class Launched:
    """A recorded launch, with the kernel's arguments: name -> value."""

    kernel: Any
    grid: tuple[int, ...]
    arguments: Mapping[str, Any]
    num_warps: int


def launch(
    kernel: Any, grid: tuple[int, ...], *args: Any, num_warps: int = 4, **kwargs: Any
) -> None:
    """Run one program of a `@triton.jit` kernel for each point of a grid.

    The kernel runs on the device of its tensors::

        launch(add, (triton.cdiv(n, 256),), x, y, n, BLOCK=256)

    If a size of the grid is 0, nothing runs. ``num_warps`` has no effect in the interpreter. Raises
    TritonMissing if Triton is not installed. Raises TypeError if `kernel` is not a kernel, if
    `grid` is not a grid, or if the tensors are on several devices.
    """
    require_triton()
    if hasattr(getattr(kernel, "fn", None), "fn"):
        raise TypeError(
            f"launch expects what @triton.jit returned, but got a {type(kernel).__name__} around "
            "it. Remove that decorator, and pass the constants that it would choose to launch: "
            "without a GPU there is nothing to time"
        )
    if not hasattr(kernel, "fn"):
        raise TypeError(
            f"launch expects what @triton.jit returned, got a {type(kernel).__name__}: "
            "is the decorator missing?"
        )
    if not isinstance(grid, (tuple, list)) or not all(type(size) is int for size in grid):
        raise TypeError(f"launch expects a tuple of whole numbers as grid, got {grid!r}")
    bound = inspect.signature(kernel.fn).bind(*args, **kwargs)
    bound.apply_defaults()
    arguments = dict(bound.arguments)
    devices = {value.device for value in arguments.values() if isinstance(value, torch.Tensor)}
    if len(devices) > 1:
        raise TypeError(f"launch expects tensors on one device, got {sorted(map(str, devices))}")
    for recording in _recordings:
        recording.append(Launched(kernel, tuple(grid), arguments, num_warps))
    if 0 in grid:
        return
    device = devices.pop() if devices else torch.device("cpu")
    launch_on(device, kernel, tuple(grid), arguments, num_warps)


def launch_on(
    device: torch.device, kernel: Any, grid: tuple[int, ...], arguments: dict, warps: int
) -> None:
    """Launch a kernel on a device, or interpret it if Triton does not compile for the device."""
    if accelerator := compiles_for(device):
        with accelerator.current(device):
            kernel[grid](**arguments, num_warps=warps)
    else:
        from utils.instruments.interpreter import interpreted

        interpreted(kernel)[grid](**arguments)


@contextmanager
def recorded_launches() -> Iterator[list[Launched]]:
    """Yield a list to which each `launch` is appended while the context is open."""
    recording: list[Launched] = []
    _recordings.append(recording)
    try:
        yield recording
    finally:
        # `remove` could remove another list that is equal
        _recordings[:] = [other for other in _recordings if other is not recording]


def ptx_of(launched: Launched, target: str = "sm_90") -> str:
    """Return the PTX that the compiler writes for a launch with these arguments, without a GPU.

    The kernel is compiled as a launch on a GPU would compile it: an argument 1 becomes a constant,
    and the compiler knows which numbers and addresses are divisible by 16. The assembler, which
    turns PTX into machine code, is not run. If the kernel does not compile, raises CompileError
    with the compiler's message.
    """
    require_triton()
    import triton.language as tl
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource
    from triton.compiler.compiler import make_backend
    from triton.runtime.jit import JITFunction, create_function_from_signature

    from utils.instruments.interpreter import INTERPRETED, compiled_form, compiling

    kernel, name = compiled_form(launched.kernel), launched.kernel.fn.__name__
    if not isinstance(kernel, JITFunction) or not isinstance(tl.max, JITFunction):
        raise CompileError(f"{name} can't be compiled here: {INTERPRETED}")
    gpu = GPUTarget(*triton_target(target))
    backend = make_backend(gpu)
    with compiling():
        try:
            # the same as in a launch by Triton: types, constants and known divisors
            bind = create_function_from_signature(kernel.signature, kernel.params, backend)
            bound, specialization, _ = bind(**launched.arguments)
            asked = {"num_warps": launched.num_warps}
            options, *described = kernel._pack_args(backend, asked, bound, specialization, None)
            source = ASTSource(kernel, *described)
            key = target, source.hash(), options.hash()
            if key not in _lowered_before:
                _lowered_before[key] = _lowered(source, backend, gpu, options)
            return _lowered_before[key]
        except TypeError as error:
            hint = (
                "a kernel gets tensors and numbers, and every other parameter must be a "
                "tl.constexpr"
            )
            raise CompileError(f"{name} does not compile for {target}: {error}; {hint}") from error
        except Exception as error:
            # the compiler's message begins with the code and a caret
            lines = str(error).strip().splitlines() or [type(error).__name__]
            words = f"{name} does not compile for {target}: {lines[-1].strip()}"
            raise CompileError(words) from error


def _lowered(source: Any, backend: Any, gpu: Any, options: Any) -> str:
    from triton._C.libtriton import ir

    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    stages: dict[str, Any] = {}
    backend.add_stages(stages, options, source.language)
    helpers = backend.get_codegen_implementation(options), backend.get_module_map()
    module = source.make_ir(gpu, options, *helpers, context)
    metadata = {"target": gpu, **options.__dict__}
    for stage, lower in stages.items():
        module = lower(module, metadata)
        if stage == "ptx":
            return module
    raise CompileError(f"expected a stage named ptx in Triton, got {', '.join(stages)}")


def require_triton() -> None:
    """Raise TritonMissing, with what to do about it, if Triton cannot be imported."""
    try:
        import triton  # noqa: F401
    except ImportError as error:
        raise TritonMissing(
            "This runs Triton kernels, but Triton can't be imported here. Triton is built for "
            "Linux: run `pip install triton==3.7.1` on a Linux machine or in a Linux container."
        ) from error


# The operators that the interpreter itself uses on the tensors of a launch. A rule that lists the
# operators that an answer may use must also list these operators.
INTERPRETER_OPS = frozenset({"aten.copy_", "aten.new_empty", "aten.set_"})
