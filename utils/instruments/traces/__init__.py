"""Traces as plain values: the name, lane, start and end of each event.

Events come from a profile (`of_profile`), from a Chrome trace in a file (`of_chrome_trace`), or
from the record of a MiniGPT step on a CPU (`recorded_step`). The events of `drawn` were never
measured: they come from a model of a machine with a GPU, with random noise.
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
