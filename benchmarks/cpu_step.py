"""Record a training step of MiniGPT on a CPU, for `utils.instruments.traces.recorded_step`.

python -m benchmarks.cpu_step profiles some steps and keeps the shortest; a minute
"""

from __future__ import annotations

import json
import platform
from dataclasses import asdict

import torch
from torch.nn import functional as F
from torch.profiler import ProfilerActivity, profile, record_function

from utils.instruments.traces import Allocation, Event, allocations_of_profile, of_profile
from utils.instruments.traces.record import FILE
from utils.minigpt import MiniGPT, MiniGPTConfig

BATCH = (16, 18)  # sentences, tokens
TRIES = 15


def main() -> None:
    """Record the shortest of some steps, because other work only makes steps longer."""
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
        # An address only identifies a block, so a small number replaces each address.
        "allocations": [
            [addresses.index(a.address), a.bytes, max(0, a.time - origin)] for a in allocations
        ],
    }
    assert {event.lane for event in events} == {"cpu"}
    FILE.write_text(json.dumps(record, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
