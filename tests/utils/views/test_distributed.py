"""Views of distributed programs: a ring, messages, memory of a rank, a pipeline's schedule."""

from __future__ import annotations

import importlib

import pytest
import torch
from torch import nn

from tests.utils.views.examples import ALTERNATING, WRONG, all_forward, of, shift, stuck
from tests.utils.views.sheets import check
from utils import views
from utils.instruments.world import run

pytestmark = pytest.mark.slow(4)


def view(name):
    return importlib.import_module(f"utils.views.{name}")


ring, lines, memory, gantt = map(
    view, ("ring_stepper", "message_lines", "memory_a_rank", "pipeline_gantt")
)

# ring_stepper


@pytest.mark.parametrize(("world", "size"), [(2, 8), (4, 10), (5, 3), (8, 64)])
def test_after_all_steps_every_chunk_is_the_sum_of_all(world, size):
    tensors = [torch.randn(size) for _ in range(world)]
    found = ring.read(tensors)
    assert len(found.states) == 2 * (world - 1) + 1
    total = torch.stack(tensors).double().sum(0)
    for own in found.states[-1]:
        for cell, part in zip(own, total.tensor_split(world), strict=True):
            assert cell.of == frozenset(range(world))
            assert cell.total == (pytest.approx(part.sum().item()) if len(part) else None)


def test_each_rank_has_one_sum_after_half_of_the_steps():
    found = ring.read([torch.ones(12, 3) for _ in range(4)])
    assert [ring.complete(found, step) for step in range(7)] == [0, 0, 0, 4, 8, 12, 16]
    assert found.sent == [step * 9 * 4 for step in range(7)]


@pytest.mark.parametrize(
    ("numbers", "written"),
    [
        ([0.5, -0.012, 1.0, -0.001], ["0.50", "-0.01", "1.00", "0.00"]),
        ([0.0128, -0.0003, 0.0, 0.02], ["0.0128", "-0.0003", "0.0000", "0.0200"]),
        ([111.0, 2.0, 0.0, 30.0], ["111", "2", "0", "30"]),
        ([1e-9, 2e-9, 0.0, 0.0], ["1e-9", "2e-9", "0", "0"]),
    ],
)
def test_all_numbers_of_a_ring_have_as_many_decimals(numbers, written):
    found = ring.read([torch.tensor(numbers).double(), *torch.zeros(3, 4).double()])
    places = ring._places(found)
    assert [ring._written(number, places) for number in numbers] == written


def test_a_chunk_holds_the_numbers_of_those_that_it_has_passed():
    found = ring.read([torch.full((3,), 10.0**rank) for rank in range(3)])
    for state in found.states:
        for cell in (cell for own in state for cell in own):
            assert cell.total == sum(10.0**rank for rank in cell.of)
    check(*ring.draw(found, 1), "Step 1 of 4: 0 of 9", "Rank 1: chunk 0 of 0+1; chunk 1 of 1")


