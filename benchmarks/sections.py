"""The sections of a run that measure no time: checks, MiniGPT, and texts that only a GPU gives."""

from __future__ import annotations

import gzip
import io
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.context import Context, NotRun, require_compiler
from benchmarks.softmax_checks import CHECKS, GPU_CHECKS
from utils.softmax import softmax

TOKENS = (2, 32)  # sequences, positions


def checks_section(context: Context) -> dict[str, Any]:
    """Run every check of the softmax: the functions that the tests call on a CPU."""
    result: dict[str, Any] = {}
    checks = CHECKS if context.dry_run else CHECKS + GPU_CHECKS
    for check in checks:
        name = check.__name__.removeprefix("check_")
        start = time.monotonic()
        try:
            result[name] = {"outcome": "passed", "says": check(context.device)}
        except NotRun as reason:
            result[name] = {"outcome": "not run", "says": str(reason)}
        except Exception as error:
            result[name] = {"outcome": "failed", "says": f"{type(error).__name__}: {error}"[:2000]}
            context.fail(f"{name}: {result[name]['says']}")
        result[name]["seconds"] = round(time.monotonic() - start, 1)
        context.say("{0}: {outcome}: {says}".format(name, **result[name]))
        context.keep(result, complete=False)
    return result


def minigpt() -> nn.Module:
    """Return MiniGPT with its weights, in eval mode, on the CPU. Raises NotRun without them."""
    try:
        from utils.minigpt import load_minigpt

        return load_minigpt().eval()
    except (ImportError, FileNotFoundError) as error:
        raise NotRun(f"utils.minigpt.load_minigpt(): {error}") from error


def tokens(vocabulary: int = 600) -> Tensor:
    """Return the fixed batch of tokens, (2, 32) of int64."""
    return torch.randint(vocabulary, TOKENS, generator=torch.Generator().manual_seed(0))


def minigpt_section(context: Context) -> dict[str, Any]:
    """Record the fixed batch's logits in three dtypes, and their distance from a CPU's logits."""
    batch = tokens()
    with torch.inference_mode():
        want = minigpt()(batch)
        arrays = {"tokens": batch.numpy(), "cpu_float32": want.numpy()}
        distances: dict[str, Any] = {}
        for dtype in (torch.float32, torch.float16, torch.bfloat16):
            model = minigpt().to(context.device, dtype)
            got = model(batch.to(context.device)).float().cpu()
            name = str(dtype).removeprefix("torch.")
            # NumPy has no bfloat16, and float32 holds every bfloat16 exactly
            arrays[name] = got.numpy().astype(np.float16 if name == "float16" else np.float32)
            distances[name] = distance(got, want)
            context.say(f"{name}: largest difference {distances[name]['largest']:.1e}")
        probabilities = softmax(got.to(context.device)).cpu()
        distances["triton softmax"] = distance(probabilities, torch.softmax(got, -1))
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    context.write("logits.npz", buffer.getvalue())
    return {"file": "logits.npz", "shape": list(want.shape), "distance from the CPU": distances}


def distance(got: Tensor, want: Tensor) -> dict[str, float]:
    """Return the largest absolute difference, and the difference's norm relative to want's norm."""
    difference = got.double() - want.double()
    return {
        "largest": difference.abs().max().item(),
        "relative norm": (difference.norm() / want.double().norm()).item(),
    }


def inductor_section(context: Context) -> dict[str, Any]:
    """Record Inductor's code for the LM head with torch's softmax, and with our operator."""
    from torch._inductor.utils import fresh_cache, run_and_get_code

    require_compiler(context.device)
    head = nn.Linear(64, 600).to(context.device)
    x = torch.randn(64, 64, device=context.device, requires_grad=True)
    weight = torch.randn(64, 600, device=context.device)
    result: dict[str, Any] = {}
    for name, function in {"torch": lambda z: torch.softmax(z, -1), "operator": softmax}.items():
        torch._dynamo.reset()
        step = torch.compile(_head_with(head, function), fullgraph=True)
        with fresh_cache():  # code from the cache can't be caught
            _, texts = run_and_get_code(lambda: (step(x) * weight).sum().backward())  # noqa: B023
        if len(texts) != 2:
            context.fail(f"{name}: expected a forward and a backward graph, got {len(texts)}")
        for direction, text in zip(("forward", "backward"), texts, strict=False):
            file = f"inductor_{name}_{direction}.py.txt"
            context.write(file, text)
            result[f"{name} {direction}"] = {
                "file": file,
                "triton kernels": text.count("@triton.jit"),
                "library calls": text.count("extern_kernels."),
            }
            context.say(f"{file}: {len(text.splitlines())} lines")
    return result


def _head_with(head: nn.Module, function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    return lambda x: function(head(x))


def trace_section(context: Context) -> dict[str, Any]:
    """Profile a training step of MiniGPT, and a training step of large layers."""
    model = minigpt().to(context.device).train()
    batch = tokens().to(context.device)

    def small() -> Tensor:
        logits = model(batch[:, :-1])
        return nn.functional.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())

    rows, width = (8, 16) if context.dry_run else (8192, 4096)
    layers = [nn.Sequential(nn.Linear(width, width), nn.GELU()) for _ in range(4)]
    deep = nn.Sequential(*layers).to(context.device, torch.bfloat16)
    x = torch.randn(rows, width, device=context.device, dtype=torch.bfloat16)

    def large() -> Tensor:
        return deep(x).square().mean()

    return {
        **traced(context, "trace.json.gz", model, small),
        "large layers": traced(context, "trace_large.json.gz", deep, large),
    }


def traced(
    context: Context, file: str, model: nn.Module, loss: Callable[[], Tensor]
) -> dict[str, Any]:
    """Write the trace of a training step with AdamW. At its end, the step reads the loss."""
    from torch.profiler import ProfilerActivity, profile, record_function

    optimizer = torch.optim.AdamW(model.parameters())

    def step() -> float:
        with record_function("step"):
            with record_function("forward"):
                value = loss()
            with record_function("backward"):
                value.backward()
            with record_function("optimizer"):
                optimizer.step()
                optimizer.zero_grad()
            with record_function("loss.item()"):
                return value.item()

    for _ in range(3):
        step()
    on_gpu = context.device.type == "cuda"
    activities = [ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * on_gpu
    with profile(activities=activities) as profiler:
        step()
        step()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(path))
        events = json.loads(path.read_text())
    events.pop("traceName", None)
    text = json.dumps(events, separators=(",", ":"))
    context.write(file, gzip.compress(text.encode(), 9, mtime=0))
    return {"file": file, "events": len(events["traceEvents"])}
