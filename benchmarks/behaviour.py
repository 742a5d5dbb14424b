"""Measure how a GPU and its host work together. Lessons read the records."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from statistics import median
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.profiler import ProfilerActivity, profile

from benchmarks.context import Context, NotRun, require_compiler
from benchmarks.provenance import ROOT
from utils.minigpt import MiniGPT, MiniGPTConfig
from utils.softmax import run

ROUNDS = 9
STEPS = 20
SECONDS = 3.0  # a load runs for this time before nvidia-smi looks at it
BATCH = (16, 18)  # sequences and tokens of a training step, as in the step recorded on a CPU


def wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def clocks_section(context: Context) -> dict[str, Any]:
    """Time copies to the GPU. Time launches and the launched work, with and without CUDA graphs."""
    widths = (16, 64) if context.dry_run else (64, 256, 1024, 4096, 8192)
    return {
        "products": [order(width, context.device) for width in widths],
        "launches": launches(context),
        "copies": list(copies_to_device(context)),
    }


def order(width: int, device: torch.device) -> dict[str, float]:
    """Return the seconds until a float32 product was launched, and until it was done."""
    x = torch.randn(width, width, device=device)
    ordered, done = [], []
    for _ in range(ROUNDS + 1):
        wait(device)
        start = time.perf_counter()
        x @ x
        ordered.append(time.perf_counter() - start)
        wait(device)
        done.append(time.perf_counter() - start)
    return {"width": width, "ordered": median(ordered[1:]), "done": median(done[1:])}


def launches(context: Context) -> dict[str, Any]:
    """Return the mean seconds of 1,000 small additions: one by one, and replayed as a graph."""
    x = torch.zeros(64, device=context.device)

    def additions() -> None:
        for _ in range(1000):
            x.add_(1)

    return {
        "launches": 1000,
        "eager": seconds(additions, context.device) / 1000,
        "graph": None if context.dry_run else seconds(captured(additions), context.device) / 1000,
    }


def captured(work: Callable[[], object]) -> Callable[[], object]:
    """Return a function that replays `work` as a CUDA graph."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        work()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return graph.replay


def seconds(work: Callable[[], object], device: torch.device) -> float:
    """Return the median time of some calls; each time ends when the device is done."""
    work()
    found = []
    for _ in range(ROUNDS):
        wait(device)
        start = time.perf_counter()
        work()
        wait(device)
        found.append(time.perf_counter() - start)
    return median(found)


def copies_to_device(context: Context) -> Iterator[dict[str, Any]]:
    """Time copies from ordinary and from pinned memory, with and without waiting for them."""
    source = torch.randn(2**10 if context.dry_run else 2**26)
    for pinned in (False,) if context.dry_run else (False, True):
        memory = source.pin_memory() if pinned else source
        for non_blocking in (False, True):
            returned, done = [], []
            for _ in range(ROUNDS):
                wait(context.device)
                start = time.perf_counter()
                memory.to(context.device, non_blocking=non_blocking, copy=True)
                returned.append(time.perf_counter() - start)
                wait(context.device)
                done.append(time.perf_counter() - start)
            yield {
                "bytes": source.nbytes,
                "pinned": pinned,
                "non_blocking": non_blocking,
                "returned": median(returned),
                "done": median(done),
            }


def products_section(context: Context) -> dict[str, Any]:
    """Measure the FLOP/s of a square matrix product for each dtype."""
    width = 64 if context.dry_run else 8192
    result: dict[str, Any] = {"width": width, "FLOP/s": {}}
    for name, product in products(width, context).items():
        took = seconds(lambda: [product() for _ in range(5)], context.device) / 5  # noqa: B023
        result["FLOP/s"][name] = 2 * width**3 / took
        context.say(f"{name}: {result['FLOP/s'][name] / 1e12:.1f} TFLOP/s")
    return result


