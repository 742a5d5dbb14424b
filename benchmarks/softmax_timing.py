"""Time the softmax, torch.softmax, torch.compile's softmax, and a copy of as many bytes."""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import asdict
from itertools import product
from typing import Any

import torch
from torch import Tensor

from benchmarks.context import Context
from benchmarks.softmax_cases import backward_reference, forward_reference
from benchmarks.timing import input_sets, measure
from utils.softmax import run
from utils.softmax.launch import Direction, choose, choose_interpreted

SHAPES = (
    (64, 600),
    (512, 600),
    (4096, 600),
    (65536, 600),
    (8192, 4096),
    (4096, 32768),
    (1024, 131072),
)
DRY_SHAPES = ((4, 60), (2, 5000))
DTYPES = (torch.float32, torch.float16, torch.bfloat16)
DIRECTIONS: tuple[Direction, ...] = ("forward", "backward")
CHECKED = 2**24  # elements compared with float64, in rows spread over the tensor
# Tensors that are read or written. Forward: x and y. Backward: y, and the gradients of y and x.
MOVES = {"forward": 2, "backward": 3}


def softmax_section(context: Context) -> dict[str, Any]:
    """Time every shape, dtype and direction; write the results after each."""
    peak = copy_bandwidth(context)
    context.say(f"copy: {peak['bytes per second'] / 1e12:.2f} TB/s")
    result: dict[str, Any] = {"peak copy": peak, "cases": []}
    shapes = DRY_SHAPES if context.dry_run else SHAPES
    for shape, dtype, direction in product(shapes, DTYPES, DIRECTIONS):
        case = describe(shape, dtype, direction)
        try:
            case |= time_case(context, shape, dtype, direction)
        except torch.cuda.OutOfMemoryError:
            case["not run"] = "out of GPU memory"
        except AssertionError as error:
            case["wrong"] = str(error)
        release()
        result["cases"].append(case)
        context.say(line(case, peak["bytes per second"]))
        context.keep(result, complete=False)
    wrong = [case for case in result["cases"] if "wrong" in case]
    if wrong:
        context.fail(f"{len(wrong)} cases disagree with float64 and were not timed")
    return result


def describe(shape: tuple[int, int], dtype: torch.dtype, direction: Direction) -> dict[str, Any]:
    return {
        "direction": direction,
        "dtype": str(dtype).removeprefix("torch."),
        "rows": shape[0],
        "columns": shape[1],
        "bytes": MOVES[direction] * shape[0] * shape[1] * dtype.itemsize,
    }


def time_case(
    context: Context, shape: tuple[int, int], dtype: torch.dtype, direction: Direction
) -> dict[str, Any]:
    """Return the timings of all contenders; each is first compared with float64."""
    device, moved = context.device, describe(shape, dtype, direction)["bytes"]
    functions = contenders(direction, context.dry_run)
    count = input_sets(moved, context.cache_bytes, context.free_bytes())
    sets = [inputs(shape, dtype, direction, device) for _ in range(count)]
    errors = {name: error(function, sets[0], direction) for name, function in functions.items()}
    if errors["triton"] > 1:
        raise AssertionError(f"the error is {errors['triton']:.3g} times the allowed error")
    calls = {
        name: [bind(function, arguments) for arguments in sets]
        for name, function in functions.items()
    }
    calls["copy"] = copies(moved, dtype, device, count)
    expected = max(2e-6, moved / 5e12)
    timings = measure(calls, device, expected)
    launch = (
        choose(direction, dtype.itemsize, *shape)
        if device.type == "cuda"
        else choose_interpreted(shape[1])
    )
    return {
        "input sets": count,
        "launch": asdict(launch),
        "errors": errors,
        "timings": {name: timing.to_dict() for name, timing in timings.items()},
    }


