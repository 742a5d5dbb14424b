"""The drivers of the measurements: what their machines' clocks say, and what their steps keep."""

import pytest
import torch

from hood.judge.catalogue import find_check
from utils.drivers import measuring
from utils.drivers.measuring import AFTER, BEFORE, Machine

SECONDS = {BEFORE: 3.0, AFTER: 2.0}


def took(machine, name):
    began = machine.clock()
    machine.call(name)
    return machine.clock() - began


def test_a_call_takes_its_seconds_and_what_makes_it_slower():
    machine = Machine(
        1, 3, seconds=SECONDS, slow={AFTER: 10.0}, factors=[1, 2], disturbed=[(AFTER, 1, 50.0)]
    )
    turns = [took(machine, name) for _ in range(4) for name in (BEFORE, AFTER)]
    assert turns == [3, 20, 6, 4, 3, 52, 3, 2]


@pytest.mark.parametrize("name", [BEFORE, AFTER])
def test_a_function_is_called_as_often_as_allowed(name):
    machine = Machine(1, 2, seconds=SECONDS)
    for _ in range(3):
        machine.call(name)
    with pytest.raises(RuntimeError, match=f"`{name}` was called more than 3 times"):
        machine.call(name)


def test_the_work_of_a_call_waits_in_the_queue_and_the_host_waits_if_it_synchronizes():
    returns = {BEFORE: 0.5, AFTER: 0.25}
    machine = Machine(0, 2, seconds=SECONDS, returns=returns, queued=7.0, now=100.0)
    assert [took(machine, name) for name in (BEFORE, AFTER)] == [0.5, 0.25]
    machine.synchronize()
    assert machine.clock() == 100 + 7 + 3 + 2
    machine.synchronize()
    assert took(machine, BEFORE) == 0.5
    machine.synchronize()
    assert machine.clock() == 112 + 3


def test_a_speed_up_gets_both_functions_and_the_machine():
    def speed_up(before, after, warmup, pairs, clock, synchronize):
        assert (warmup, pairs) == (1, 2)
        after()
        synchronize()
        return clock()

    assert measuring.timed(speed_up, {"seconds": SECONDS, "now": 5.0}, 1, 2) == 7.0


ROWS, HIDDEN, OUT = 5, 3, 4
X, WEIGHTS = torch.ones(ROWS, 2), [torch.ones(2, HIDDEN), torch.ones(OUT, HIDDEN)]


def kept(*acts, **settings):
    most_kept = find_check("measured")[1].right["most_kept"]
    return measuring.kept(most_kept, X, [4, 1], WEIGHTS, acts, **settings)


def test_a_step_keeps_the_batch_and_the_rows_of_its_graphs():
    batch, row = X.nbytes, 4 * (HIDDEN + OUT)
    whole = [("forward", 0), ("forward", 1)]
    assert kept()["bytes"] == 0
    assert kept(*whole)["bytes"] == batch + 5 * row
    assert kept(*whole, flat=True)["bytes"] == batch + 5 * row
    assert kept(("forward", 0), ("backward", 0), ("forward", 1))["bytes"] == batch + 4 * row
    assert kept(("forward", 0), ("drop", 0), ("forward", 1))["bytes"] == batch + 4 * row
    assert kept(("forward", 0), ("retain", 0), ("forward", 1))["bytes"] == batch + 5 * row
    heads = kept(("forward", 0), ("head", 0), ("drop head", 0), ("forward", 1))
    assert heads["bytes"] == batch + 4 * row + 4 * 4 * OUT
    ones = [torch.ones_like(weight) for weight in WEIGHTS]
    torch.testing.assert_close(kept(("forward", 0))["gradients"], ones)


def test_a_step_leaves_gradients_and_runs_once():
    once = kept(("forward", 1), ("backward", 1))["gradients"]
    twice = kept(("forward", 1), ("retain", 1), ("backward", 1))["gradients"]
    torch.testing.assert_close([2 * gradient - 1 for gradient in once], twice)

    def impatient(step, weights):
        step()
        step()

    with pytest.raises(RuntimeError, match="more than once"):
        measuring.kept(impatient, X, [4, 1], WEIGHTS, [])
