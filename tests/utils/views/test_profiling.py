"""Views of profiles: a flame chart, timings, memory over time, counts, host and device."""

from __future__ import annotations

import importlib

import pytest
import torch

from tests.utils.views.examples import QUICK, SLOW, at_once, lines_of_ones
from tests.utils.views.sheets import check
from utils import views
from utils.instruments.traces import Allocation, Event, recorded_step

pytestmark = pytest.mark.slow(6)


def view(name):
    return importlib.import_module(f"utils.views.{name}")


flame, spread, memory, counts, lanes = map(
    view, ("flame_chart", "timing_spread", "memory_timeline", "step_counts", "two_lanes")
)

# flame_chart

NESTED = [
    Event("aten::linear", 0, 100),
    Event("aten::addmm", 10, 60),
    Event("aten::copy_", 20, 5),
    Event("aten::addmm", 75, 20),
]


def rows(events, zoom=1, start=0):
    nodes = flame.read(events)
    found = flame.rows_of(nodes, flame.window(nodes, zoom, start))
    return {row.name: (row.calls, row.total, row.own) for row in found}


def test_own_time_excludes_events_inside():
    assert rows(NESTED) == {
        "aten::linear": (1, 100, 20),
        "aten::addmm": (2, 80, 75),
        "aten::copy_": (1, 5, 5),
    }


def test_a_name_inside_itself_counts_once_in_its_total():
    assert rows([Event("f", 0, 100), Event("g", 5, 90), Event("f", 10, 40)]) == {
        "f": (2, 100, 50),
        "g": (1, 90, 50),
    }


def test_an_event_that_starts_as_another_ends_is_beside_it():
    nodes = flame.read([Event("a", 0, 10), Event("b", 10, 5), Event("c", 15, 5, "cpu 2")])
    assert [(node.name, node.depth) for node in nodes] == [("a", 0), ("b", 0)]


def test_a_window_cuts_the_times():
    assert rows(NESTED, zoom=2, start=50)["aten::addmm"] == (2, 40, 40)


def test_all_own_times_together_are_the_time_in_which_anything_runs():
    events = recorded_step().events
    outermost = sum(node.end - node.start for node in flame.read(events) if node.depth == 0)
    assert sum(own for _, _, own in rows(events).values()) == pytest.approx(outermost)


def test_phases_are_taken_from_the_marks_of_a_step():
    nodes = flame.read(
        [
            Event("aten::mm", 0, 9),
            Event("autograd::engine::evaluate_function: MmBackward0", 10, 30),
            Event("MmBackward0", 11, 20),
            Event("aten::mm", 12, 9),
            Event("Optimizer.step#SGD.step", 50, 20),
            Event("aten::add_", 51, 9),
            Event("mine", 80, 5),
        ]
    )
    assert [node.phase for node in nodes] == [
        "forward", "backward", "backward", "backward", "optimizer", "optimizer", "other",
    ]  # fmt: skip


def test_the_chart_names_the_most_expensive_operator():
    nodes = flame.read(NESTED)
    check(*flame.draw(nodes, 1, 0, False), "most total time is linear's, 100%", "self 0.02 µs")
    check(*flame.draw(nodes, 1, 0, True), "most self time is addmm's, 75%")


def test_an_empty_profile_is_refused():
    with pytest.raises(ValueError, match="at least one event"):
        views.flame_chart([])


# timing_spread


def test_a_verdict_needs_runs_and_halves_that_lie_apart():
    assert spread.verdict(QUICK[:4], SLOW[:4]) == "too few runs to say anything"
    assert spread.verdict(QUICK, SLOW) == "the middle halves do not overlap"
    assert spread.verdict(SLOW, QUICK) == "the middle halves do not overlap"
    assert spread.verdict(QUICK, [t + 1e-4 for t in QUICK]).startswith("the middle halves overlap")


def test_the_spread_tells_ratio_and_quartiles():
    found = spread.read({"before": SLOW, "after": QUICK})
    check(*spread.draw(found, 40), "0.50 times as long", "before: median 20.6 ms, half of 40 runs")
    check(*spread.draw(found, 1), "1 run each", "half of 1 run")


@pytest.mark.parametrize(
    ("timings", "says"),
    [
        ({"a": QUICK}, "shows 2 to 2 timings, got 1"),
        ({"a": QUICK, "b": []}, "runs of 'b', got 0"),
        ({"a": QUICK, "b": [0.0]}, "seconds above 0"),
    ],
)
def test_timings_that_cannot_be_compared_are_refused(timings, says):
    with pytest.raises(ValueError, match=says):
        views.timing_spread(timings)


# memory_timeline

STEP = [
    Event("aten::linear", 0, 100),
    Event("aten::empty", 10, 5),
    Event("autograd::engine::evaluate_function: X", 200, 100),
    Event("aten::mm", 220, 20),
]
BLOCKS = [
    Allocation(64, 1000, 12),
    Allocation(128, 500, 50),
    Allocation(64, -1000, 150),
    Allocation(64, 300, 230),
    Allocation(999, -40, 240),  # was there before the record
]


