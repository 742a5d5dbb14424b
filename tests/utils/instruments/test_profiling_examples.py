"""The examples of lesson 09."""

import threading
import time

import pytest
import torch
from torch.profiler import ProfilerActivity, profile, record_function

from tests.patience import PATIENCE, eventually
from utils.instruments.profiling_examples import (
    Device,
    Messages,
    Neighbour,
    anomaly,
    batches_by_length,
    by_self,
    tried,
)


def test_a_batch_holds_lines_of_about_one_length_and_no_column_of_padding():
    inputs = torch.tensor([[1, 2, 3, 4], [1, 0, 0, 0], [1, 2, 3, 0], [1, 2, 0, 0], [5, 6, 7, 8]])
    came = batches_by_length(inputs, inputs + 10, 2, seed=0)
    short, long = sorted((sorted(x.tolist()) for x, _ in came), key=lambda rows: len(rows[0]))
    assert short == [[1, 0], [1, 2]]
    assert long[0] == [1, 2, 3, 0]
    assert long[1] == [1, 2, 3, 4]
    assert all(torch.equal(y, x + 10) for x, y in came)
    orders = {
        tuple(x.shape[1] for x, _ in batches_by_length(inputs, inputs, 2, s)) for s in range(9)
    }
    assert orders == {(2, 4), (4, 2)}


def test_a_table_is_sorted_by_self_time_and_its_shares_add_up():
    with profile(activities=[ProfilerActivity.CPU]) as profiled, record_function("around"):
        for _ in range(3):
            torch.ones(64, 64) @ torch.ones(64, 64)
    table = by_self(profiled)
    assert [row.ms for row in table] == sorted((row.ms for row in table), reverse=True)
    assert sum(row.share for row in table) == pytest.approx(1)
    rows = {row.name: row for row in table}
    assert rows["aten::mm"].calls == 3
    # all other events ran inside the event "around"
    assert rows["around"].total_share == pytest.approx(1)
    assert rows["around"].share < 1
    assert rows["aten::matmul"].total_share > rows["aten::mm"].total_share


def test_a_neighbour_computes_while_it_is_busy_and_is_gone_afterwards():
    before = set(threading.enumerate())
    with Neighbour() as neighbour:
        (thread,) = set(threading.enumerate()) - before
        clock = time.pthread_getcpuclockid(thread.ident)
        time.sleep(0.05)
        idle = time.clock_gettime(clock)
        neighbour.busy = True
        eventually(lambda: time.clock_gettime(clock) > idle + 0.1, "a neighbour's work")
    assert idle < 0.05
    assert not thread.is_alive()


def test_a_device_returns_at_once_and_answers_when_all_is_done():
    device, may_end, order = Device(), threading.Event(), []

    def work(number):
        may_end.wait(PATIENCE)
        order.append(number)
        return torch.full((2,), number)

    device.launch(work, 1.0)
    device.launch(work, 2.0)
    assert order == []
    may_end.set()
    assert device.item() == 4.0
    assert order == [1.0, 2.0]


def test_an_anomaly_names_the_node_and_the_line():
    x = torch.tensor([1.0, 0.0], requires_grad=True)

    def hidden():
        return torch.where(x > 0, x * x.log(), 0).sum()

    first, second = anomaly(hidden).splitlines()
    assert first.startswith("Function 'MulBackward0' returned nan values")
    assert second == "  in hidden: return torch.where(x > 0, x * x.log(), 0).sum()"
    assert anomaly(lambda: x.sum()) == "nothing; the loss is 1.0"


def test_a_wrong_gradient_is_reported():
    x = torch.tensor([0.5], dtype=torch.float64, requires_grad=True)
    assert tried(torch.sigmoid, x) is True
    assert "Jacobian mismatch" in tried(lambda t: t * t.detach(), x)


def test_messages_have_consecutive_numbers_and_each_cause_once(capsys):
    messages = Messages({"torch": torch, "three": torch.ones(3)})
    messages.of(["three.view(2)", "three.reshape(" + "1, " * 99 + "2)"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == " 1  RuntimeError: shape '[2]' is invalid for input of size 3"
    assert lines[1].startswith(" 2  RuntimeError: shape '[1, ")
    assert lines[1].endswith("…")
    messages.causes()
    assert capsys.readouterr().out.startswith(" 1  three.view(2)\n 2  three.reshape(")
    messages.of(["three[3]"])
    capsys.readouterr()
    messages.causes()
    assert capsys.readouterr().out == " 3  three[3]\n"
    with pytest.raises(AssertionError, match="raised nothing"):
        messages.of(["three"])
