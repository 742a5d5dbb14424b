"""A training step of MiniGPT, recorded once on a CPU by ``python -m benchmarks.cpu_step``."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from utils.instruments.traces.events import Allocation, Event
from utils.minigpt import MiniGPTConfig

FILE = Path(__file__).with_name("minigpt_step.json")


@dataclass(frozen=True)
class RecordedStep:
    """The recorded step."""

    events: list[Event]  # events of one step: forward, backward and AdamW, with a range around each
    allocations: list[Allocation]  # allocations of the same step, in order
    config: MiniGPTConfig  # the model's sizes
    batch: tuple[int, int]  # (sentences, tokens) of the step
    provenance: dict[str, Any]  # torch's version, the processor, threads, and how it was recorded


@cache
def recorded_step() -> RecordedStep:
    """Return the record. All callers share its lists, so don't change them."""
    record = json.loads(FILE.read_text())
    names, kinds = record["names"], record["kinds"]
    events = [
        Event(names[name], start, duration, "cpu", kinds[kind])
        for name, start, duration, kind in record["events"]
    ]
    return RecordedStep(
        events,
        [Allocation(*row) for row in record["allocations"]],
        MiniGPTConfig(**record["config"]),
        tuple(record["batch"]),
        record["provenance"],
    )
