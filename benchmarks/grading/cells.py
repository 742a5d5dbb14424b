"""Measure the pure time of the cells: execute a class's notebooks in one warm kernel."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import nbformat
from jupyter_client.asynchronous import AsyncKernelClient

from benchmarks.grading.course import Course
from hood.audience import TEXT_ONLY
from hood.authoring.execute import this_python
from hood.grader.submission.rebuild import rebuild
from hood.judge.verify import SEED_VARIABLE

CPU = "__import__('time').process_time()"


@dataclass(frozen=True)
class Pure:
    """The mean time of a submission in the kernel: wall-clock seconds and processor seconds."""

    seconds: float
    cpu: float


def pure_time(course: Course, work: Sequence[bytes], *, pictures: bool) -> Pure:
    """Execute the cells of every submission, including hidden cells, in one ordinary kernel.

    The first notebook only warms the kernel up. pictures: whether views draw pictures, as they do
    for learners and for plain nbgrader, but not for the grader.
    """
    path = course.root / "source" / course.lab / f"{course.lab}.ipynb"
    source = nbformat.read(path, as_version=4)
    notebooks = [rebuild(data, source).nb for data in work]
    cells = [[c.source for c in nb.cells if c.cell_type == "code"] for nb in notebooks]
    environment = dict(course.environment())
    # without a seed, each graded cell draws new cases, so no result is reused
    environment.pop(SEED_VARIABLE, None)
    if not pictures:
        environment[TEXT_ONLY] = "1"
    return asyncio.run(_execute(cells, environment))


async def _execute(notebooks: list[list[str]], environment: dict[str, str]) -> Pure:
    with tempfile.TemporaryDirectory() as folder:
        manager = this_python(folder)
        await manager.start_kernel(env=environment, cwd=folder, stderr=os.open(os.devnull, 1))
        client = manager.client()
        client.start_channels()
        try:
            await client.wait_for_ready(120)
            for source in [*notebooks[0], *notebooks[0]]:
                await _run(client, source)
            before, seconds = await _cpu(client), 0.0
            for source in (cell for cells in notebooks for cell in cells):
                seconds += await _run(client, source)
            cpu = await _cpu(client) - before
        finally:
            client.stop_channels()
            await manager.shutdown_kernel(now=True)
    return Pure(seconds / len(notebooks), cpu / len(notebooks))


async def _run(client: AsyncKernelClient, source: str) -> float:
    """Return the seconds from the start of a cell in the kernel to the kernel's reply."""
    reply = await client.execute_interactive(
        source, store_history=False, allow_stdin=False, output_hook=lambda _: None, timeout=600
    )
    return (
        reply["header"]["date"] - datetime.fromisoformat(str(reply["metadata"]["started"]))
    ).total_seconds()


async def _cpu(client: AsyncKernelClient) -> float:
    reply = await client.execute_interactive(
        "", user_expressions={"cpu": CPU}, output_hook=lambda _: None, timeout=60
    )
    return float(reply["content"]["user_expressions"]["cpu"]["data"]["text/plain"])
