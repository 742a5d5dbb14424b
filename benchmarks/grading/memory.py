"""Measure the memory that one more kernel needs, after each kernel has run the whole lab."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from statistics import mean

import nbformat

from hood.grader.execution.graded_cell import split_hidden
from hood.grader.sandbox import SandboxedKernel
from hood.grader.sandbox.warm_process import shut_down, warm


def further_kernel(data: bytes, headers: Path | None, count: int = 5) -> float:
    """Return the bytes that each further kernel adds to the memory of all processes, on average.

    The processes are the warm process, its sandboxes and its kernels. The bytes are PSS: if n
    processes share a page, each counts 1/n of it.

    data: a submission; each kernel runs its visible code
    headers: the folder with compiled headers, for a lab that compiles
    """
    nb = nbformat.reads(data.decode(), as_version=4)
    sources = [
        (split_hidden(c.source) or (c.source,))[0] for c in nb.cells if c.cell_type == "code"
    ]
    totals: list[float] = []
    with contextlib.ExitStack() as kernels:
        kernels.callback(shut_down)  # `runs` waits for the children of this process to end
        for _ in range(count):
            kernel = kernels.enter_context(SandboxedKernel(headers=headers))
            for source in sources:
                kernel.run(source, 600)
            totals.append(_proportional(warm().process.pid))
    return mean(after - before for before, after in zip(totals, totals[1:], strict=False))


def _proportional(root: int) -> int:
    """Return the bytes of a process and all its descendants."""
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
    except OSError:  # it has ended
        return []


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""
