"""The simulated world: its messages, their times, and its report on a deadlock."""

import gc
import math
import os

import pytest
import torch

from hood.judge.connection.rpc_client import InProcess
from hood.judge.verdicts.subject import Subject
from utils.instruments.world import (
    BadRequest,
    Deadlock,
    Each,
    Endless,
    Message,
    Mismatch,
    connect,
    network,
    run,
)
from utils.instruments.world.gloo import DTYPES, NoGloo, over_gloo, show_over_gloo

NUMBERS = Each([torch.tensor([1.0, 5.0]), torch.tensor([2.0, 4.0]), torch.tensor([3.0, 9.0])])


def everything(rank, world, mine):
    """Each request once."""
    after, before = (rank + 1) % world, (rank - 1) % world
    found = [(yield "exchange", after, mine, before)]
    found.append((yield "all_reduce", mine, "sum"))
    found.append((yield "all_reduce", mine, "max"))
    found += yield "all_gather", mine
    found.append((yield "reduce_scatter", [mine * (k + 1) for k in range(world)], "sum"))
    found.append((yield "broadcast", mine if rank == 1 else None, 1))
    yield ("barrier",)
    yield "compute", 0.5
    if rank == 0:
        assert (yield "send", 2, mine * 2) is None
    elif rank == 2:
        found.append((yield "recv", 0))
    return found


def test_each_request_has_the_documented_result():
    came = run(everything, 3, NUMBERS)
    lists = [[tensor.tolist() for tensor in result] for result in came.results]
    common = [[6.0, 18.0], [3.0, 9.0], [1.0, 5.0], [2.0, 4.0], [3.0, 9.0]]
    assert lists == [
        [[3.0, 9.0], *common, [6.0, 18.0], [2.0, 4.0]],
        [[1.0, 5.0], *common, [12.0, 36.0], [2.0, 4.0]],
        [[2.0, 4.0], *common, [18.0, 54.0], [2.0, 4.0], [2.0, 10.0]],
    ]
    kinds = ["all_reduce", "all_reduce", "all_gather", "reduce_scatter", "broadcast", "barrier"]
    assert [event.kind for event in came.collectives] == kinds
    assert [event.bytes for event in came.collectives] == [8, 8, 8, 24, 8, 0]
    assert [came.sent(rank) for rank in range(3)] == [16, 8, 8]
    assert (came.seconds, came.waiting) == (0.5, {})


def test_messages_and_arguments_are_copies():
    def program(rank, world, tensor):
        if rank == 0:
            yield "send", 1, tensor
            tensor.zero_()
            return tensor
        got = yield "recv", 0
        got += tensor
        total = yield "recv", 2
        return got, total

    def third(rank, world, tensor):
        yield "send", 1, tensor
        return tensor

    given = torch.ones(2)
    ranks = [program(0, 3, given.clone()), program(1, 3, given.clone()), third(2, 3, given)]
    came = connect(ranks, rendezvous=False)
    assert came.results[1][0].tolist() == [2.0, 2.0]
    run(lambda rank, world, x: iter_of(x), 2, given)
    assert given.tolist() == [1.0, 1.0]


def iter_of(x):
    x.zero_()
    yield ("barrier",)


def both_send_first(rank, world, size):
    yield "send", 1 - rank, torch.ones(size)
    return (yield "recv", 1 - rank)


def test_a_send_waits_for_its_receiver_or_is_buffered():
    with pytest.raises(Deadlock, match="rank 0 waits to send to rank 1; rank 1 waits") as stopped:
        run(both_send_first, 2, 3)
    assert stopped.value.outcome.awaits == {0: (1,), 1: (0,)}
    came = run(both_send_first, 2, 3, rendezvous=False, latency=1.0, bandwidth=4.0)
    assert came.results[0].tolist() == [1.0, 1.0, 1.0]
    assert Message(0, 1, 12, 0.0, 0.0, 0.0, 4.0) in came.messages


def test_messages_take_the_time_of_latency_and_bandwidth():
    def chain(rank, world):
        if rank:
            yield "recv", rank - 1
        else:
            yield "compute", 2.0
        if rank < world - 1:
            yield "send", rank + 1, torch.ones(2)

    came = run(chain, 4, latency=0.5, bandwidth=8.0)
    assert came.clocks == [3.5, 5.0, 6.5, 6.5]
    assert [(m.start, m.end) for m in came.messages] == [(2.0, 3.5), (3.5, 5.0), (5.0, 6.5)]

    def meet(rank, world):
        yield "compute", float(rank)
        yield ("barrier",)

    assert run(meet, 3).clocks == [2.0, 2.0, 2.0]


