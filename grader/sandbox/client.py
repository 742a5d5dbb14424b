"""A kernel client that waits no longer than it must."""

from __future__ import annotations

import queue
import time
from typing import Any

from jupyter_client.asynchronous import AsyncKernelClient

# Both bound what a flood can make this process hold; what is too much is for the reader to say.
MAX_MESSAGE = 9 << 20  # bytes; a little more than an honest kernel sends, see `messages`
MAX_WAITING = 16  # messages; the kernel's own side keeps a thousand more
MAX_UNREAD = 1 << 16  # bytes; what comes on the channels that nobody reads


class RoomClient(AsyncKernelClient):
    """The client of a SandboxedKernelManager, its `parent`."""

    def start_channels(
        self,
        shell: bool = True,
        iopub: bool = True,
        stdin: bool = True,
        hb: bool = False,
        control: bool = True,
    ) -> None:
        """Connect. No heartbeat: the manager knows of a death at once.

        A message that is larger than any honest one ends the connection that it came on.
        """
        self.context.maxmsgsize, self.context.rcvhwm = MAX_UNREAD, 1
        super().start_channels(False, False, stdin, False, control)
        self.context.maxmsgsize, self.context.rcvhwm = MAX_MESSAGE, MAX_WAITING
        super().start_channels(shell, iopub, False, False, False)

    async def wait_for_ready(self, timeout: float | None = None) -> None:
        """Wait until the kernel answers and its outputs arrive. Raises RuntimeError."""
        end = time.monotonic() + (timeout or float("inf"))
        subscribed = False
        while time.monotonic() < end:
            try:
                if not subscribed:
                    await self._until(self.iopub_channel, kind="iopub_welcome")
                    subscribed = True
                asked = self.kernel_info()
                reply = await self._until(self.shell_channel, asked, "kernel_info_reply")
                self._handle_kernel_info_reply(reply)
                while True:
                    message = await self._until(self.iopub_channel, asked, "status")
                    if message["content"]["execution_state"] == "idle":
                        return
            except queue.Empty:
                if not await self.parent.is_alive():
                    raise RuntimeError(
                        f"the kernel ended before it was ready: {self.parent.why_stopped()}"
                    ) from None
        raise RuntimeError(f"the kernel did not answer within {timeout} s")

    @staticmethod
    async def _until(channel: Any, asked: str | None = None, kind: str = "") -> dict[str, Any]:
        """The next message of a kind, to one request or to any. Raises queue.Empty."""
        while True:
            message = await channel.get_msg(timeout=1)
            about = message["parent_header"].get("msg_id")
            if message["msg_type"] == kind and asked in (None, about):
                return message
