"""A clock for the profiler that no busy machine moves: what it has measured is replaced.

``torch.profiler`` notes what ran, in which order and in what; those facts stay. Each event then
gets the time of its own that it was given by its name, and starts and ends follow. So a profile has
the same times wherever and whenever it is made. It is read as ever, through ``events``,
``key_averages`` or ``export_chrome_trace``.

Two methods of ``torch.autograd.profiler.profile`` are wrapped for it, which is the part of PyTorch
that ``torch.profiler.profile`` leaves its results to. `states` looks at two more of them.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest import mock

from torch.autograd import profiler

from utils.instruments.traces.events import HOST, ITSELF

# The profiler's library reads it once, and writes to stderr where it is not set.
os.environ.setdefault("KINETO_LOG_LEVEL", "6")

STEP = "ProfilerStep*"  # the profiler's own label around a step, in its table
OFF, WARMING_UP, RECORDING = "off", "warming up", "recording"


@contextlib.contextmanager
def drawn_clock(costs: Mapping[str, int]) -> Iterator[None]:
    """While the context is open, profiles have drawn times.

    costs: maps the name of an event to the time of its own, in nanoseconds, at least 1. What has no
    name there takes a picosecond: with stacks, each call of a Python function is an event, in all
    threads, and how many there are must move no share.
    """
    parse, export = profiler.profile._parse_kineto_results, profiler.profile.export_chrome_trace

    def parsed(self: Any, *args: Any, **kwargs: Any) -> Any:
        events = parse(self, *args, **kwargs)
        ran = [event for event in events if event.device_type == event.device_type.CPU]
        spans = [(e.thread, e.time_range.start, e.time_range.end, e.name) for e in ran]
        for event, (start, end) in zip(ran, _retimed(spans, costs), strict=True):
            event.time_range.start, event.time_range.end = start / 1e6, end / 1e6
        return sorted(events, key=lambda e: (e.time_range.start, -e.time_range.end))

    def exported(self: Any, path: str, *args: Any, **kwargs: Any) -> Any:
        came = export(self, path, *args, **kwargs)
        trace = json.loads(Path(path).read_bytes())
        ran = [
            event
            for event in trace["traceEvents"]
            if event.get("ph") == "X"
            and event.get("cat") in HOST
            and not event["name"].startswith(ITSELF)
        ]
        spans = [(e["tid"], e["ts"], e["ts"] + e["dur"], e["name"]) for e in ran]
        for event, (start, end) in zip(ran, _retimed(spans, costs), strict=True):
            event["ts"], event["dur"] = start / 1e6, (end - start) / 1e6
        Path(path).write_text(json.dumps(trace), encoding="utf-8")
        return came

    with (
        mock.patch.object(profiler.profile, "_parse_kineto_results", parsed),
        mock.patch.object(profiler.profile, "export_chrome_trace", exported),
    ):
        yield


@contextlib.contextmanager
def states() -> Iterator[Callable[[], str]]:
    """While the context is open, the function that it gives says what the profiler is doing.

    It answers with `OFF`, `WARMING_UP` or `RECORDING`.
    """
    now = [OFF]
    methods = {"_prepare_trace": WARMING_UP, "_start_trace": RECORDING, "__exit__": OFF}

    def noting(name: str, state: str) -> Callable[..., Any]:
        method = getattr(profiler.profile, name)

        def noted(self: Any, *args: Any, **kwargs: Any) -> Any:
            now[0] = state
            return method(self, *args, **kwargs)

        return noted

    with contextlib.ExitStack() as stack:
        for name, state in methods.items():
            stack.enter_context(mock.patch.object(profiler.profile, name, noting(name, state)))
        yield lambda: now[0]


Span = tuple[Any, float, float, str]  # thread, start and end, and the name of what ran


def _retimed(spans: Iterable[Span], costs: Mapping[str, int]) -> list[tuple[int, int]]:
    """New starts and ends, in picoseconds. What lay in something else still does.

    Half of an event's own time is before what lies in it, and the rest behind.
    """
    given = list(spans)
    starts, ends, now = [0] * len(given), [0] * len(given), 0
    by_thread: dict[Any, list[int]] = {}
    for at, (thread, *_) in enumerate(given):
        by_thread.setdefault(thread, []).append(at)

    def cost(at: int) -> int:
        name = given[at][3]
        own = costs.get(STEP if name.startswith(STEP[:-1]) else name)
        return 1 if own is None else 1000 * own

    for places in by_thread.values():
        open_ones: list[int] = []

        def close() -> None:
            nonlocal now
            at = open_ones.pop()  # noqa: B023
            now += cost(at) - cost(at) // 2
            ends[at] = now

        for at in sorted(places, key=lambda at: (given[at][1], -given[at][2])):
            while open_ones and given[open_ones[-1]][2] <= given[at][1]:
                close()
            starts[at] = now
            now += cost(at) // 2
            open_ones.append(at)
        while open_ones:
            close()
    return list(zip(starts, ends, strict=True))
