"""Artificial times for the profiler, which do not depend on the machine's load.

``torch.profiler`` records events. The order and the nesting of the events stay the same. But each
event gets a self time that depends only on its name, and the self times decide the starts and ends.
So a profile has the same times on every machine and in every run. The profile is read as usual,
with ``events``, ``key_averages`` or ``export_chrome_trace``.

``torch.profiler.profile`` passes its results to ``torch.autograd.profiler.profile``. `drawn_clock`
wraps two methods of this second class, and `states` wraps two more of its methods.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest import mock

from torch.autograd import profiler

import utils.instruments.quiet_profiler  # noqa: F401  (before the first profile)
from utils.instruments.traces.events import HOST, ITSELF

STEP = "ProfilerStep*"  # the profiler's own label around a step, in its table
OFF, WARMING_UP, RECORDING = "off", "warming up", "recording"


@contextlib.contextmanager
def drawn_clock(costs: Mapping[str, int]) -> Iterator[None]:
    """While the context is open, profiles have artificial times.

    costs: maps the name of an event to the event's self time in nanoseconds, at least 1.

    Every other event takes a picosecond. This is so short because a profile with stacks has an
    event for each call of a Python function. The number of these events must not change any share.
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
    """Yield a function that returns the profiler's state: `OFF`, `WARMING_UP` or `RECORDING`."""
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


Span = tuple[Any, float, float, str]  # thread, start, end, and name of an event


def _retimed(spans: Iterable[Span], costs: Mapping[str, int]) -> list[tuple[int, int]]:
    """Return new starts and ends, in picoseconds. The nesting stays the same.

    Half of an event's self time is before the inner events, and half is after the inner events.
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
