"""Functions and scripts in separate processes: their results and their errors."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.tensor import Replicate, Shard, distribute_tensor, init_device_mesh
from torch.distributed.tensor.debug import CommDebugMode
from torch.nn.parallel import DistributedDataParallel

from utils.instruments.world import Each
from utils.instruments.world.gloo import NoGloo
from utils.instruments.world.observed import Returns, collectives, reduced_buckets
from utils.instruments.world.processes import in_processes, torchrun

pytestmark = pytest.mark.slow(8)


def test_a_function_finds_its_process_group_and_its_own_argument():
    offset = 100

    def function(rank, world, own, same):
        total = torch.tensor([float(own)])
        dist.all_reduce(total)
        return rank, world, dist.get_world_size(), total.item() + offset, same

    found = in_processes(function, 2, Each([1, 10]), "same")
    assert found == [(0, 2, 2, 111.0, "same"), (1, 2, 2, 111.0, "same")]


def test_an_exception_of_a_function_is_reported_with_its_rank():
    def function(rank, world):
        if rank == 1:
            raise KeyError("the second only")

    with pytest.raises(NoGloo, match=r"rank 1: KeyError: 'the second only'"):
        in_processes(function, 2, seconds=20)


def test_torchrun_tells_each_process_who_it_is():
    # torchrun's processes have no buffer, so the pieces that `print` writes would mix
    said = "f\"{os.environ['RANK']} {os.environ['WORLD_SIZE']}\\n\""
    script = f"import os; os.write(1, {said}.encode())"
    assert sorted(torchrun(script, 2).splitlines()) == ["0 2", "1 2"]


def test_a_failing_script_is_reported_with_its_own_error():
    with pytest.raises(NoGloo, match="torchrun failed: ValueError: no such luck"):
        torchrun("raise ValueError('no such luck')", 1)


def test_a_script_without_an_end_is_ended():
    with pytest.raises(NoGloo, match=r"after 0\.5 s"):
        torchrun("import time; time.sleep(600)", 1, seconds=0.5)


def test_the_buckets_of_ddp_are_reported_and_its_gradient_is_still_the_mean():
    def function(rank, world, x):
        layer = nn.Linear(3, 2)
        ddp = DistributedDataParallel(layer)
        buckets = reduced_buckets(ddp)
        with ddp.no_sync():
            ddp(x).sum().backward()
        layer.weight.grad = layer.bias.grad = None
        assert buckets == []
        ddp(x).sum().backward()
        return buckets, layer.weight.grad

    rows = torch.tensor([[1.0, 2.0, 3.0]]), torch.tensor([[3.0, 0.0, 5.0]])
    for buckets, gradient in in_processes(function, 2, Each(rows)):
        assert buckets == [8]
        assert torch.equal(gradient, torch.tensor([[2.0, 1.0, 4.0]] * 2))


def test_the_collectives_of_a_dtensor_are_counted():
    def function(rank, world, x):
        mesh = init_device_mesh("cpu", (world,))
        cut = distribute_tensor(x, mesh, [Shard(0)])
        with CommDebugMode() as quiet:
            cut.mul(2)
        with CommDebugMode() as comms:
            cut.redistribute(mesh, [Replicate()])
        return collectives(quiet), collectives(comms)

    found = in_processes(function, 2, torch.ones(4, 2))
    assert found == [({}, {"all_gather_into_tensor": 1})] * 2


@pytest.mark.parametrize("how", ["tensor", "dict", "object"])
def test_a_modules_results_are_wrapped_and_unwrapped(how):
    module = Returns(nn.ReLU(), how)
    returned = module(torch.tensor([-1.0, 2.0]))
    assert isinstance(returned, torch.Tensor) == (how == "tensor")
    assert module.tensor_in(returned).tolist() == [0.0, 2.0]