def contenders(direction: Direction, dry_run: bool) -> dict[str, Callable[..., Tensor]]:
    """Return the contenders by name: functions of x, or of the gradient and y.

    A dry run compiles no C++.
    """

    def forward(x: Tensor) -> Tensor:
        return torch.softmax(x, -1)

    def backward(g: Tensor, y: Tensor) -> Tensor:
        return torch.ops.aten._softmax_backward_data(g, y, -1, y.dtype)

    torch._dynamo.reset()
    eager = forward if direction == "forward" else backward
    backend = "aot_eager" if dry_run else "inductor"
    return {
        "triton": run.forward if direction == "forward" else run.backward,
        "torch": eager,
        "compiled": torch.compile(eager, backend=backend, fullgraph=True, dynamic=False),
    }


def inputs(
    shape: tuple[int, int], dtype: torch.dtype, direction: Direction, device: torch.device
) -> tuple[Tensor, ...]:
    """Return random arguments of one call."""
    x = torch.randn(shape, device=device, dtype=dtype).mul_(2)
    return (x,) if direction == "forward" else (x, torch.softmax(torch.randn_like(x), -1))


def bind(function: Callable[..., Tensor], arguments: tuple[Tensor, ...]) -> Callable[[], Tensor]:
    return lambda: function(*arguments)


def error(
    function: Callable[..., Tensor], arguments: tuple[Tensor, ...], direction: Direction
) -> float:
    """Return the largest error in evenly spaced rows, relative to the allowed error."""
    got = function(*arguments)
    step = max(1, got.numel() // CHECKED)
    reference = forward_reference if direction == "forward" else backward_reference
    want, allowed = reference(*(argument[::step] for argument in arguments))
    share = (got[::step].double() - want).abs_().div_(allowed)
    return share.nan_to_num_(nan=1e300, posinf=1e300).max().item()


def copies(
    moved: int, dtype: torch.dtype, device: torch.device, count: int
) -> list[Callable[[], Tensor]]:
    """Return functions that copy a tensor; a copy reads and writes `moved` bytes in all."""
    size = moved // 2 // dtype.itemsize
    sources = [torch.randn(size, device=device, dtype=dtype) for _ in range(count)]
    return [source.clone for source in sources]


def copy_bandwidth(context: Context) -> dict[str, Any]:
    """Return the bytes that the fastest of some large copies reads and writes in a second.

    An operation whose speed depends only on memory can't be faster. The largest copy isn't always
    the fastest.
    """
    sizes = (2**12,) if context.dry_run else (2**27, 2**28, 2**30)
    found = []
    for size in sizes:
        size = min(size, context.free_bytes() // 16)
        calls = copies(2 * size, torch.float32, context.device, 2)
        timing = measure({"copy": calls}, context.device, 2 * size / 5e12)["copy"]
        found.append(
            {
                "bytes": 2 * size,
                "bytes per second": 2 * size / timing.seconds,
                "timing": timing.to_dict(),
            }
        )
        release()
    return max(found, key=lambda copy: copy["bytes per second"])


def release() -> None:
    """Give cached memory back, so that the next case can use it."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def line(case: dict[str, Any], peak: float) -> str:
    """Return one case as a line: microseconds, then the share of the copy bandwidth."""
    name = f"{case['direction']:8} {case['dtype']:8} {case['rows']:>6} x {case['columns']:<6}"
    if "timings" not in case:
        return f"{name} {case.get('wrong') or case['not run']}"
    times = {key: timing["seconds"] for key, timing in case["timings"].items()}
    parts = [f"{key} {seconds * 1e6:9.1f} us" for key, seconds in times.items()]
    share = case["bytes"] / times["triton"] / peak
    return f"{name} {'  '.join(parts)}  {share:4.0%} of copy, {better(case):.2f}x the better"


def better(case: dict[str, Any]) -> float:
    """Return the speed relative to the faster of torch and its compiler."""
    times = {key: timing["seconds"] for key, timing in case["timings"].items()}
    return min(times["torch"], times["compiled"]) / times["triton"]
