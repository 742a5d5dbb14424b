"""The parts of a trace, and how to read them from `torch.profiler`.

The parts are read from the Chrome trace that the profiler writes, because this format is stable.
Times are whole nanoseconds.
"""

from __future__ import annotations

import gzip
import json
import tempfile
import weakref
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

# Kineto's categories; other categories are left out, such as Python frames and arrows.
HOST = {
    "cpu_op": "op",
    "user_annotation": "range",
    "cuda_runtime": "call",
    "cuda_driver": "call",
    "privateuse1_runtime": "call",
}
DEVICE = {"kernel": "kernel", "gpu_memcpy": "copy", "gpu_memset": "copy"}
_READ: weakref.WeakKeyDictionary[Any, list[dict[str, Any]]] = weakref.WeakKeyDictionary()
# The profiler's events about itself.
ITSELF = ("PyTorch Profiler", "Iteration Start", "Record Window End", "Activity Buffer Request")


@dataclass(frozen=True)
class Event:
    """An event with a duration."""

    name: str  # what ran, such as ``aten::mm``
    start: int  # when it began, in nanoseconds
    duration: int  # how long it took, in nanoseconds
    # where the event ran: a thread of the host such as ``cpu`` or ``cpu 2``, or a stream of the
    # device such as ``gpu 7``
    lane: str = "cpu"
    # on the host: ``range`` (a label around other events), ``op`` (an operator), or ``call`` (a
    # call of CUDA); on the device: ``kernel`` or ``copy``
    kind: str = "op"
    # the number that a call shares with its kernel or copy on the device; None for all other
    # events
    correlation: int | None = None

    @property
    def end(self) -> int:
        """The time at which it ended, in nanoseconds."""
        return self.start + self.duration

    @property
    def on_device(self) -> bool:
        """Whether it ran on the device."""
        return self.lane.startswith("gpu")


@dataclass(frozen=True)
class Allocation:
    """An allocation or a release of memory."""

    address: int  # the address of its first byte
    bytes: int  # the number of bytes; negative if they were freed
    time: int = 0  # the time, in nanoseconds


def of_profile(profile: torch.profiler.profile) -> list[Event]:
    """Return the events of a profile that has ended, in the order of their starts.

    A profile can write its Chrome trace only once, and this function uses this chance. If you also
    need the file, export it yourself, and read it with :func:`of_chrome_trace`.
    """
    return _events(_trace_events(profile))


def allocations_of_profile(profile: torch.profiler.profile) -> list[Allocation]:
    """Return the allocations and releases during a profile with ``profile_memory=True``."""
    found = [
        Allocation(int(event["args"]["Addr"]), int(event["args"]["Bytes"]), _ns(event["ts"]))
        for event in _trace_events(profile)
        if event.get("name") == "[memory]"
    ]
    return sorted(found, key=lambda allocation: allocation.time)


def of_chrome_trace(path: Path | str) -> list[Event]:
    """Return the events of a file that ``export_chrome_trace`` wrote, compressed (.gz) or not."""
    data = Path(path).read_bytes()
    if str(path).endswith(".gz"):
        data = gzip.decompress(data)
    return _events(json.loads(data)["traceEvents"])


def _trace_events(profile: torch.profiler.profile) -> list[dict[str, Any]]:
    if profile not in _READ:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "trace.json"
            profile.export_chrome_trace(str(file))
            _READ[profile] = json.loads(file.read_bytes())["traceEvents"]
    return _READ[profile]


def _events(trace_events: Iterable[Mapping[str, Any]]) -> list[Event]:
    found, threads = [], []
    spans = [event for event in trace_events if event.get("ph") == "X"]
    for span in sorted(spans, key=lambda span: (span["ts"], -span["dur"])):
        kind = HOST.get(span.get("cat", ""))
        device_kind = DEVICE.get(span.get("cat", ""))
        if (kind is None and device_kind is None) or span["name"].startswith(ITSELF):
            continue
        start, end = _ns(span["ts"]), _ns(span["ts"] + span["dur"])
        args = span.get("args", {})
        if device_kind is not None:
            lane, kind = f"gpu {args.get('stream', span['tid'])}", device_kind
        else:
            if span["tid"] not in threads:
                threads.append(span["tid"])
            number = threads.index(span["tid"])
            lane = f"cpu {number + 1}" if number else "cpu"
        correlation = None if kind in ("op", "range") else args.get("correlation")
        assert kind is not None
        found.append(Event(span["name"], start, end - start, lane, kind, correlation))
    return found


def _ns(microseconds: float) -> int:
    """Return a Chrome trace's microseconds, which have three decimals, as whole nanoseconds."""
    return round(microseconds * 1000)
