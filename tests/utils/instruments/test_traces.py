"""Reading profiles, drawn traces, and the recorded step."""

import json
from collections import Counter

import pytest
import torch
from torch.profiler import ProfilerActivity, profile, record_function

from utils.instruments.traces import (
    KINDS,
    Event,
    allocations_of_profile,
    drawn,
    of_chrome_trace,
    of_profile,
    recorded_step,
)


def test_a_profile_is_read_as_events_that_lie_in_each_other():
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiled:
        with record_function("mine"):
            product = torch.ones(50, 50) @ torch.ones(50, 50)
        del product
    events = of_profile(profiled)
    (mine,) = [event for event in events if event.name == "mine"]
    (product,) = [event for event in events if event.name == "aten::mm"]
    assert (mine.kind, product.kind, mine.lane) == ("range", "op", "cpu")
    assert mine.start <= product.start < product.end <= mine.end
    found = allocations_of_profile(profiled)
    assert {10_000, -10_000} <= {allocation.bytes for allocation in found}


def test_a_chrome_trace_of_a_gpu_is_read(tmp_path):
    def span(name, cat, ts, dur, tid, **args):
        return {"ph": "X", "name": name, "cat": cat, "ts": ts, "dur": dur, "tid": tid, "args": args}

    spans = [
        span("vectorized", "kernel", 9.5, 2.001, 7, stream=7, correlation=31),
        span("aten::add", "cpu_op", 1.0, 8.0, 501),
        span("cudaLaunchKernel", "cuda_runtime", 3.25, 2.5, 501, correlation=31),
        span("Memcpy HtoD", "gpu_memcpy", 20.0, 1.0, 20, stream=20, correlation=32),
        span("aten::mul", "cpu_op", 12.0, 1.0, 502),
        span("a frame", "python_function", 0.0, 30.0, 501),
        span("ProfilerStep#3", "gpu_user_annotation", 9.5, 11.0, 7, stream=7),
        span("PyTorch Profiler (0)", "Trace", 0.0, 30.0, 501),
    ]
    file = tmp_path / "trace.json"
    file.write_text(json.dumps({"traceEvents": [*spans, {"ph": "M", "name": "process_name"}]}))
    assert of_chrome_trace(file) == [
        Event("aten::add", 1000, 8000, "cpu", "op"),
        Event("cudaLaunchKernel", 3250, 2500, "cpu", "call", 31),
        Event("vectorized", 9500, 2001, "gpu 7", "kernel", 31),
        Event("aten::mul", 12_000, 1000, "cpu 2", "op"),
        Event("Memcpy HtoD", 20_000, 1000, "gpu 20", "copy", 32),
    ]


def account(events):
    """What each moment is spent on, according to the table of exercise 4 of lab 09."""
    times = sorted({time for event in events for time in (event.start, event.end)})
    found, ran_dry_in_sync = Counter(), None
    for begin, end in zip(times, times[1:], strict=False):
        now = [event for event in events if event.start <= begin < event.end]
        running = {event.kind for event in now if event.on_device}
        if running:
            found["compute" if "kernel" in running else "copy"] += end - begin
            ran_dry_in_sync = None
            continue
        if ran_dry_in_sync is None:
            ran_dry_in_sync = any("Synchronize" in event.name for event in now)
        if any("DataLoader" in event.name for event in now):
            found["loader"] += end - begin
        elif ran_dry_in_sync:
            found["sync"] += end - begin
        else:
            works = any(event.kind != "range" for event in now)
            found["launches" if works else "python"] += end - begin
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_a_drawn_trace_spends_most_of_its_time_on_one_thing(kind):
    for seed in range(4):
        (first, most), (_, second) = account(drawn(kind, seed)).most_common(2)
        assert first == kind
        assert most > 2 * second


@pytest.mark.parametrize("kind", KINDS)
def test_a_drawn_trace_could_have_happened(kind):
    events = drawn(kind, "a seed")
    assert events == drawn(kind, "a seed")
    assert events != drawn(kind, "another")
    calls = {event.correlation: event for event in events if event.kind == "call"}
    for stream in ("gpu 7", "gpu 20"):
        queue = [event for event in events if event.lane == stream]
        assert queue or stream == "gpu 20"
        for event, following in zip(queue, queue[1:], strict=False):
            assert event.end <= following.start
        assert all(calls[event.correlation].start < event.start for event in queue)
    for outer in events:
        for inner in events:
            longer = outer.lane == inner.lane and outer.duration >= inner.duration
            if longer and outer.start <= inner.start < outer.end:
                assert inner.end <= outer.end


def test_no_trace_of_an_unknown_kind():
    with pytest.raises(ValueError, match="expected one of loader"):
        drawn("gremlins", 1)


def test_the_recorded_step_is_a_whole_training_step():
    record = recorded_step()
    names = [event.name for event in record.events]
    assert {"step", "forward", "backward", "optimizer", "aten::addmm"} <= set(names)
    (step,) = [event for event in record.events if event.name == "step"]
    assert all(step.start <= event.start and event.end <= step.end for event in record.events)
    assert record.config.n_layers == 2
    assert sum(allocation.bytes > 0 for allocation in record.allocations) > 100
