"""A training step of MiniGPT, recorded once on a CPU.

``python -m utils.instruments.traces.record`` records it again.
"""

from __future__ import annotations

import json
import platform
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch

from utils.instruments.traces.events import Allocation, Event, allocations_of_profile, of_profile
from utils.minigpt import MiniGPT, MiniGPTConfig

FILE = Path(__file__).with_name("minigpt_step.json")
BATCH = (16, 18)
TRIES = 15


@dataclass(frozen=True)
class RecordedStep:
    """What was recorded."""

    events: list[Event]  # of one step: forward, backward and AdamW, with a range around each
    allocations: list[Allocation]  # of the same step, in order
    config: MiniGPTConfig  # the model's sizes
    batch: tuple[int, int]  # (sentences, tokens) of the step
    provenance: dict[str, Any]  # torch's version, the processor, threads, and how it was recorded


@cache
def recorded_step() -> RecordedStep:
    """Return the record; its lists are shared, so don't change them."""
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


def main() -> None:
    """Write the record of the shortest of some steps: other work only makes a step longer."""
    from torch.nn import functional as F
    from torch.profiler import ProfilerActivity, profile, record_function

    torch.set_num_threads(1)
    torch.manual_seed(0)
    config = MiniGPTConfig()
    model = MiniGPT(config)
    optimizer = torch.optim.AdamW(model.parameters())
    tokens = torch.randint(0, config.vocab_size, (BATCH[0], BATCH[1] + 1))
    inputs, targets = tokens[:, :-1].clone(), tokens[:, 1:].clone()

    def step() -> None:
        with record_function("step"):
            with record_function("forward"):
                logits = model(inputs)
                loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
            with record_function("backward"):
                loss.backward()
            with record_function("optimizer"):
                optimizer.step()
                optimizer.zero_grad()

    step()
    best: tuple[int, list[Event], list[Allocation]] | None = None
    for _ in range(TRIES):
        with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiled:
            step()
        events = of_profile(profiled)
        (whole,) = [event for event in events if event.name == "step"]
        if best is None or whole.duration < best[0]:
            best = whole.duration, events, allocations_of_profile(profiled)
    assert best is not None
    _, events, allocations = best
    origin = events[0].start
    names = list(dict.fromkeys(event.name for event in events))
    addresses = list(dict.fromkeys(allocation.address for allocation in allocations))
    kinds = ["range", "op"]
    record = {
        "provenance": {
            "torch": torch.__version__,
            "machine": platform.machine(),
            "threads": torch.get_num_threads(),
            "what": f"the shortest of {TRIES} profiled training steps on a CPU",
        },
        "config": asdict(config),
        "batch": BATCH,
        "names": names,
        "kinds": kinds,
        "events": [
            [names.index(e.name), e.start - origin, e.duration, kinds.index(e.kind)] for e in events
        ],
        # An address says which block it was, and nothing else: its number here.
        "allocations": [
            [addresses.index(a.address), a.bytes, max(0, a.time - origin)] for a in allocations
        ],
    }
    assert {event.lane for event in events} == {"cpu"}
    FILE.write_text(json.dumps(record, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
