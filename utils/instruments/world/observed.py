"""Messages that `torch.distributed`'s own tools observe, as numbers that a lesson can print."""

# DDP reads the annotations of its hook as objects. So this file has no `from __future__ import
# annotations`, which would turn them into strings.
from types import SimpleNamespace
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.tensor.debug import CommDebugMode
from torch.nn.parallel import DistributedDataParallel


def reduced_buckets(ddp: DistributedDataParallel) -> list[int]:
    """Return a list. When DDP reduces a bucket, the bucket's number of elements is appended to it.

    This uses DDP's communication hook. The hook replaces DDP's averaging, so it also averages.
    """
    buckets: list[int] = []

    def reduce(state: Any, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
        buckets.append(bucket.buffer().numel())
        share = bucket.buffer().div_(dist.get_world_size())
        sent = dist.all_reduce(share, async_op=True)
        return sent.get_future().then(lambda done: done.value()[0])

    ddp.register_comm_hook(None, reduce)
    return buckets


def collectives(comms: CommDebugMode) -> dict[str, int]:
    """Return how often each kind of collective was called in a `CommDebugMode`."""
    return {
        str(kind).split(".")[-1].strip("_"): number
        for kind, number in comms.get_comm_counts().items()
    }


class Returns(nn.Module):
    """A module that calls the module ``inside`` and returns its tensor in another form.

    how: ``"tensor"`` for the tensor itself, ``"dict"`` for a dict with the tensor, ``"object"`` for
        an object with the tensor. torch does not search this object for tensors.
    """

    def __init__(self, inside: nn.Module, how: str) -> None:
        super().__init__()
        self.inside, self.how = inside, how

    def forward(self, *args: Any) -> Any:
        tensor = self.inside(*args)
        if self.how == "tensor":
            return tensor
        return {"it": tensor} if self.how == "dict" else SimpleNamespace(it=tensor)

    def tensor_in(self, returned: Any) -> torch.Tensor:
        """Take the tensor out of the forward's result."""
        if self.how == "tensor":
            return returned
        return returned["it"] if self.how == "dict" else returned.it
