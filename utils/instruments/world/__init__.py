"""A world of ranks in one process: programs are generators, and the scheduler is the network.

A rank's program is a generator function. It yields requests, which are tuples, and each `yield`
returns the answer. The return value of the program is the rank's result:

    def program(rank, world, tensor):
        if rank == 0:
            yield "send", 1, tensor
        elif rank == 1:
            tensor = yield "recv", 0
        total = yield "all_reduce", tensor, "sum"
        return total

    came = run(program, 2, Each([one, two]))
    came.results, came.log, came.seconds

================================================  ==================================================
``yield "send", to, tensor``                      None
``yield "recv", source``                          the tensor
``yield "exchange", to, tensor, source``          the tensor; sends and receives at the same time
``yield "all_reduce", tensor, "sum"``             the sum (or the ``"max"``), at each rank
``yield "all_gather", tensor``                    a list, one tensor of each rank
``yield "reduce_scatter", tensors, "sum"``        the sum of this rank's tensors in all lists
``yield "broadcast", tensor_or_None, source``     the tensor of the source
``yield "barrier",``                              None; all ranks have reached this point
``yield "compute", seconds``                      None; moves the rank's clock
================================================  ==================================================

A tensor is copied when it is sent. Collectives are matched only by their order, as in
`torch.distributed`. `world.gloo` runs the same programs in separate processes.
"""
# ruff: noqa: F401  the names of the room

from utils.instruments.world.events import Collective, Computed, Message, Outcome
from utils.instruments.world.network import (
    BadRequest,
    Deadlock,
    Each,
    Endless,
    Mismatch,
    WorldError,
    connect,
    run,
)
