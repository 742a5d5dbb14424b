"""Drivers of lab 09."""

import pytest
import torch
from torch.profiler import ProfilerActivity, profile, record_function, schedule

from utils.drivers import profiling


def mean_of_squares(logits, targets):
    return (logits * logits).mean(), (targets == 0).sum() / targets.numel()


def test_a_step_is_profiled_by_a_drawn_clock():
    def slowest(step, wait, warmup, active):
        plan = schedule(wait=wait, warmup=warmup, active=active, repeat=1)
        with profile(activities=[ProfilerActivity.CPU], schedule=plan) as profiled:
            for _ in range(wait + warmup + active):
                step()
                profiled.step()
        return {row.key: (row.count, row.self_cpu_time_total) for row in profiled.key_averages()}

    every = dict.fromkeys(profiling.WORK, 1)
    costs = {"aten::_softmax": 70_000, "BlendBackward": 20_000, "all of it": 5_000}
    came = profiling.profiled(slowest, [{}, every, every, every], costs, 1, 1, 2, "all of it")
    assert came["states"] == ["off", "warming up", "recording", "recording"]
    for name, cost in costs.items():
        calls, own = came["found"][name]
        assert (calls, own) == (2, pytest.approx(2 * cost / 1000, abs=0.01))
    inner = {"exp", "tanh", "sort", "mm", "linear", "addmm", "softmax", "stack", "cat"}
    assert {f"aten::{name}" for name in inner} | {"Blend", "ProfilerStep*"} <= came["found"].keys()


def test_numbers_of_a_message():
    assert profiling.numbers_in("Expected [2, 5], got 14x5; tensor b2.") == {2, 5, 14}
    said = profiling.complaint(torch.matmul, [torch.ones(2, 3), torch.ones(4, 5)])
    assert profiling.numbers_in(said) >= {2, 3, 4, 5}
    assert profiling.complaint(torch.matmul, [torch.ones(2, 3), torch.ones(3)]) == ""


def test_operators_and_bytes_are_counted():
    logits, targets = torch.arange(12.0).reshape(1, 3, 4), torch.zeros(1, 3, dtype=torch.int64)
    came = profiling.counted(mean_of_squares, logits, targets)
    assert came["loss"] == (logits * logits).mean()
    assert torch.allclose(came["gradient"], 2 * logits / 12)
    # five operators and their results: mul (12 numbers), mean (1), eq (3 bools), sum (an int64),
    # div (a number)
    assert came["operators"][0] == 5
    assert came["bytes"][0] == 48 + 4 + 3 + 8 + 4


def test_views_and_writing_make_no_bytes():
    with profiling.Counter() as counter:
        made = torch.zeros(10)
        made.view(2, 5).t().add_(1)
    assert counter.bytes == 40
    assert counter.operators == {"zeros": 1, "view": 1, "t": 1, "add_": 1}


def test_a_loss_without_a_graph_has_no_gradient():
    came = profiling.counted(lambda x, _: (x.detach().sum(), 0.5), torch.ones(1, 1, 2), None)
    assert came["gradient"] is None
    assert came["share"] == 0.5


def test_a_backward_that_ignores_what_arrives_has_another_gradient():
    class Sum(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.shape = x.shape
            return x.sum()

        @staticmethod
        def backward(ctx, grad):
            return torch.ones(ctx.shape)

    came = profiling.counted(lambda x, _: (Sum.apply(x), 0.5), torch.ones(1, 1, 2), None)
    assert (came["gradient"] != 1).all()


def test_a_tensor_made_elsewhere_is_reported():
    logits, targets = torch.ones(1, 2, 3), torch.zeros(1, 2, dtype=torch.int64)
    for of_the_host in (
        lambda x, t: ((x + torch.tensor(0.0)).sum(), 0),
        lambda x, t: (x[:, torch.arange(2)].sum(), 0),
    ):
        assert profiling.asks(of_the_host, logits, targets).startswith("OtherDevice")
    there = lambda x, t: (torch.where(t > 0, x.sum(-1), torch.tensor(0.0, device=x.device)), 0)  # noqa: E731
    assert profiling.asks(there, logits, targets) is None


def test_a_request_for_a_number_is_reported():
    logits, targets = torch.ones(1, 2, 3), torch.zeros(1, 2, dtype=torch.int64)
    assert profiling.asks(mean_of_squares, logits, targets) is None
    for waiting in (
        lambda x, t: (x.sum().item(), 0),
        lambda x, t: (x[t == 0].sum(), 0),
        lambda x, t: (x.sum() if (t == 0).any() else 0, 0),
        lambda x, t: (x.sum(), t.tolist()),
        lambda x, t: (x.sum() + torch.ones(2).sum(0, keepdim=True), 0),
    ):
        assert profiling.asks(waiting, logits, targets) is not None


def test_a_hunt_sees_hooks_left_on_the_model():
    chain = {"parts": {"a": {"b": "exp"}, "c": "same as a"}, "last": "log", "first": "times 2"}

    def careless(model, x):
        model.a.register_forward_hook(lambda *_: None)
        return model(x).tolist()

    came = profiling.hunted(careless, chain, torch.tensor([0.0]), times=2)
    assert came == {"found": [[pytest.approx(1)]] * 2, "hooks left": 2, "as before": True}

    def all_modules(model, x):
        torch.nn.modules.module.register_module_forward_hook(lambda *_: None)

    assert profiling.hunted(all_modules, chain, torch.zeros(1))["hooks left"] == 1
    assert not torch.nn.modules.module._global_forward_hooks

    came = profiling.hunted(lambda model, x: model.eval() and None, chain, torch.zeros(1))
    assert came == {"found": [None], "hooks left": 0, "as before": False}


def test_a_hunt_that_raises_leaves_no_hook_on_all_modules():
    def hunts(model, x):
        torch.nn.modules.module.register_module_forward_hook(lambda *_: None)
        raise KeyError("lost")

    with pytest.raises(KeyError):
        profiling.hunted(hunts, {"parts": {"a": "exp"}}, torch.ones(2))
    assert not torch.nn.modules.module._global_forward_hooks


def test_a_table_distinguishes_ranges_from_operators():
    with profile(activities=[ProfilerActivity.CPU]) as profiled:
        for _ in range(2):
            with record_function("step"):
                torch.ones(3, 3) @ torch.ones(3, 3)
    table = profiling.table_of(profiled)
    assert table["step"][:2] == ("range", 2)
    assert table["aten::mm"][:2] == ("op", 2)
    assert table["step"][2] >= table["aten::matmul"][2] >= table["aten::mm"][3] > 0
