"""A client for the kernel in a sandbox, with the methods that nbclient calls."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import select
import socket
import time
from collections.abc import Callable
from typing import Any

from jupyter_client.asynchronous import AsyncKernelClient
from nbclient.exceptions import DeadKernelError

from grader.inside import messages
from grader.inside.usage import WAITS

# Messages that a channel holds. It limits the memory that a flood of messages can take here; a
# channel that nobody reads keeps the newest.
MAX_WAITING = 16
SECONDS_TO_SEND = 10
PACKETS_AT_ONCE = 64
SHORTEST = 0.05  # seconds between two looks at a sandbox's clock
GONE = object()  # put into a channel when the kernel's end of the socket is closed


class Channel:
    """One of the two channels, shell or iopub; both use the same socket."""

    def __init__(self, client: SandboxClient, number: int) -> None:
        self._client = client
        self._number = number
        self.waiting: asyncio.Queue[Any] = asyncio.Queue(MAX_WAITING)

    def send(self, message: dict[str, Any]) -> None:
        """Send a request. If the kernel is gone, this is silent, and :meth:`get_msg` raises."""
        end, until = self._client.end, time.monotonic() + SECONDS_TO_SEND
        sandbox = select.poll()
        sandbox.register(end, select.POLLOUT)
        data = messages.encode(message, self._client.session.pack)
        with contextlib.suppress(OSError):
            for packet in messages.packets(data, self._number):
                if not sandbox.poll(max(0.0, until - time.monotonic()) * 1000):
                    return
                end.send(packet)

    async def get_msg(self, timeout: float | None = None) -> dict[str, Any]:
        """Return the next message.

        ``timeout`` are seconds of the sandbox's own time (see :class:`grader.sandbox.Limits`).
        Raises queue.Empty if no message comes in that time; ZygoteDied if so much time has passed
        by the clock that the machine must be too busy; messages.BadMessage if the kernel sent
        something that is no message; DeadKernelError if the kernel's end of the socket is closed.
        """
        if self.waiting.empty():
            self._client.listen()
        said = await self._next(timeout)
        if said is GONE:
            self.waiting.put_nowait(GONE)  # for the next call
            await self._client.parent.over()
            raise DeadKernelError("the kernel's end of the socket is closed")
        if isinstance(said, Exception):
            raise said
        return messages.decode(said)  # as late as possible: decoded, it may be many times as large

    async def _next(self, timeout: float | None) -> Any:
        if timeout is None or not self.waiting.empty():
            return await self.waiting.get()
        manager, end = self._client.parent, time.monotonic() + WAITS * timeout
        until = manager.passed() + timeout
        while (left := until - manager.passed()) > 0:
            if (by_the_clock := end - time.monotonic()) <= 0:
                raise manager.starved(timeout)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(min(left, by_the_clock), SHORTEST)):
                    return await self.waiting.get()
        raise queue.Empty

    def put(self, said: Any) -> bool:
        """Add a message's bytes, an exception or GONE; return whether the channel is now full.

        Then its reader should run before the next packet.
        """
        if self.waiting.full():  # nobody has read since it became full: drop the oldest
            self.waiting.get_nowait()
        self.waiting.put_nowait(said)
        return self.waiting.full()


class SandboxClient(AsyncKernelClient):
    """The client of a :class:`SandboxedKernelManager`, its ``parent``, which closes ``end``."""

    parent: Any  # the SandboxedKernelManager that made it

    def __init__(self, end: socket.socket, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.end = end
        self.allow_stdin = False
        self._assembler = messages.Assembler()
        self._channels = {n: Channel(self, n) for n in (messages.SHELL, messages.IOPUB)}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._listening = False

    @property
    def shell_channel(self) -> Channel:
        """The channel of requests and their replies."""
        return self._channels[messages.SHELL]

    @property
    def iopub_channel(self) -> Channel:
        """The channel of outputs."""
        return self._channels[messages.IOPUB]

    def start_channels(self, *args: Any, **kwargs: Any) -> None:
        """Start the channels in the running event loop."""
        self._loop = asyncio.get_running_loop()

    def stop_channels(self) -> None:
        """Stop reading the socket."""
        self._pause()
        self._loop = None

    async def wait_for_ready(self, timeout: float | None = None) -> None:
        """Wait for the kernel's first message; RuntimeError if none comes in time."""
        try:
            await self.iopub_channel.get_msg(timeout)
        except queue.Empty:
            raise RuntimeError(f"the kernel did not answer within {timeout} s") from None
        except DeadKernelError:
            raise RuntimeError(
                f"the kernel ended before it was ready: {self.parent.why_stopped()}"
            ) from None

    async def execute_interactive(  # type: ignore[override]  # only tests and benchmarks call it
        self,
        code: str,
        *,
        output_hook: Callable[[dict[str, Any]], None],
        timeout: float | None = None,
        **options: Any,
    ) -> dict[str, Any]:
        """Execute code and return the reply, within so many seconds by the clock."""
        async with asyncio.timeout(timeout):
            asked = self.execute(code, **options)
            while True:
                message = await self.iopub_channel.get_msg()
                if message["parent_header"].get("msg_id") != asked:
                    continue
                if message["content"].get("execution_state") == "idle":
                    return await self._recv_reply(asked)
                output_hook(message)

    def listen(self) -> None:
        """Start to read the socket; a channel calls this when somebody waits for a message."""
        if not self._listening and self._loop is not None:
            self._loop.add_reader(self.end, self._take)
            self._listening = True

    def _pause(self) -> None:
        if self._listening:
            assert self._loop is not None
            self._loop.remove_reader(self.end)
            self._listening = False

    def _take(self) -> None:
        for _ in range(PACKETS_AT_ONCE):
            complete: tuple[int, Any] | None
            try:
                packet = self.end.recv(messages.PACKET + 1)
                complete = self._assembler.take(packet) if packet else None
            except BlockingIOError:
                return
            except OSError:
                packet = b""
            except messages.BadMessage as error:
                complete = messages.IOPUB, error
            if not packet:
                self._pause()
                for channel in self._channels.values():
                    channel.put(GONE)
                return
            if complete is not None and self._channels[complete[0]].put(complete[1]):
                return  # let the channel's reader run first
