"""What nbclient talks to: a kernel manager whose kernels live in sandboxes."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import os
import socket
import struct
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from jupyter_client.kernelspec import NoSuchKernel
from jupyter_client.manager import AsyncKernelManager

from grader import UserError
from grader.sandbox.client import SandboxClient
from grader.sandbox.limits import Limits
from grader.sandbox.warm_process import Warm, ZygoteDied, warm

PYTHON = ("", "python", "python3")  # names under which Jupyter knows the Python that asks
CLOCK = struct.Struct("d")  # as the zygote writes it
SECONDS_TO_SAY_WHY = 1
SECONDS_TO_END = 10
OF_THE_SANDBOX = ("--HistoryManager.", "--IPKernelApp.log_level=")  # arguments that it sets itself


# The overrides that mypy is told to ignore are coroutines, as AsyncKernelManager's own; mypy sees
# those of its synchronous base.
class SandboxedKernelManager(AsyncKernelManager):
    """Starts a kernel in a sandbox of its own, as AsyncKernelManager starts one in the open.

    limits: what the kernel may use
    files: a folder whose plain files the kernel gets a private copy of, as its working folder
    headers: a folder of grader.sandbox.compiled_headers, which it is shown
    link: after the start, this side of the socket pair whose other end the kernel has (its number
        is in the kernel's environment as OPEN_THE_HOOD_LINK)
    """

    def __init__(
        self,
        *,
        limits: Limits | None = None,
        files: Path | None = None,
        headers: Path | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.limits = limits or Limits()
        self.files = files
        self.headers = headers
        self.link: socket.socket
        self._lease: socket.socket | None = None
        self._clock = -1
        self._ended = ""
        self._ending = asyncio.Lock()

    @property
    def has_kernel(self) -> bool:
        """Whether one was started and not shut down yet."""
        return self._lease is not None

    async def start_kernel(  # type: ignore[override]  # see the class
        self,
        *,
        extra_arguments: list[str] | tuple[str, ...] = (),
        cwd: str | None = None,
        env: dict[str, str] | None = None,
    ) -> None:
        """Start it.

        extra_arguments: for IPKernelApp
        cwd, env: not used; nothing of the grader's folders and environment gets into a sandbox
        Raises CannotSandbox, ZygoteDied where trying once more makes sense, and UserError for a
        kernel_name that is not Python's.
        """
        if self.has_kernel:
            raise RuntimeError("this manager has a kernel already")
        self._refuse_other_languages()
        arguments = [text for text in extra_arguments if not text.startswith(OF_THE_SANDBOX)]
        await asyncio.to_thread(self._start, arguments)

    def _refuse_other_languages(self) -> None:
        """Refuse any kernel but a Python one; that of a sandbox is the grader's own Python."""
        if self.kernel_name in PYTHON:
            return
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
                f"{language}: only Python is run behind walls; --unsafe-no-sandbox runs any"
            )

    def _start(self, arguments: list[str]) -> None:
        self._ended = ""
        with ExitStack() as stack:
            lease, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            end, kernels_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            link, kernels_link = socket.socketpair()
            descriptors = [theirs.detach()]
            for given in (kernels_end, kernels_link):
                descriptors.append(stack.enter_context(given).fileno())
            clock = os.memfd_create("clock")
            os.pwrite(clock, bytes(CLOCK.size), 0)
            descriptors.append(clock)
            if self.files is not None:
                descriptors.append(os.open(self.files, os.O_RDONLY | os.O_DIRECTORY))
                stack.callback(os.close, descriptors[-1])
            try:
                self._ask(warm(), arguments, descriptors, lease)
            except BaseException:
                for ours in (lease, end, link):
                    ours.close()
                os.close(clock)
                raise
        lease.setblocking(False)
        end.setblocking(False)
        self._lease, self._end, self.link, self._clock = lease, end, link, clock

    def passed(self) -> float:
        """Seconds of the sandbox's own, up to the last look at it: see Limits."""
        if self._clock < 0:
            return math.inf
        return CLOCK.unpack(os.pread(self._clock, CLOCK.size, 0))[0]

    def client(self, **kwargs: Any) -> SandboxClient:  # type: ignore[override]  # see the class
        """A client of the kernel that was started."""
        return SandboxClient(self._end, parent=self, session=self.session, **kwargs)

    def _ask(
        self, nursery: Warm, arguments: list[str], descriptors: list[int], lease: socket.socket
    ) -> None:
        limits = self.limits
        nursery.start(
            {
                "memory": limits.memory,
                "processes": limits.processes,
                "file": limits.file,
                "tmp": limits.tmp,
                "total_seconds": limits.total_seconds,
                "files": self.files is not None,
                "headers": str(self.headers) if self.headers else None,
                "arguments": arguments,
            },
            descriptors,
            lease,
        )

    async def is_alive(self) -> bool:  # type: ignore[override]  # see the class
        """Whether the kernel still runs."""
        self._listen()
        return self._lease is not None and not self._ended

    _async_is_alive = is_alive  # what a client asks its manager

    def why_stopped(self) -> str:
        """Why the kernel ended before it was told to, in words for a learner; or empty.

        Raises ZygoteDied where the learner had no part in it and another try makes sense.
        """
        self._listen()
        if self._ended == "lost":
            raise ZygoteDied("the warm process ended while a notebook ran")
        return {
            "memory": f"it used more than {_size(self.limits.memory)} of memory",
            "time": f"it ran longer than {self.limits.total_seconds} s in all",
            "died": "the kernel died",
            "left": "it closed its connection to the grader",
        }.get(self._ended, "")

    def _listen(self) -> None:
        """Take note of an end that the zygote reported."""
        if self._lease is None or self._ended:
            return
        try:
            message = self._lease.recv(1 << 16)
        except BlockingIOError:
            return
        except ConnectionError:
            # It ended while a word of ours lay unread: that is reported once, before what it said.
            try:
                message = self._lease.recv(1 << 16)
            except OSError:
                message = b""
        self._ended = json.loads(message)["ended"] if message else "lost"

    async def interrupt_kernel(self) -> None:  # type: ignore[override]  # see the class
        """SIGINT for the kernel and what it runs in the foreground."""
        if await self.is_alive():
            assert self._lease is not None
            self._lease.send(b"interrupt")

    async def shutdown_kernel(  # type: ignore[override]  # see the class
        self, now: bool = False, restart: bool = False
    ) -> None:
        """End the kernel and everything it started; returns when nothing of it is left."""
        if self._lease is None:
            return
        self._listen()
        if not self._ended:
            with contextlib.suppress(OSError):
                self._lease.send(b"end")
            await self._end_of_sandbox()
        self._lease.close()
        self._lease = None
        self._end.close()
        self.link.close()
        os.close(self._clock)
        self._clock = -1

    async def over(self) -> None:
        """The kernel's socket is closed: know why, and let its sandbox end with it."""
        async with self._ending:  # both channels' readers may ask
            self._listen()
            if self._lease is None or self._ended:
                return
            try:
                await self._end_of_sandbox(SECONDS_TO_SAY_WHY)
            except ZygoteDied:  # it closed the socket and lives on
                with contextlib.suppress(OSError):
                    self._lease.send(b"end")
                await self._end_of_sandbox()
                self._ended = "left"

    async def _end_of_sandbox(self, seconds: float = SECONDS_TO_END) -> None:
        loop = asyncio.get_running_loop()
        ended = loop.create_future()
        lease = self._lease
        assert lease is not None

        def note() -> None:
            if not ended.done():
                ended.set_result(None)

        loop.add_reader(lease, note)
        try:
            await asyncio.wait_for(ended, seconds)
        except TimeoutError:
            raise ZygoteDied(f"a sandbox did not end within {seconds} s") from None
        finally:
            loop.remove_reader(lease)
        self._listen()

    async def cleanup_resources(self, restart: bool = False) -> None:  # type: ignore[override]  # see the class
        """Nothing is left of a kernel that was shut down."""

    async def restart_kernel(  # type: ignore[override]  # see the class
        self, now: bool = False, **kwargs: Any
    ) -> None:
        """A new kernel in a new sandbox."""
        await self.shutdown_kernel(now=True)
        await self.start_kernel(**kwargs)


def _size(count: int) -> str:
    """Bytes in words."""
    for unit, name in ((2**30, "GiB"), (2**20, "MiB")):
        if count >= unit and count * 10 % unit == 0:
            return f"{count / unit:g} {name}"
    return f"{count} bytes"
