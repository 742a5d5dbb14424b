"""A kernel in a sandbox, for tests that look at it from inside and from outside."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Coroutine
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from grader.inside.bubblewrap import Sandbox, build
from grader.sandbox import SandboxedKernelManager
from grader.sandbox.warm_process import warm
from tests.patience import PATIENCE


def build_at(stage: str) -> Sandbox:
    """A sandbox without a kernel, where it can be made."""
    told = {"stage": stage, "readable": [], "hidden": [], "user_namespace": False}
    return build(told, {"tmp": 1 << 20, "user": 1000, "headers": None})


class Inmate:
    """`with Inmate() as inmate: inmate.run("print(1)")`; options are the manager's."""

    def __init__(self, **options: Any) -> None:
        self.loop = asyncio.new_event_loop()
        self.manager = SandboxedKernelManager(**options)

    def __enter__(self) -> Self:
        self.do(self._start())
        return self

    async def _start(self) -> None:
        await self.manager.start_kernel()
        self.client = self.manager.client()
        self.client.start_channels()
        await self.client.wait_for_ready(PATIENCE)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.client.stop_channels()
        self.do(self.manager.shutdown_kernel(now=True))
        self.loop.close()

    def do(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.loop.run_until_complete(work)

    def run(self, code: str, heard: Callable[[str], None] = lambda text: None) -> str:
        """What the code prints, or its traceback.

        Args:
            heard: told of each piece of it, while the code runs.
        """
        texts: list[str] = []

        def take(message: dict[str, Any]) -> None:
            content = message["content"]
            said = content.get("traceback", [content.get("text", "")])
            texts.extend(said)
            heard("".join(said))

        self.do(self.client.execute_interactive(code, output_hook=take, timeout=PATIENCE))
        return "".join(texts)

    def wait_until_said(self, word: str) -> None:
        """Wait until what runs, which may go on, has printed a word."""
        while True:
            message = self.do(self.client.get_iopub_msg(timeout=PATIENCE))
            if message["msg_type"] == "stream" and word in message["content"]["text"]:
                return

    def value(self, code: str) -> Any:
        """What the last line's expression is, through JSON."""
        *before, last = code.strip().splitlines()
        printed = self.run("\n".join([*before, f"print(__import__('json').dumps({last}))"]))
        try:
            return json.loads(printed)
        except ValueError:
            raise AssertionError(printed) from None

    def ends(self) -> str:
        """Wait until the kernel has ended by itself; why it did."""

        async def wait() -> None:
            while await self.manager.is_alive():
                await asyncio.sleep(0.05)

        self.do(asyncio.wait_for(wait(), PATIENCE))
        return self.manager.why_stopped()


def descendants(root: int | None = None) -> dict[int, str]:
    """Processes below one (default: the zygote), zombies left out: number and command line."""
    root = warm().process.pid if root is None else root
    parents, names = {}, {}
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            try:
                state, parent = (path / "stat").read_text().rpartition(")")[2].split()[:2]
                command = (path / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
            if state not in "ZX":
                parents[int(path.name)], names[int(path.name)] = int(parent), command
    found: dict[int, str] = {}
    new = {root}
    while new:
        new = {pid for pid, parent in parents.items() if parent in new}
        found |= {pid: names[pid] for pid in new}
    return found


def gone(pid: int) -> bool:
    """Whether a process has ended."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True
