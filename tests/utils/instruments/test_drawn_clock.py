"""A clock for the profiler: the facts stay, the times are artificial; and the profiler's state."""

import pytest
import torch
from torch.profiler import ProfilerActivity, profile, record_function, schedule

from utils.instruments.drawn_clock import OFF, RECORDING, STEP, WARMING_UP, drawn_clock, states
from utils.instruments.traces import of_profile

COSTS = {
    "aten::_softmax": 40_000,
    "aten::softmax": 3_000,
    "aten::exp": 7_000,
    "mine": 90_000,
    STEP: 500,
}


def run(wait, warmup, active, state=lambda: "", **more):
    plan, seen = schedule(wait=wait, warmup=warmup, active=active, repeat=1), []
    x = torch.ones(2, 3)
    with profile(activities=[ProfilerActivity.CPU], schedule=plan, **more) as profiled:
        for _ in range(wait + warmup + active):
            seen.append(state())
            with record_function("mine"):
                x.softmax(-1)
            x.exp()
            profiled.step()
    return profiled, [*seen, state()]


def test_times_are_the_given_ones():
    with drawn_clock(COSTS):
        profiled, _ = run(0, 1, 2)
        rows = {row.key: row for row in profiled.key_averages()}
        events = of_profile(profiled)
    assert rows["aten::softmax"].self_cpu_time_total == pytest.approx(6, abs=0.1)
    assert rows["aten::softmax"].cpu_time_total == pytest.approx(86, abs=0.1)
    assert rows["aten::_softmax"].self_cpu_time_total == pytest.approx(80, abs=0.1)
    assert rows["mine"].cpu_time_total == pytest.approx(266, abs=0.1)
    assert rows[STEP].self_cpu_time_total == pytest.approx(1, abs=0.1)
    assert rows["aten::exp"].count == 2
    assert sum(row.self_cpu_time_total for row in rows.values()) == pytest.approx(281, abs=0.1)
    # a Chrome trace says the same
    assert [e.duration for e in events if e.name == "aten::exp"] == [7_000, 7_000]
    assert [e.duration for e in events if e.name == "mine"] == [133_000, 133_000]
    assert {e.kind for e in events if e.name.startswith("ProfilerStep")} == {"range"}


def test_other_recorded_events_move_no_time():
    with drawn_clock(COSTS):
        profiled, _ = run(0, 1, 2, with_stack=True, profile_memory=True)
        rows = list(profiled.key_averages())
    assert sum(row.count for row in rows if row.key not in COSTS) > 50  # functions of Python
    assert sum(row.self_cpu_time_total for row in rows) == pytest.approx(281, abs=1e-3)


@pytest.mark.filterwarnings("ignore:Profiler won't be using warmup")
def test_afterwards_the_machines_clock_is_back():
    before = profile._transit_action, torch.autograd.profiler.profile._parse_kineto_results
    with drawn_clock(COSTS), states():
        pass
    assert before == (
        profile._transit_action,
        torch.autograd.profiler.profile._parse_kineto_results,
    )
    profiled, _ = run(0, 0, 1)
    (row,) = [row for row in profiled.key_averages() if row.key == "aten::_softmax"]
    assert row.self_cpu_time_total != 40


@pytest.mark.filterwarnings("ignore:Profiler won't be using warmup")
@pytest.mark.parametrize(("wait", "warmup", "active"), [(0, 0, 1), (2, 0, 1), (0, 2, 1), (1, 2, 3)])
def test_the_profilers_state_is_known(wait, warmup, active):
    with states() as state:
        _, seen = run(wait, warmup, active, state)
    assert seen == [*[OFF] * wait, *[WARMING_UP] * warmup, *[RECORDING] * active, OFF]