def products(width: int, context: Context) -> dict[str, Callable[[], Tensor]]:
    a, b = (torch.randn(width, width, device=context.device) for _ in range(2))
    turned = b.t().contiguous().t()  # the sizes of the products of 8-bit numbers
    whole = (20 * a).to(torch.int8), (20 * turned).to(torch.int8)
    found: dict[str, Callable[[], Tensor]] = {
        "int8": lambda: torch._int_mm(*whole),
    }
    for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16):
        pair = a.to(dtype), b.to(dtype)
        found[str(dtype).removeprefix("torch.")] = lambda pair=pair: pair[0] @ pair[1]  # type: ignore[misc]
    if not context.dry_run:
        eighths = a.to(torch.float8_e4m3fn), turned.to(torch.float8_e4m3fn)
        one = torch.ones((), device=context.device)
        found["float8_e4m3fn"] = lambda: torch._scaled_mm(
            *eighths, one, one, out_dtype=torch.bfloat16
        )

        def tf32() -> Tensor:
            torch.backends.cuda.matmul.fp32_precision = "tf32"
            try:
                return a @ b
            finally:
                torch.backends.cuda.matmul.fp32_precision = "ieee"

        found["float32 as tf32"] = tf32
    return found


def steps_section(context: Context) -> dict[str, Any]:
    """Measure MiniGPT's training step in several forms: the time of the host and of the GPU."""
    require_compiler(context.device)
    ways: dict[str, dict[str, Any]] = {
        "eager": {},
        "fused optimizer": {"fused": True},
        "compiled": {"fused": True, "mode": "default"},
        "reduce-overhead": {"fused": True, "mode": "reduce-overhead"},
    }
    if context.dry_run:
        ways = {"eager": {}}
    else:
        ways["one graph"] = {"fused": True, "graph": True}
    result: dict[str, Any] = {"batch": BATCH, "ways": {}}
    for name, options in ways.items():
        start = time.perf_counter()
        step = training_step(context.device, **options)
        for _ in range(3):
            step()
        wait(context.device)
        first = time.perf_counter() - start
        result["ways"][name] = {"first three": first, **timed_steps(step, context.device)}
        context.say("{}: {done:.6f} s, {kernels} kernels".format(name, **result["ways"][name]))
        context.keep(result, complete=False)
    return result


def training_step(
    device: torch.device, fused: bool = False, mode: str = "", graph: bool = False
) -> Callable[[], object]:
    """Return a function that does a training step of MiniGPT with AdamW on one batch."""
    from benchmarks.sections import minigpt

    torch._dynamo.reset()
    model = minigpt().to(device).train()
    forward = torch.compile(model, mode=mode) if mode else model
    optimizer = torch.optim.AdamW(model.parameters(), fused=fused or None, capturable=graph)
    generator = torch.Generator().manual_seed(0)
    tokens = torch.randint(600, (BATCH[0], BATCH[1] + 1), generator=generator).to(device)
    inputs, targets = tokens[:, :-1].contiguous(), tokens[:, 1:].flatten()

    def step() -> None:
        optimizer.zero_grad(set_to_none=not graph)
        F.cross_entropy(forward(inputs).flatten(0, 1), targets).backward()
        optimizer.step()

    return captured(step) if graph else step


def timed_steps(step: Callable[[], object], device: torch.device) -> dict[str, float]:
    """Return a step's seconds (until launched, until done, in kernels), and its kernel count."""
    wait(device)
    start = time.perf_counter()
    for _ in range(STEPS):
        step()
    ordered = time.perf_counter() - start
    wait(device)
    done = time.perf_counter() - start
    activities = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
    with profile(activities=activities[: 1 + (device.type == "cuda")]) as profiled:
        step()
        wait(device)
    on_device = [
        event
        for event in profiled.events()
        if event.device_type == torch.autograd.DeviceType.CUDA and not event.is_user_annotation
    ]
    return {
        "ordered": ordered / STEPS,
        "done": done / STEPS,
        "busy": sum(event.time_range.elapsed_us() for event in on_device) / 1e6,
        "kernels": len(on_device),
    }


def precision_section(context: Context) -> dict[str, Any]:
    """Measure a larger GPT's training steps in several precisions: seconds, peak memory, losses."""
    config = MiniGPTConfig(
        vocab_size=600, context=512, d_model=1024, n_heads=16, n_layers=8, d_ff=4096
    )
    rows = 16
    if context.dry_run:
        config, rows = replace(config, d_model=16, n_heads=2, n_layers=1, d_ff=16, context=8), 2
    tokens = torch.randint(
        600, (rows, config.context + 1), generator=torch.Generator().manual_seed(0)
    ).to(context.device)
    result: dict[str, Any] = {"config": asdict(config), "batch": [rows, config.context], "ways": {}}
    for name, (kind, wide) in {
        "float32": (None, "ieee"),
        "float32 as tf32": (None, "tf32"),
        "bfloat16": (torch.bfloat16, "ieee"),
        "float16 with a scaler": (torch.float16, "ieee"),
    }.items():
        torch.backends.cuda.matmul.fp32_precision = wide
        result["ways"][name] = trained(config, tokens, kind)
        torch.backends.cuda.matmul.fp32_precision = "ieee"
        context.say("{}: {seconds:.4f} s, {peak} bytes".format(name, **result["ways"][name]))
    return result


