"""A kernel manager for nbclient whose kernels run in sandboxes."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import os
import signal
import socket
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

from jupyter_client.kernelspec import NoSuchKernel
from jupyter_client.manager import AsyncKernelManager

from grader import UserError
from grader.inside.usage import AWAITED, CLOCK, WAITS
from grader.sandbox.client import SandboxClient
from grader.sandbox.limits import MIB, Limits
from grader.sandbox.warm_process import ZygoteDied, warm

PYTHON = ("", "python", "python3")  # Jupyter's kernel names for the Python that runs the grader
SECONDS_TO_SAY_WHY = 1
# The end of a zygote is heard at once, so this is only for one that is stuck. On a busy machine, a
# sandbox full of processes took more than ten seconds to end.
SECONDS_TO_END = 60


# The overrides that mypy is told to ignore are coroutines, as AsyncKernelManager's own; mypy sees
# those of its synchronous base.
class SandboxedKernelManager(AsyncKernelManager):
    """Start a kernel in a sandbox, as AsyncKernelManager starts one without.

    The plain files of ``files`` are copied into its working folder. A lab that compiles has
    ``headers``, of :mod:`grader.sandbox.compiled_headers`; ``preload`` are "tracer" and groups of
    :data:`grader.inside.preload.ON_DEMAND`. After the start ``connection`` is this side of a socket
    pair, whose other side is :data:`grader.inside.rpc_server.connection`.
    """

    def __init__(
        self,
        *,
        limits: Limits | None = None,
        files: Path | None = None,
        headers: Path | None = None,
        preload: Sequence[str] = (),
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.limits = limits or Limits()
        self.files = files
        self.headers = headers
        self.preload = preload
        self.connection: socket.socket
        self._lease: socket.socket | None = None
        self._clock = -1
        self._ended = ""
        self._status = 0
        self._ending = asyncio.Lock()

    @property
    def has_kernel(self) -> bool:
        """Whether a kernel was started and not shut down yet."""
        return self._lease is not None

    async def start_kernel(  # type: ignore[override]  # see the class
        self,
        **ignored: Any,
    ) -> None:
        """Start the kernel in a new sandbox and return when it is confined.

        The arguments, environment and folder that nbclient names are for kernels of the grader's.
        Raises RuntimeError if the manager already has a kernel; UserError if ``kernel_name`` is not
        a Python kernel; CannotSandbox if this machine cannot make the sandbox; FilesRefused if the
        submission's files could not be copied; ZygoteDied if the zygote died (retrying may help).
        """
        if self.has_kernel:
            raise RuntimeError("this manager has a kernel already")
        if self.kernel_name not in PYTHON:
            self._refuse_other_languages()
        await asyncio.to_thread(self._start)

    def _refuse_other_languages(self) -> None:
        """Refuse a kernel that is not Python; a sandbox always runs the grader's own Python."""
        try:
            spec = self.kernel_spec
            assert spec is not None
            language = spec.language
        except NoSuchKernel:
            raise UserError(
                f"the notebook asks for the kernel {self.kernel_name!r}, which is not installed "
                "here: name python3 in the source's kernelspec"
            ) from None
        if language.lower() != "python":
            raise UserError(
                f"the notebook asks for the kernel {self.kernel_name!r}, whose language is "
                f"{language}: only Python runs in a sandbox; --unsafe-no-sandbox runs any kernel"
            )

    def _start(self) -> None:
        self._ended = ""
        asked = {
            **asdict(self.limits),
            "headers": str(self.headers) if self.headers else None,
            "preload": list(self.preload),
        }
        with ExitStack() as given, ExitStack() as kept:

            def pair(kind: socket.SocketKind) -> tuple[socket.socket, socket.socket]:
                ours, theirs = socket.socketpair(socket.AF_UNIX, kind)
                return kept.enter_context(ours), given.enter_context(theirs)

            lease, zygotes_lease = pair(socket.SOCK_SEQPACKET)
            end, kernels_end = pair(socket.SOCK_SEQPACKET)
            connection, kernels_connection = pair(socket.SOCK_STREAM)
            clock = os.memfd_create("clock")
            kept.callback(os.close, clock)
            os.pwrite(clock, bytes(CLOCK.size) + b"\1", 0)
            descriptors = [kernels_end.fileno(), kernels_connection.fileno(), clock]
            if self.files is not None:
                descriptors.append(os.open(self.files, os.O_RDONLY | os.O_DIRECTORY))
                given.callback(os.close, descriptors[-1])
            zygote = warm()
            zygote.start(asked, [zygotes_lease.detach(), *descriptors], lease)
            kept.pop_all()
        lease.setblocking(False)
        end.setblocking(False)
        self._lease, self._end, self.connection, self._clock = lease, end, connection, clock

    def passed(self) -> float:
        """Return the seconds of the sandbox's own time (see :class:`Limits`) when last measured."""
        if self._clock < 0:
            return math.inf
        return CLOCK.unpack(os.pread(self._clock, CLOCK.size, 0))[0]

    def wait(self, waits: bool) -> None:
        """Say whether the grader now waits for the sandbox; else its sleep is not its own time."""
        if self._clock >= 0:
            os.pwrite(self._clock, bytes([waits]), AWAITED)

    def client(self, **kwargs: Any) -> SandboxClient:  # type: ignore[override]  # see the class
        """Return a client of the running kernel."""
        return SandboxClient(self._end, parent=self, session=self.session, **kwargs)

    async def is_alive(self) -> bool:  # type: ignore[override]  # see the class
        """Return whether the kernel still runs."""
        self._listen()
        return self._lease is not None and not self._ended

    _async_is_alive = is_alive  # the name by which Jupyter's clients call it

    def why_stopped(self) -> str:
        """Return, in words for a learner, why the kernel ended early; empty if it did not.

        Raises ZygoteDied if the learner's code did not cause it; retrying may help.
        """
        self._listen()
        if self._ended == "lost":
            raise ZygoteDied("the warm process ended while a notebook ran")
        if self._ended == "starved":
            raise self.starved(self.limits.total_seconds)
        if self._ended == "exhausted":
            raise ZygoteDied(
                "this machine ran out of memory while a notebook ran, and Linux killed its kernel. "
                "Grade with fewer workers, or where there is more memory"
            )
        return {
            "memory": f"it used more than {self.limits.memory / MIB:g} MiB of memory",
            "dear": "it had so many mappings, or processes, that its memory could not be measured",
            "sessions": "it started new sessions of processes all the time",
            "time": f"it ran longer than {self.limits.total_seconds} s in all",
            "died": _exit(self._status),
            "left": "it closed its connection to the grader",
        }.get(self._ended, "")

    def starved(self, limit: float) -> ZygoteDied:
        """Return the error for a time limit that ended by the clock, before the sandbox's own."""
        return ZygoteDied(
            f"this machine is too busy: {WAITS * limit:g} s by the clock were not enough for what "
            f"may take {limit:g} s. Grade when it is less busy, or with fewer workers"
        )

    @property
    def died(self) -> bool:
        """Whether the kernel ended by itself, or was killed, and no limit was the reason."""
        return self._ended == "died"

    def _listen(self) -> None:
        """Read from the lease whether the zygote reported the end of the sandbox."""
        if self._lease is None or self._ended:
            return
        message = b""
        # The zygote may have closed the lease before it read a word of ours. The first read reports
        # that as an error; the zygote's own message comes with the second.
        for _ in range(2):
            try:
                message = self._lease.recv(1 << 16)
                break
            except BlockingIOError:
                return
            except OSError:
                continue
        said: dict[str, Any] = json.loads(message) if message else {"ended": "lost"}
        self._ended, self._status = said["ended"], said.get("status", 0)

    async def interrupt_kernel(self) -> None:  # type: ignore[override]  # see the class
        if await self.is_alive():
            assert self._lease is not None
            with contextlib.suppress(BlockingIOError):  # many are waiting to be read
                self._lease.send(b"interrupt")

    async def shutdown_kernel(  # type: ignore[override]  # see the class
        self, now: bool = False, restart: bool = False
    ) -> None:
        """End the kernel's sandbox and return when all its processes have ended.

        Raises ZygoteDied if the sandbox does not end in time.
        """
        async with self._ending:  # a reader of a channel may just be in `over`
            self._listen()
            if self._lease is None:
                return
            if not self._ended:
                await self._end_of_sandbox()
            self._lease.close()
            self._lease = None
            self._end.close()
            self.connection.close()
            os.close(self._clock)
            self._clock = -1

    async def over(self) -> None:
        """Find out why the kernel's socket was closed, and end the sandbox if it still runs."""
        async with self._ending:  # the readers of both channels may call this
            self._listen()
            if self._lease is None or bool(self._ended):
                return
            if not await self._hears_of_the_end(SECONDS_TO_SAY_WHY):
                # the kernel closed its socket and still runs, or the zygote is slow
                await self._end_of_sandbox()
                if self._ended == "closed":
                    # by our word; but our word killed nothing that had ended by itself
                    self._ended = "left" if self._status == -signal.SIGKILL else "died"

    async def _end_of_sandbox(self) -> None:
        """Tell the zygote to end the sandbox, and wait until it has said why it ended."""
        assert self._lease is not None
        with contextlib.suppress(OSError):
            self._lease.send(b"end")
        if not await self._hears_of_the_end(SECONDS_TO_END):
            raise ZygoteDied(f"a sandbox did not end within {SECONDS_TO_END} s")

    async def _hears_of_the_end(self, seconds: float) -> bool:
        loop, said, lease = asyncio.get_running_loop(), asyncio.Event(), self._lease
        assert lease is not None
        loop.add_reader(lease, said.set)
        try:
            await asyncio.wait_for(said.wait(), seconds)
        except TimeoutError:
            return False
        finally:
            loop.remove_reader(lease)
        self._listen()
        return True

    async def cleanup_resources(  # type: ignore[override]  # see the class
        self, restart: bool = False
    ) -> None:
        """Do nothing: :meth:`shutdown_kernel` leaves nothing behind."""


def _exit(status: int) -> str:
    if status >= 0:
        return f"it ended with status {status}"
    with contextlib.suppress(ValueError):  # a real-time signal has no name
        return f"{signal.Signals(-status).name} ended it"
    return f"signal {-status} ended it"
