"""Run a world's programs in separate processes: `torch.distributed` with its gloo backend.

The processes are forks with one thread each. They find each other through a folder, and end before
the call returns. If gloo can't run (for example, in a container without a loopback interface), a
message says so.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from hood.judge.checks.compare import Difference, compare
from utils.instruments.world.network import Each, WorldError, copied, run

LIMIT = 20.0  # seconds
POLL = 0.002  # seconds between two searches of the folder

# A fork can't call backward if its parent has autograd's threads. At the first backward of a
# process, torch starts such a thread for each device. In a CUDA build without a GPU, FakeTensorMode
# pretends that there are eight devices. So the first backward must come before any code is traced.
if not torch.accelerator.is_available():
    torch.ones((), requires_grad=True).backward()


class NoGloo(Exception):
    """The processes did not finish. The message says why."""


def over_gloo(
    program: Callable[..., Generator], world: int, *args: Any, seconds: float = LIMIT
) -> list[Any]:
    """Run a program like `utils.instruments.world.run`, but each rank in a separate process.

    Returns the result of each rank. Raises NoGloo if a rank raised an error or died, if the ranks
    did not end within the time limit, or if this system has no fork or no gloo.
    """
    if not hasattr(os, "fork"):
        raise NoGloo("this system has no fork")
    import torch.distributed as dist

    if not dist.is_available() or not dist.is_gloo_available():
        raise NoGloo("this torch was built without gloo")
    folder = Path(tempfile.mkdtemp(prefix="gloo"))
    sys.stdout.flush()
    sys.stderr.flush()
    children: dict[int, int] = {}  # process -> rank
    try:
        for rank in range(world):
            pid = os.fork()
            if pid == 0:
                _be_a_rank(folder, program, rank, world, args, seconds)
            children[pid] = rank
        _wait(children, folder, seconds)
        return [torch.load(folder / f"{rank}.pt", weights_only=True) for rank in range(world)]
    finally:
        for pid in children:
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
        shutil.rmtree(folder, ignore_errors=True)


def show_over_gloo(program: Callable[..., Generator], world: int, *args: Any) -> None:
    """Run a program over gloo and in the simulated world, and print whether the results agree."""
    began = time.monotonic()
    try:
        simulated = run(program, world, *args).results
    except WorldError as problem:
        print(f"not run over gloo, because the simulation failed: {problem}")
        return
    try:
        real = over_gloo(program, world, *args)
    except NoGloo as problem:
        print(f"over gloo, the program fails: {problem}")
        return
    for rank, (mine, theirs) in enumerate(zip(simulated, real, strict=True)):
        found: Difference | None = compare(theirs, mine)
        if found:
            print(f"over gloo, rank {rank} got another result: {found}")
            return
    took = time.monotonic() - began
    print(f"{world} processes over gloo: the results are the same as above ({took:.1f} s)")


def loopback() -> str:
    """Return the name of this machine's loopback interface."""
    return "lo" if sys.platform == "linux" else "lo0"


def _wait(children: dict[int, int], folder: Path, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while children:
        for pid in list(children):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if not ended:
                continue
            rank = children.pop(pid)
            if status:
                said = folder / f"{rank}.txt"
                words = said.read_text() if said.exists() else "its process died"
                raise NoGloo(f"rank {rank}: {words}")
        if time.monotonic() > deadline:
            late = [rank for rank in children.values() if not (folder / f"{rank}.pt").exists()]
            ranks = ", ".join(map(str, sorted(late)))
            raise NoGloo(f"after {seconds:g} s these ranks have not ended: {ranks}")
        time.sleep(0.005)


def _be_a_rank(
    folder: Path, program: Callable, rank: int, world: int, args: tuple, seconds: float
) -> None:
    status = 1
    try:
        import torch.distributed as dist

        torch.set_num_threads(1)  # a fork does not have the threads of its parent
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1)
        os.dup2(silent, 2)
        os.environ.setdefault("GLOO_SOCKET_IFNAME", loopback())
        patience = timedelta(seconds=seconds)
        store = _folder_store(folder / "store", patience)
        dist.init_process_group("gloo", store=store, rank=rank, world_size=world, timeout=patience)
        mine = [copied(arg[rank] if isinstance(arg, Each) else arg) for arg in args]
        result = _driven(program(rank, world, *mine), rank, world)
        torch.save(result, folder / f"{rank}.pt")
        dist.barrier()  # no process may end while another process still receives
        status = 0
    except BaseException as problem:
        words = f"{type(problem).__name__}: {problem}".splitlines()[0]
        (folder / f"{rank}.txt").write_text(words[:300])
    finally:
        os._exit(status)


