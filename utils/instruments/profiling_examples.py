"""Helpers of lesson 09: batches, a table, a queue, lists of messages. The lesson only uses them."""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.gradcheck import GradcheckError, gradcheck

from utils.minigpt.tokenizer import PAD

MESSAGE = 200  # characters of a message that are shown


def batches_by_length(
    inputs: Tensor, targets: Tensor, size: int, seed: int
) -> list[tuple[Tensor, Tensor]]:
    """Return batches of lines with similar lengths, as pairs (inputs, targets).

    The given lines (N, T) are padded on the right. A batch has the shape (size, W), where W is the
    length of its longest line. ``seed`` decides the order of the batches. An incomplete batch is
    left out.
    """
    lengths = (inputs != PAD).sum(1)
    buckets = [rows for rows in lengths.argsort(stable=True).split(size) if len(rows) == size]
    dealt = torch.randperm(len(buckets), generator=torch.Generator().manual_seed(seed))
    chosen = (buckets[k] for k in dealt)
    return [(inputs[r, : lengths[r].max()], targets[r, : lengths[r].max()]) for r in chosen]


class Row(NamedTuple):
    """A row of a profile's table. Both shares are relative to the sum of all self times."""

    name: str
    calls: int
    ms: float
    share: float
    total_share: float


def by_self(profiled: torch.profiler.profile) -> list[Row]:
    """Return the table of a profile on a CPU, the largest self time first."""
    rows = sorted(profiled.key_averages(), key=lambda row: -row.self_cpu_time_total)
    whole = sum(row.self_cpu_time_total for row in rows)
    return [
        Row(
            row.key,
            row.count,
            row.self_cpu_time_total / 1e3,
            row.self_cpu_time_total / whole,
            row.cpu_time_total / whole,
        )
        for row in rows
    ]


class Neighbour:
    """A second thread of this process, for a ``with`` block. It computes while `busy` is set."""

    def __init__(self) -> None:
        self.busy = False
        self._finished = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        while not self._finished.is_set():
            if self.busy:
                sum(range(60_000))
            time.sleep(0.001)

    def __enter__(self) -> Neighbour:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._finished.set()
        self._thread.join()


class Device:
    """A replacement for a GPU: a thread that executes a queue of orders, one after the other."""

    def __init__(self) -> None:
        self._queue = ThreadPoolExecutor(max_workers=1)
        self._last: Future[Tensor] = self._queue.submit(torch.ones, 1)
        self._last.result()  # the thread has started

    def launch(self, function: Callable[..., Tensor], *args: Any) -> None:
        """Put an order into the queue, and return at once."""
        self._last = self._queue.submit(function, *args)

    def item(self) -> float:
        """Wait until all orders are done, and return the sum of the last result."""
        return self._last.result().sum().item()


def anomaly(function: Callable[[], Tensor]) -> str:
    """Return `detect_anomaly`'s error for ``function().backward()``, and the line that it names."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            with torch.autograd.detect_anomaly():
                loss = function()
                loss.backward()
        except RuntimeError as error:
            said = [str(error)]
        else:
            return f"nothing; the loss is {loss.item():.1f}"
    lines = [line.strip() for each in told for line in str(each.message).splitlines()]
    frames = [at for at, line in enumerate(lines) if line.startswith("File")]
    if frames:
        said.append(f"  {lines[frames[-1]].split(', ')[-1]}: {lines[frames[-1] + 1]}")
    return "\n".join(said)


def tried(function: Callable, *inputs: Tensor, **how: Any) -> bool | str:
    """Return the result of ``gradcheck(function, inputs, **how)``, or its error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return gradcheck(function, inputs, **how)
        except GradcheckError as error:
            return str(error)


class Messages:
    """Runs pieces of code, and numbers their errors. The code may use ``names``."""

    def __init__(self, names: Mapping[str, Any]) -> None:
        self.names = names
        self._causes: list[str] = []
        self._told = 0

    def of(self, causes: Sequence[str]) -> None:
        """Run each piece of code, and print the number and the message of its error."""
        for code in causes:
            try:
                eval(code, {}, self.names)
            except (RuntimeError, IndexError, ValueError, TypeError) as error:
                self._causes.append(code)
                said = " ".join(str(error).split())
                said = said if len(said) <= MESSAGE else f"{said[:MESSAGE]}…"
                print(f"{len(self._causes):2}  {type(error).__name__}: {said}")
            else:
                raise AssertionError(f"{code} raised nothing")

    def causes(self) -> None:
        """Print the code behind the messages since the last call."""
        for number, code in list(enumerate(self._causes, 1))[self._told :]:
            print(f"{number:2}  {code}")
        self._told = len(self._causes)
