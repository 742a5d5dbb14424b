"""Functions and scripts that call `torch.distributed` themselves, in processes of their own.

For what no rank's program asks for: DistributedDataParallel, fully_shard, DTensor and torchrun.
Everything ends with the call: what hangs is ended after a time.
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
GRACE = 5.0  # for torchrun to end its workers, once it has been asked to


def in_processes(
    function: Callable[..., Any], world: int, *args: Any, seconds: float = LIMIT
) -> list[Any]:
    """Call ``function(rank, world, *args)`` in a process for each rank; return what each returned.

    The processes are connected by gloo: the default process group is there. The function may be one
    of a notebook's cell. What they print is lost; what they return are tensors, numbers, strings,
    and lists, tuples and dicts of those. Of an argument that is a `utils.instruments.world.Each`,
    every rank gets its own. NoGloo is raised as by `over_gloo`.
    """

    def program(rank: int, ranks: int, *given: Any) -> Generator:
        yield ("barrier",)
        return function(rank, ranks, *given)

    return over_gloo(program, world, *args, seconds=seconds)


def torchrun(script: str, world: int, seconds: float = LIMIT) -> str:
    """Run a script under torchrun with so many processes here, and return what they printed.

    torchrun is told address and port, since finding them by itself needs a name for this machine.
    NoGloo is raised if it fails, with its last words, or if time is up.
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
                raise NoGloo(f"torchrun has not come to its end after {seconds:g} s") from None
            finally:  # also where the reader interrupts it
                _end(process)
    if process.returncode:
        errors = re.findall(r"\w+Error: .+", trouble)  # a worker's first, torchrun's last
        raise NoGloo(f"torchrun failed: {errors[0] if errors else trouble[-300:]}")
    return said


def _end(process: subprocess.Popen) -> None:
    """It ends its workers; where it doesn't, it alone is killed."""
    process.terminate()
    try:
        process.wait(GRACE)
    except subprocess.TimeoutExpired:
        process.kill()


def flags(world: int) -> list[str]:
    """Return torchrun's options for so many processes on this machine."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    counts = ["--nnodes=1", f"--nproc-per-node={world}"]
    return [*counts, "--master-addr=127.0.0.1", f"--master-port={port}"]
