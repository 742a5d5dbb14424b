"""Traces as plain values: what ran, on which lane, from when to when.

Events come from a profile (`of_profile`), from a Chrome trace in a file (`of_chrome_trace`), from
the record of a MiniGPT step on a CPU (`recorded_step`), or out of a model of a machine with a GPU,
with noise: `drawn` traces were measured nowhere.
"""

from utils.instruments.traces.drawn import KINDS, drawn
from utils.instruments.traces.events import (
    Allocation,
    Event,
    allocations_of_profile,
    of_chrome_trace,
    of_profile,
)
from utils.instruments.traces.record import RecordedStep, recorded_step

__all__ = [
    "KINDS",
    "Allocation",
    "Event",
    "RecordedStep",
    "allocations_of_profile",
    "drawn",
    "of_chrome_trace",
    "of_profile",
    "recorded_step",
]