def test_collectives_are_matched_by_order_and_must_fit():
    def other_order(rank, world):
        a, b = torch.tensor([1.0]), torch.tensor([10.0])
        first = yield "all_reduce", a if rank else b, "sum"
        second = yield "all_reduce", b if rank else a, "sum"
        return first.item(), second.item()

    assert run(other_order, 2).results == [(11.0, 11.0), (11.0, 11.0)]
    for one, other, words in [
        (("all_reduce", torch.ones(2), "sum"), ("all_reduce", torch.ones(3), "sum"), r"\(3,\)"),
        (("all_reduce", torch.ones(2), "sum"), ("all_reduce", torch.ones(2), "max"), "max"),
        (("all_gather", torch.ones(2)), ("all_gather", torch.ones(2).long()), "int64"),
        (("broadcast", torch.ones(1), 0), ("broadcast", torch.ones(1), 1), "from rank 1"),
        (("reduce_scatter", [torch.ones(2)] * 2, "sum"), ("barrier",), "barrier"),
    ]:

        def program(rank, world, one=one, other=other):
            yield other if rank else one

        with pytest.raises(Mismatch, match=words):
            run(program, 2)


def test_waiting_for_a_finished_rank_is_reported():
    def program(rank, world):
        if rank:
            yield ("barrier",)

    with pytest.raises(Deadlock, match="in a barrier, and rank 0 has ended") as stopped:
        run(program, 3)
    assert stopped.value.outcome.awaits == {1: (0,), 2: (0,)}


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (torch.ones(2), "tuple"),
        ((), "tuple"),
        (("sned", 1, torch.ones(1)), "there is no request 'sned'"),
        (("send", 1), "expected"),
        (("send", 0, torch.ones(1)), "a rank can't send to itself"),
        (("send", True, torch.ones(1)), "whole number from 0 to 1"),
        (("recv", 2), "whole number from 0 to 1"),
        (("recv", -1), "whole number from 0 to 1"),
        (("send", 1, 3.0), "expected a tensor, got float"),
        (("all_reduce", torch.ones(1), "mean"), "expected one of 'sum', 'max'"),
        (("all_reduce", torch.ones(1), ["sum"]), "expected one of"),
        (("reduce_scatter", [torch.ones(1)], "sum"), "one for each rank"),
        (("broadcast", None, 0), "expected a tensor, got NoneType"),
        (("compute", -1.0), "seconds"),
        (("compute", math.inf), "seconds"),
    ],
)
def test_invalid_requests_of_a_rank_are_refused(request_, words):
    def program(rank, world):
        yield request_

    with pytest.raises(BadRequest, match=words):
        run(program, 2)


def test_a_reduction_that_torch_refuses_is_refused():
    def program(rank, world):
        yield "all_reduce", torch.ones(1, dtype=torch.complex64), "max"

    with pytest.raises(BadRequest, match="all_reduce"):
        run(program, 2)


def test_a_world_has_an_end(monkeypatch):
    monkeypatch.setattr(network, "MAX_REQUESTS", 100)

    def program(rank, world):
        while True:
            yield "compute", 0

    with pytest.raises(Endless, match="100 requests"):
        run(program, 2)

    def large(rank, world):
        # tensors with few bytes of storage, and very many bytes to copy
        yield "all_reduce", torch.ones(1).expand(1 << 40), "sum"

    with pytest.raises(Endless, match="256 MiB"):
        run(large, 2)


def test_each_rank_has_a_gradient_mode_of_its_own():
    def program(rank, world):
        weight = torch.ones(2, requires_grad=True)
        with torch.no_grad():
            weight += yield "all_reduce", weight, "sum"
            yield ("barrier",)
            if rank == 0:
                yield "send", 1, weight
        if rank:
            yield "recv", 0
        return (weight * 2).requires_grad

    assert run(program, 2).results == [True, True]
    assert torch.is_grad_enabled()


@pytest.mark.parametrize("mode", [True, False])
def test_a_world_that_fails_leaves_the_callers_gradient_mode(mode):
    def waits(rank, world):
        with torch.set_grad_enabled(not mode):
            if rank:
                raise KeyError(rank)
            yield "recv", 1

    def both_wait(rank, world):
        with torch.set_grad_enabled(not mode):
            yield "recv", 1 - rank

    with torch.set_grad_enabled(mode):
        for program, error in ((waits, KeyError), (both_wait, Deadlock)):
            with pytest.raises(error):
                run(program, 2)
            gc.collect()
            assert torch.is_grad_enabled() is mode


def test_generators_by_value_are_ranks_too():
    subject = Subject(InProcess(everything))
    came = connect([subject.generator(rank, 3, NUMBERS[rank]) for rank in range(3)])
    assert len(came.results[2]) == 9
    assert came.results[2][-1].tolist() == [2.0, 10.0]


