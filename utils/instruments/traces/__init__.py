"""Traces as plain values: what ran, on which lane, from when to when.

Events come from a profile (`of_profile`), from a Chrome trace in a file (`of_chrome_trace`), from
the record of a MiniGPT step on a CPU (`recorded_step`), or out of a model of a machine with a GPU,
with noise: `drawn` traces were measured nowhere.
"""
# ruff: noqa: F401  the names of the room

from utils.instruments.traces.drawn import KINDS, drawn
from utils.instruments.traces.events import (
    Allocation,
    Event,
    allocations_of_profile,
    of_chrome_trace,
    of_profile,
)
from utils.instruments.traces.record import RecordedStep, recorded_step
