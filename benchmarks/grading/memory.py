"""What a further kernel costs in memory, when each has run the whole lab."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from statistics import mean

import nbformat

from grader.judging.graded_cell import split_hidden
from grader.sandbox import SandboxedKernelManager
from grader.sandbox.warm_process import shut_down, warm


def further_kernel(data: bytes, headers: Path | None, count: int = 5) -> float:
    """Bytes (PSS, in which a page that n processes share counts as 1/n for each) that a kernel
    after the first adds to the warm process, its sandboxes and its kernels, on average.

    data: a submission, of which each kernel runs what is visible
    headers: compiled ones, for a lab that compiles
    """
    nb = nbformat.reads(data.decode(), as_version=4)
    sources = [
        (split_hidden(c.source) or (c.source,))[0] for c in nb.cells if c.cell_type == "code"
    ]
    return asyncio.run(_measure(sources, headers, count))


async def _measure(sources: Sequence[str], headers: Path | None, count: int) -> float:
    totals, managers = [], []
    try:
        for _ in range(count):
            manager = SandboxedKernelManager(headers=headers)
            await manager.start_kernel()
            managers.append(manager)
            client = manager.client()
            client.start_channels()
            await client.wait_for_ready(60)
            for source in sources:
                await client.execute_interactive(
                    source, allow_stdin=False, output_hook=lambda _: None, timeout=600
                )
            client.stop_channels()
            totals.append(_proportional(warm().process.pid))
    finally:
        for manager in managers:
            await manager.shutdown_kernel(now=True)
        shut_down()  # `runs` waits for the children of this process to end
    return mean(after - before for before, after in zip(totals, totals[1:], strict=False))


def _proportional(root: int) -> int:
    """Bytes of a process and all that descend from it."""
    family, total = [root], 0
    while family:
        process = family.pop()
        text = _read(f"/proc/{process}/smaps_rollup")
        total += sum(int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:"))
        for thread in _threads(process):
            family += map(int, _read(f"/proc/{process}/task/{thread}/children").split())
    return total * 1024


def _threads(process: int) -> list[str]:
    try:
        return os.listdir(f"/proc/{process}/task")
    except OSError:  # it ended meanwhile
        return []


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""