def test_a_block_is_named_after_the_operator_that_asked_for_it():
    found = memory.read(STEP, BLOCKS)
    told = [(block.maker, block.phase, block.bytes, block.end) for block in found.blocks]
    assert told == [
        ("aten::linear", "forward", 1000, 150),
        ("aten::linear", "forward", 500, None),
        ("aten::mm", "backward", 300, None),
    ]
    assert found.peak == (50.0, 1500)
    assert [found.held(at) for at in (0, 12, 60, 150, 299)] == [0, 1000, 1500, 500, 800]


def test_the_peak_of_a_real_step_is_that_of_its_running_sum():
    step = recorded_step()
    found = memory.read(step.events, step.allocations)
    alive, held, most = set(), 0, 0
    for change in step.allocations:
        if change.bytes > 0 or change.address in alive:
            alive.symmetric_difference_update({change.address})
            held += change.bytes
            most = max(most, held)
    assert found.peak[1] == most
    check(*memory.draw(found), "The peak, ", "blocks alive")


def test_memory_needs_a_profile_that_watched_it():
    with pytest.raises(ValueError, match="profile_memory=True"):
        views.memory_timeline(STEP, [])


# step_counts


def test_counts_are_of_operators_bytes_and_numbers_asked_for():
    found = counts.counts(lines_of_ones, torch.ones(5, 8))
    assert dict(found.operators)["sum"] == 5
    assert (found.bytes, found.asked) == (5 * 4, 5)
    assert counts.counts(at_once, torch.ones(5, 8)).calls == 1
    # An operator that writes in place allocates no memory, and an operator that returns a view
    # allocates none.
    assert counts.counts(lambda x: x.add_(1).t(), torch.ones(5, 8)).bytes == 0
    assert counts.counts(lambda x: torch.split(x + 1, 2), torch.ones(5, 8)).bytes == 5 * 8 * 4


def found_counts():
    return {
        name: {n: counts.counts(step, torch.ones(n, 8)) for n in (1, 4, 64)}
        for name, step in {"row by row": lines_of_ones, "at once": at_once}.items()
    }


def test_the_counts_say_which_grow():
    check(*counts.draw(found_counts(), 64), "the first grow with the size", "64 numbers asked for")
    same = {"a": found_counts()["at once"], "b": found_counts()["at once"]}
    check(*counts.draw(same, 4), "neither grows with the size.")


@pytest.mark.parametrize(
    ("steps", "sizes", "how"),
    [({"a": at_once}, [1], {}), ({"a": at_once, "b": lines_of_ones}, [], {}),
     ({"a": at_once, "b": lines_of_ones}, [1, 2], {"size": 3})],
)  # fmt: skip
def test_steps_that_cannot_be_counted_are_refused(steps, sizes, how):
    with pytest.raises(ValueError, match="step_counts|size: expected 1 and 2, got 3"):
        views.step_counts(steps, lambda n: (torch.ones(n, 2),), sizes, **how)


# two_lanes

LAUNCHED = [
    Event("ProfilerStep#0", 0, 1000, "cpu", "range"),
    Event("aten::mm", 0, 30, "cpu", "op"),
    Event("cudaLaunchKernel", 10, 10, "cpu", "call", 7),
    Event("gemm", 100, 50, "gpu 7", "kernel", 7),
    Event("cudaStreamSynchronize", 30, 170, "cpu", "call"),
]


def test_a_launch_waits_until_its_kernel_begins():
    events = lanes.read(LAUNCHED)
    assert [lanes.queued(events, at) for at in (5, 10, 99, 100)] == [0, 1, 1, 0]
    assert lanes.running(events, "cpu", 15) == ["aten::mm", "cudaLaunchKernel"]
    assert lanes.busy([e for e in events if e.lane == "cpu"]) == 200
    check(
        *lanes.draw("mine", events, 50, lanes.height_of(events)),
        "mine: kernels run 25% of 0.2 µs",
        "1 kernel.",
    )


def test_of_two_events_of_one_extent_the_later_noted_is_outside():
    inner, outer = Event("aten::copy_", 0, 9), Event("aten::to", 0, 9)
    assert lanes.running([inner, outer], "cpu", 3) == ["aten::to", "aten::copy_"]


@pytest.mark.parametrize(
    ("traces", "how"),
    [({}, {}), ({"a": []}, {}), ({"a": LAUNCHED}, {"trace": "b"}), ({"a": LAUNCHED}, {"at": 201})],
)
def test_traces_that_cannot_be_shown_are_refused(traces, how):
    says = "two_lanes|trace: expected a, got 'b'|moment: expected 0 to 200"
    with pytest.raises(ValueError, match=says):
        views.two_lanes(traces, **how)