def trained(config: MiniGPTConfig, tokens: Tensor, kind: torch.dtype | None) -> dict[str, Any]:
    """Do some training steps in one precision, on one batch, always from the same weights."""
    device = tokens.device
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    torch.manual_seed(0)
    model = MiniGPT(config).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    scaler = torch.amp.GradScaler(device.type, enabled=kind is torch.float16)
    held = torch.cuda.memory_allocated() if device.type == "cuda" else 0

    def step() -> Tensor:
        optimizer.zero_grad()
        with torch.autocast(device.type, dtype=kind, enabled=kind is not None):
            logits = model(tokens[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return loss.detach()

    losses = [step() for _ in range(STEPS)]
    took = seconds(step, device)
    return {
        "seconds": took,
        "weights": held,
        "peak": torch.cuda.max_memory_allocated() if device.type == "cuda" else 0,
        "losses": torch.stack(losses).tolist(),
    }


def attention_section(context: Context) -> dict[str, Any]:
    """Measure causal attention with a whole table and with FlashAttention: seconds and memory."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    lengths = (8, 16) if context.dry_run else (512, 1024, 2048, 4096, 8192, 16384)
    kinds = {"table": SDPBackend.MATH}
    if not context.dry_run:
        kinds["flash"] = SDPBackend.FLASH_ATTENTION
    result: dict[str, Any] = {"shape": "(1, 16, T, 64) in bfloat16", "cases": []}
    for length in lengths:
        shape = (1, 16, length, 64)
        q, k, v = (torch.randn(shape, device=context.device, dtype=torch.bfloat16) for _ in "qkv")

        def attend() -> Tensor:
            return F.scaled_dot_product_attention(q, k, v, is_causal=True)  # noqa: B023

        for name, backend in kinds.items():
            with sdpa_kernel(backend):
                took = seconds(attend, context.device)
                peak = 0
                if context.device.type == "cuda":
                    torch.cuda.reset_peak_memory_stats()
                    before = torch.cuda.memory_allocated()
                    attend()
                    peak = torch.cuda.max_memory_allocated() - before
            result["cases"].append({"length": length, "way": name, "seconds": took, "bytes": peak})
    return result


def nvidia_smi_section(context: Context) -> dict[str, Any]:
    """Record what `nvidia-smi` prints while the GPU idles, and during three kinds of work."""
    if context.dry_run:
        raise NotRun("nvidia-smi needs an NVIDIA GPU")
    device = context.device
    small = torch.randn(64, 64, device=device)
    row = torch.randn(1, 2**22, device=device)
    large = torch.randn(8192, 8192, device=device, dtype=torch.bfloat16)
    loads: dict[str, Callable[[], object]] = {
        "one program": lambda: run.forward(row),
        "small products": lambda: small @ small,
        "large products": lambda: large @ large,
    }
    time.sleep(SECONDS)
    result = {"idle": looked()}
    for name, load in loads.items():
        with running(load, device):
            time.sleep(SECONDS)
            result[name] = looked()
        context.say(f"{name}: {result[name]['figures']}")
    return result


@contextmanager
def running(load: Callable[[], object], device: torch.device) -> Iterator[None]:
    """Launch `load` again and again from a thread. The thread is never far ahead of the device."""
    load()
    stop = threading.Event()

    def work() -> None:
        torch.cuda.set_device(torch.cuda.current_device())
        while not stop.is_set():
            for _ in range(50):
                load()
            wait(device)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def looked() -> dict[str, str]:
    """Return the page that `nvidia-smi` prints, and some of its numbers by name."""
    query = "utilization.gpu,power.draw,memory.used,clocks.sm,temperature.gpu,pstate"
    command = ["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader"]
    figures = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    page = subprocess.run(["nvidia-smi"], capture_output=True, text=True, check=True).stdout
    return {"page": page, "figures": dict(zip(query.split(","), figures.strip().split(", ")))}  # type: ignore[dict-item]  # noqa: B905


MESSAGES = {
    "two devices": "torch.zeros(3, device=D) + torch.zeros(3)",
    "index on the CPU": "F.embedding(torch.tensor([1]), torch.zeros(5, 3, device=D))",
    "index too large": (
        "embedding = torch.nn.Embedding(600, 64, device=D)\n"
        "x = embedding(torch.tensor([[5, 600]], device=D))\n"
        "y = x.relu() + 1\n"
        "print('three lines later:', y.shape)\n"
        "y.sum().item()"
    ),
    "too large": "torch.zeros(2**35, device=D) + 1",
    "full": "kept = []\nwhile True:\n    kept.append(torch.empty(3 * 2**27, device=D))",
    "in pieces": (
        "room = torch.cuda.mem_get_info()[0] // 2**21 * 9 // 10\n"
        "kept = [torch.empty(2**19, device=D) for _ in range(room)]\n"
        "kept = kept[::8]\n"
        "torch.empty(2**19 * room // 2, device=D)"
    ),
}


def messages_section(context: Context) -> dict[str, Any]:
    """Record a GPU's error messages, each from a separate process. Record which calls wait, too."""
    if context.dry_run:
        raise NotRun("these are a GPU's messages")
    torch.cuda.empty_cache()
    result: dict[str, Any] = {"messages": {}, "waits": waits(context.device)}
    head = "import torch\nfrom torch.nn import functional as F\nD = 'cuda'\n"
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    for name, code in MESSAGES.items():
        done = subprocess.run(
            [sys.executable, "-c", head + code], capture_output=True, text=True, env=environment
        )
        lines = done.stderr.strip().splitlines()
        result["messages"][name] = {
            "code": code,
            "printed": done.stdout,
            "first": lines[0] if lines else "",
            "lines": len(lines),
            "last": "\n".join(lines[-8:]),
        }
        context.say(f"{name}: {lines[-1] if lines else 'nothing'}"[:150])
    return result


def waits(device: torch.device) -> dict[str, bool]:
    """Return which of some calls make the host wait, according to PyTorch's debug mode."""
    x = torch.rand(1000, device=device)
    model = nn.Linear(1000, 10, device=device)
    model(x).sum().backward()
    here = torch.rand(1000)
    pinned = here.pin_memory()
    counts = torch.ones(1000, dtype=torch.int64, device=device)
    calls: dict[str, Callable[[], object]] = {
        "x.sum()": lambda: x.sum(),
        "x.sum().item()": lambda: x.sum().item(),
        "if x[0] > 0: ...": lambda: bool(x[0] > 0),
        "x.tolist()": lambda: x.tolist(),
        'x.to("cpu")': lambda: x.to("cpu"),
        'x.to("cpu", non_blocking=True)': lambda: x.to("cpu", non_blocking=True),
        'h.to("cuda")': lambda: here.to(device),
        'h.to("cuda", non_blocking=True)': lambda: here.to(device, non_blocking=True),
        'p.to("cuda")': lambda: pinned.to(device),
        'p.to("cuda", non_blocking=True)': lambda: pinned.to(device, non_blocking=True),
        "torch.tensor(1.0, device='cuda')": lambda: torch.tensor(1.0, device=device),
        "torch.full((), 1.0, device='cuda')": lambda: torch.full((), 1.0, device=device),
        "x[x > 0.5]": lambda: x[x > 0.5],
        "torch.where(x > 0.5, x, 0)": lambda: torch.where(x > 0.5, x, 0),
        "x.nonzero()": lambda: x.nonzero(),
        "x[5]": lambda: x[5],
        "x.unique()": lambda: x.unique(),
        "x.repeat_interleave(n)": lambda: x.repeat_interleave(counts),
        "torch.multinomial(x, 1)": lambda: torch.multinomial(x, 1),
        "F.one_hot(n)": lambda: F.one_hot(counts),
        "F.one_hot(n, 2)": lambda: F.one_hot(counts, 2),
        "clip_grad_norm_(parameters, 1.0)": lambda: nn.utils.clip_grad_norm_(
            model.parameters(), 1.0
        ),
        "clip_grad_norm_(..., error_if_nonfinite=True)": lambda: nn.utils.clip_grad_norm_(
            model.parameters(), 1.0, error_if_nonfinite=True
        ),
        "print(x.shape)": lambda: str(x.shape),
        "print(x)": lambda: str(x),
    }
    found = {}
    for name, call in calls.items():
        call()
        wait(device)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            torch.cuda.set_sync_debug_mode("warn")
            call()
            torch.cuda.set_sync_debug_mode("default")
        found[name] = any("called a synchronizing" in str(one.message) for one in caught)
    return found