def test_a_ring_sends_the_same_as_in_the_simulated_world():
    def around(rank, world, x):
        for _ in range(2 * (world - 1)):
            to, source = (rank + 1) % world, (rank - 1) % world
            yield "exchange", to, x[: len(x) // world], source

    sent = run(around, 4, torch.ones(12)).sent(0)
    assert ring.read([torch.ones(12)] * 4).sent[-1] == sent


@pytest.mark.parametrize(
    ("tensors", "step", "says"),
    [
        ([torch.ones(4)], 0, "2 to 8 ranks"),
        ([torch.ones(4)] * 9, 0, "2 to 8 ranks"),
        ([torch.ones(4), torch.ones(5)], 0, "one shape"),
        ([torch.ones(4)] * 2, 3, "step: expected 0 to 2"),
    ],
)
def test_an_invalid_ring_is_refused(tensors, step, says):
    with pytest.raises(ValueError, match=says):
        views.ring_stepper(tensors, step=step)


# message_lines


def test_waiting_is_distinguished_from_sending():
    found = lines.read(run(shift, 3, torch.ones(5), (1, 2), latency=1.0))
    assert found.seconds == 3.5
    assert lines.doing(found, 0, 0.5) == "receives from 2"
    assert lines.doing(found, 1, 0.5) == "waits: sends to 2"
    assert lines.doing(found, 2, 1.2) == "receives from 1"
    assert lines.doing(found, 0, 1.2) == "waits: sends to 1"
    assert lines.doing(found, 1, 3.2) == "computes"
    assert lines.doing(found, 2, 3.0) == "waits in all_reduce"
    assert lines.doing(found, 2, 3.5) == "done"
    check(*lines.draw("", found, 100, 3), "3 messages of 60 B in all, 1 collective, 3.5 s.")


def test_a_message_in_a_buffer_makes_nobody_wait_but_the_receiver():
    found = lines.read(run(shift, 3, torch.ones(5), (0, 1, 2), latency=1.0, rendezvous=False))
    assert not found.stuck
    assert {span.does for span in found.spans if span.waits} == set()
    assert found.seconds == 1.5


def test_a_rank_that_waits_for_ever_is_named():
    found = lines.read(stuck(latency=1.0))
    assert [(rank, whom) for rank, _, _, whom in found.stuck] == [(0, (1,)), (1, (2,)), (2, (0,))]
    words = "mine: ranks 0, 1 and 2 wait for ever.", "rank 2: waits to send to rank 0, for ever"
    check(*lines.draw("mine", found, 100, 3), *words)


def met(rank, world):
    yield ("barrier",)


@pytest.mark.parametrize(
    ("runs", "how", "says"),
    [
        ({}, {}, "at least one run"),
        (lambda: {"a": stuck()}, {"run": "b"}, "run: expected a"),
        (lambda: run(met, 9), {}, "1 to 8 ranks"),
    ],
)
def test_runs_that_cannot_be_drawn_are_refused(runs, how, says):
    runs = runs() if callable(runs) else runs
    with pytest.raises(ValueError, match=says):
        views.message_lines(runs, **how)


def test_messages_need_a_time():
    def pass_on(rank, world, x):
        if rank == 0:
            yield "send", 1, x
        else:
            yield "recv", 0

    with pytest.raises(ValueError, match="latency=1.0"):
        views.message_lines(run(pass_on, 2, torch.ones(1)))


# memory_a_rank


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(10, 4)
        self.blocks = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
        self.head = nn.Linear(4, 10, bias=False)
        self.head.weight = self.embedding.weight
        self.scale = nn.Parameter(torch.ones(3))


def test_units_are_blocks_and_a_tied_parameter_counts_once():
    units = memory.read(Tied())
    assert units == {"embedding": 40, "blocks.0": 20, "blocks.1": 20, "its own": 3}


def test_memory_is_divided_by_shares_and_one_unit_is_whole():
    units = memory.read({"a": 100, "b": 60})
    assert sum(memory.held(units, "DDP", 4, "float32").values()) == 16 * 160
    assert memory.held(units, "ZeRO-1", 4, "float32")["optimizer"] == 8 * 40
    assert memory.held(units, "ZeRO-2", 4, "float32")["gradients"] == 4 * 40
    fsdp = memory.held(units, "FSDP", 4, "float32")
    assert fsdp == {"weights": 160, "gradients": 160, "optimizer": 320, "gathered": 800}
    assert memory.held(units, "FSDP", 1, "float32")["gathered"] == 0
    # padded, unit by unit
    assert memory.held(units, "FSDP", 64, "float32")["weights"] == 4 * (2 + 1)
    assert sum(memory.held(units, "DDP", 2, "bfloat16").values()) == 16 * 160


def test_the_memory_says_what_each_kind_holds():
    units = memory.read({"a": 2**20})
    words = "ZeRO-1: weights 4.19 MB, gradients 4.19 MB, optimizer 2.1 MB"
    check(*memory.draw(units, 4, "float32", 10e6), "1,048,576 parameters, 4 ranks", words)


@pytest.mark.parametrize(
    ("model", "how", "says"),
    [
        (nn.ReLU(), {}, "with parameters"),
        ({"a": -1}, {}, "with parameters"),
        ({"a": 1}, {"ranks": 3}, "1, 2, 4"),
        ({"a": 1}, {"precision": "int8"}, "AdamW: expected float32 and bfloat16"),
    ],
)
def test_models_that_hold_nothing_are_refused(model, how, says):
    with pytest.raises(ValueError, match=says):
        views.memory_a_rank(model, **how)


# pipeline_gantt


@pytest.mark.parametrize(("stages", "micro", "backward"), [(1, 1, 2), (2, 5, 1), (4, 8, 3)])
def test_the_bubble_is_that_of_the_formula(stages, micro, backward):
    chart = gantt.timed(gantt.read(all_forward(stages, micro)), backward)
    assert chart.length == (micro + stages - 1) * (1 + backward)
    assert chart.idle == pytest.approx((stages - 1) / (micro + stages - 1))
    assert {chart.held(stage) for stage in range(stages)} == {micro}


def test_nothing_starts_before_what_it_needs():
    chart = gantt.timed(gantt.read(ALTERNATING), 2)
    at = {(job.stage, job.kind, job.micro): (job.start, job.end) for job in chart.jobs}
    for (stage, kind, micro), (start, _) in at.items():
        before = (stage - 1, "F", micro) if kind == "F" else (stage + 1, "B", micro)
        assert start >= at.get(before, (0, 0))[1]
    assert [chart.held(stage) for stage in (0, 1)] == [2, 1]
    check(*gantt.draw("mine", chart, 2), "mine: 12 units, 25% idle; a stage remembers at most 2.")


def test_a_schedule_that_stands_still_is_red():
    chart = gantt.timed(gantt.read(WRONG), 2)
    assert chart.stuck == ((0, "B", 0), (1, "F", 1))
    check(
        *gantt.draw("mine", chart, 2), "stages 0 and 1 wait for ever", "stage 1 for what F1 needs"
    )


@pytest.mark.parametrize(
    ("schedules", "how", "says"),
    [
        ([], {}, "1 to 8 stages"),
        ([[("F", 0)]] * 9, {}, "1 to 8 stages"),
        ([[("G", 0)]], {}, "at stage 0"),
        ([[("F", 32)]], {}, "at stage 0"),
        ([of("F0 F0")], {}, "the same entry twice"),
        ({}, {}, "at least one schedule"),
        ({"a": WRONG}, {"schedule": "b"}, "schedule: expected a"),
    ],
)
def test_an_invalid_schedule_is_refused(schedules, how, says):
    with pytest.raises(ValueError, match=says):
        views.pipeline_gantt(schedules, **how)