def _folder_store(folder: Path, patience: timedelta) -> torch.distributed.Store:
    """Return a store for the ranks' addresses: a folder with a file for each key.

    Torch's own stores don't work here. `FileStore` needs file locks, but a sandbox only pretends to
    lock files. `TCPStore` asks the name server for the name of each peer, which can be slow. In
    this store, other processes never see half a value, because a complete file is renamed. The
    caller must keep a reference to the store, because torch's reference does not keep it alive.
    """
    from torch.distributed import Store

    class FolderStore(Store):
        """The methods of a store that gloo and `torch.distributed` use: set, wait and get."""

        def set(self, key: str, value: bytes | str) -> None:
            written = folder / f"{key.encode().hex()}.{os.getpid()}"
            written.write_bytes(value.encode() if isinstance(value, str) else value)
            written.rename(self._file(key))

        def get(self, key: str) -> bytes:
            self.wait([key])
            return self._file(key).read_bytes()

        def wait(self, keys: list[str], timeout: timedelta = patience) -> None:
            deadline = time.monotonic() + timeout.total_seconds()
            for key in keys:
                while not self._file(key).exists():
                    if time.monotonic() > deadline:
                        raise TimeoutError(f"after {timeout}, no rank has set {key}")
                    time.sleep(POLL)

        @staticmethod
        def _file(key: str) -> Path:
            return folder / key.encode().hex()

    folder.mkdir(exist_ok=True)
    return FolderStore()


def _driven(program: Generator, rank: int, world: int) -> Any:
    answer: Any = None
    while True:
        try:
            request = program.send(answer)
        except StopIteration as end:
            return end.value
        answer = _answered(request, rank, world)


def _answered(request: Any, rank: int, world: int) -> Any:
    import torch.distributed as dist

    kind, *rest = request
    operators = {"sum": dist.ReduceOp.SUM, "max": dist.ReduceOp.MAX}
    if kind == "send":
        dist.send(_header(rest[1]), rest[0])
        dist.send(_plain(rest[1]), rest[0])
    elif kind == "recv":
        header = torch.zeros(HEADER, dtype=torch.int64)
        dist.recv(header, rest[0])
        got = _empty(header)
        dist.recv(got, rest[0])
        return got
    elif kind == "exchange":
        to, tensor, source = rest
        sends = [dist.isend(_header(tensor), to), dist.isend(_plain(tensor), to)]
        got = _answered(("recv", source), rank, world)
        for send in sends:
            assert send is not None  # None only for a rank outside the group
            send.wait()
        return got
    elif kind == "all_reduce":
        got = _plain(rest[0]).clone()
        dist.all_reduce(got, operators[rest[1]])
        return got
    elif kind == "all_gather":
        pieces = [torch.empty_like(_plain(rest[0])) for _ in range(world)]
        dist.all_gather(pieces, _plain(rest[0]))
        return pieces
    elif kind == "reduce_scatter":
        # like gloo itself: reduce all pieces, and keep this rank's piece
        pieces = [_plain(tensor).clone() for tensor in rest[0]]
        for piece in pieces:
            dist.all_reduce(piece, operators[rest[1]])
        return pieces[rank]
    elif kind == "broadcast":
        header = _header(rest[0]) if rank == rest[1] else torch.zeros(HEADER, dtype=torch.int64)
        dist.broadcast(header, rest[1])
        got = _plain(rest[0]).clone() if rank == rest[1] else _empty(header)
        dist.broadcast(got, rest[1])
        return got
    elif kind == "barrier":
        dist.barrier()
    elif kind != "compute":
        raise ValueError(f"there is no request {kind!r}")
    return None


# A receiver over gloo must have a tensor of the right shape and dtype before the data arrive. So
# shape and dtype are sent first: the dtype's number, the number of dimensions, and the sizes.
HEADER = 10
DTYPES = (  # dtypes that gloo supports
    *(torch.float32, torch.float64, torch.float16, torch.bfloat16),
    *(torch.int64, torch.int32, torch.int8, torch.uint8, torch.bool),
    *(torch.complex64, torch.complex128),
)


def _header(tensor: Tensor) -> Tensor:
    if tensor.dtype not in DTYPES:
        raise TypeError(f"gloo does not carry {tensor.dtype}")
    numbers = [DTYPES.index(tensor.dtype), tensor.dim(), *tensor.shape]
    return torch.tensor(numbers + [0] * (HEADER - len(numbers)))


def _empty(header: Tensor) -> Tensor:
    dtype, rank, *sizes = header.tolist()
    return torch.empty(sizes[:rank], dtype=DTYPES[dtype])


def _plain(tensor: Tensor) -> Tensor:
    return tensor.detach().contiguous()
