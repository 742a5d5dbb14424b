"""Run functions and scripts that call `torch.distributed` themselves, in separate processes.

Lessons use this for DistributedDataParallel, fully_shard, DTensor and torchrun. All processes end
before the call returns. A process that hangs is killed after a time limit.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

from utils.instruments.world.gloo import NoGloo, loopback, over_gloo

LIMIT = 60.0  # seconds
GRACE = 5.0  # seconds for torchrun to end its workers after the signal to stop


def in_processes(
    function: Callable[..., Any], world: int, *args: Any, seconds: float = LIMIT
) -> list[Any]:
    """Call ``function(rank, world, *args)`` in a process for each rank, and return the results.

    The processes have a default process group, which uses gloo. The function may be defined in a
    notebook's cell. Its printed output is lost. It may return tensors, numbers, strings, and lists,
    tuples and dicts of these. If an argument is a `utils.instruments.world.Each`, every rank gets
    the item with the rank's number. Raises NoGloo in the same cases as `over_gloo`.
    """

    def program(rank: int, ranks: int, *given: Any) -> Generator:
        yield ("barrier",)
        return function(rank, ranks, *given)

    return over_gloo(program, world, *args, seconds=seconds)


def torchrun(script: str, world: int, seconds: float = LIMIT) -> str:
    """Run a script with torchrun in several processes on this machine, and return their output.

    torchrun gets an address and a port, because it can't find them on a machine without a name.
    Raises NoGloo with torchrun's last output if torchrun fails, or if it does not end within the
    time limit.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "script.py")
        file.write_text(script, encoding="utf-8")
        with subprocess.Popen(
            [sys.executable, "-m", "torch.distributed.run", *flags(world), str(file)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ
            | {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": loopback(), "NO_COLOR": "1"},
        ) as process:
            try:
                said, trouble = process.communicate(timeout=seconds)
            except subprocess.TimeoutExpired:
                raise NoGloo(f"torchrun has not ended after {seconds:g} s") from None
            finally:  # also if the reader interrupts the cell
                _end(process)
    if process.returncode:
        # a worker's first error, or the last lines of torchrun's output
        errors = re.findall(r"\w+Error: .+", trouble)
        raise NoGloo(f"torchrun failed: {errors[0] if errors else trouble[-300:]}")
    return said


def _end(process: subprocess.Popen) -> None:
    """Stop torchrun and its workers. If torchrun does not stop in time, kill torchrun alone."""
    process.terminate()
    try:
        process.wait(GRACE)
    except subprocess.TimeoutExpired:
        process.kill()


def flags(world: int) -> list[str]:
    """Return torchrun's options for `world` processes on this machine."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    counts = ["--nnodes=1", f"--nproc-per-node={world}"]
    return [*counts, "--master-addr=127.0.0.1", f"--master-port={port}"]