def test_in_a_sum_a_rank_may_count_for_several():
    def program(rank, world, mine):
        total = yield "all_reduce", mine, "sum"
        most = yield "all_reduce", mine, "max"
        own = yield "reduce_scatter", [mine, mine], "sum"
        return total.tolist(), most.tolist(), own.tolist()

    mine = Each([torch.tensor([1, 2]), torch.tensor([10, 20])])
    came = run(program, 2, mine, counts=[3, 0])
    assert came.results == [([3, 6], [10, 20], [3, 6])] * 2
    came = run(program, 2, mine, counts=lambda tensor: [0, tensor.numel()])
    assert came.results == [([20, 40], [10, 20], [20, 40])] * 2
    with pytest.raises(ValueError, match="counts has 3 items for 2 ranks"):
        run(program, 2, mine, counts=[1, 1, 1])


def test_a_message_may_change_on_its_way():
    def program(rank, world):
        if rank == 0:
            yield "send", 1, torch.tensor([1, 2])
            return (yield "recv", 1)
        got = yield "recv", 0
        yield "send", 0, got
        return got

    came = run(program, 2, carry=lambda source, to, tensor: 10 * tensor + to)
    assert [result.tolist() for result in came.results] == [[110, 210], [11, 21]]


def test_an_each_has_one_for_each_rank():
    with pytest.raises(ValueError, match="an Each has 3 items for 2 ranks"):
        run(everything, 2, NUMBERS)


def test_the_same_over_gloo(capsys):
    show_over_gloo(everything, 3, NUMBERS)
    assert "the results are the same as above" in capsys.readouterr().out


@pytest.mark.slow(2)
def test_over_gloo_hanging_ranks_are_ended_and_exceptions_reported(monkeypatch):
    forked, fork = [], os.fork
    monkeypatch.setattr(os, "fork", lambda: forked.append(fork()) or forked[-1])

    def hangs(rank, world):
        if rank == 1:
            yield "recv", 0

    with pytest.raises(NoGloo, match="these ranks have not ended: 1$"):
        over_gloo(hangs, 2, seconds=1.0)

    def raises(rank, world):
        yield ("barrier",)
        if rank == 0:
            raise LookupError("nothing here")

    with pytest.raises(NoGloo, match="rank 0: LookupError: nothing here"):
        over_gloo(raises, 2, seconds=10.0)

    def dies(rank, world):
        yield ("barrier",)
        os._exit(7)

    with pytest.raises(NoGloo, match="its process died"):
        over_gloo(dies, 2, seconds=10.0)
    assert len(forked) == 6
    for pid in forked:
        with pytest.raises(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)  # it has been waited for


def test_over_gloo_supported_dtypes_arrive_unchanged_and_others_are_refused():
    def sends(rank, world, *dtypes):
        came = []
        for dtype in dtypes:
            if rank == 0:
                yield "send", 1, torch.tensor([0, 1], dtype=dtype)
            else:
                came.append((yield "recv", 0))
        return came

    found = over_gloo(sends, 2, *DTYPES, seconds=20.0)[1]
    for tensor, dtype in zip(found, DTYPES, strict=True):
        assert torch.equal(tensor, torch.tensor([0, 1], dtype=dtype)), dtype
        assert tensor.dtype == dtype
    with pytest.raises(NoGloo, match=r"rank 0: TypeError: gloo does not carry torch\.int16"):
        over_gloo(sends, 2, torch.int16, seconds=20.0)


def test_over_gloo_a_difference_is_reported(capsys, monkeypatch):
    pid = os.getpid()

    def tells(rank, world):
        yield ("barrier",)
        return 1 if os.getpid() == pid else 2

    show_over_gloo(tells, 2)
    assert "rank 0 got another result" in capsys.readouterr().out
    show_over_gloo(both_send_first, 2, 1)
    assert "because the simulation failed: rank 0 waits" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("request_", "copies"),
    [
        (("all_gather", torch.ones(25)), 25),
        (("all_reduce", torch.ones(25), "sum"), 5),
        (("broadcast", torch.ones(25), 0), 5),
        (("reduce_scatter", [torch.ones(5)] * 5, "sum"), 1),
    ],
)
def test_the_results_of_a_collective_count(monkeypatch, request_, copies):
    """A tensor of one number may have a huge shape, and five ranks get five copies each."""

    def program(rank, world):
        yield request_

    put_in = 100 if request_[0] == "broadcast" else 500
    monkeypatch.setattr(network, "MAX_BYTES", put_in + 100 * copies)
    run(program, 5)
    monkeypatch.setattr(network, "MAX_BYTES", put_in + 100 * copies - 1)
    with pytest.raises(Endless):
        run(program, 5)


def test_no_clock_overflows():
    def program(rank, world):
        yield "compute", 10**400

    with pytest.raises(BadRequest, match="the seconds must be a number from 0 to 1e"):
        run(program, 1)
