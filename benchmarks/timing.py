"""Measure the device's time for a call: medians of many replays, with inputs not in the cache."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median, quantiles

import torch

Call = Callable[[], object]
REPLAY_SECONDS = 2e-3  # of work in one replay, so that the time of its start doesn't matter
MOST_CALLS = 1024  # in one replay
ROUNDS, REPLAYS = 3, 12  # contenders take turns, so that a drift of the clocks affects all of them


@dataclass(frozen=True)
class Timing:
    """A call's seconds on the device: the median, 10th and 90th percentile of `samples` replays."""

    seconds: float
    low: float
    high: float
    samples: int
    calls: int

    def to_dict(self) -> dict[str, float | int]:
        return asdict(self)


def input_sets(bytes_per_call: int, cache_bytes: int, free_bytes: int) -> int:
    """Return how many sets of inputs take turns: enough to fill four caches, if memory allows."""
    wanted = max(2, math.ceil(4 * cache_bytes / bytes_per_call))
    # each tensor of a set exists once as input, and once more as output while a graph is captured
    return max(1, min(wanted, MOST_CALLS, free_bytes // (4 * bytes_per_call)))


def measure(
    contenders: Mapping[str, Sequence[Call]], device: torch.device, expected_seconds: float
) -> dict[str, Timing]:
    """Time contenders against each other. Each contender is a list of the same call on different
    inputs.

    On a GPU, the calls are captured in a CUDA graph, and its replays are timed with events: the
    times include neither Python nor launches. On a CPU (a dry run), the calls are timed by the
    clock.
    """
    if device.type != "cuda":
        return {name: _by_the_clock(calls) for name, calls in contenders.items()}
    repeats = {
        name: max(1, math.ceil(REPLAY_SECONDS / (expected_seconds * len(calls))))
        for name, calls in contenders.items()
    }
    graphs = {name: _capture(calls, repeats[name]) for name, calls in contenders.items()}
    samples: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(ROUNDS):
        for name, graph in graphs.items():
            calls = repeats[name] * len(contenders[name])
            samples[name] += [seconds / calls for seconds in _replay(graph)]
    return {
        name: _summary(found, repeats[name] * len(contenders[name]))
        for name, found in samples.items()
    }


def _capture(calls: Sequence[Call], repeats: int) -> torch.cuda.CUDAGraph:
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):  # compile and allocate before anything is captured
        for call in calls[:3]:
            call()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(repeats):
            # all outputs of a turn exist at the same time, so that the outputs are not in the
            # cache, either
            outputs = [call() for call in calls]
            del outputs
    return graph


def _replay(graph: torch.cuda.CUDAGraph) -> list[float]:
    """Return the seconds of each of `REPLAYS` replays, after a warm-up."""
    graph.replay()
    events = []
    for _ in range(REPLAYS):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        graph.replay()
        end.record()
        events.append((start, end))
    torch.cuda.synchronize()
    return [start.elapsed_time(end) / 1e3 for start, end in events]


def _by_the_clock(calls: Sequence[Call]) -> Timing:
    calls[0]()
    samples = []
    for call in [*calls, *calls]:
        start = time.perf_counter()
        call()
        samples.append(time.perf_counter() - start)
    return _summary(samples, 1)


def _summary(samples: Sequence[float], calls: int) -> Timing:
    tenths = quantiles(samples, n=10, method="inclusive")
    return Timing(median(samples), tenths[0], tenths[-1], len(samples), calls)
