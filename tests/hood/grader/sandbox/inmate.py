"""A kernel in a sandbox, for tests that look at it from inside and from outside."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from hood.grader.inside import messages
from hood.grader.inside.bubblewrap import Sandbox, build
from hood.grader.sandbox import SandboxedKernel
from hood.grader.sandbox import kernel as kernel_module
from hood.grader.sandbox.warm_process import warm
from tests.patience import PATIENCE


def build_at(stage: str) -> Sandbox:
    """A sandbox without a kernel, in a place where this machine can make sandboxes."""
    told = {"stage": stage, "readable": [], "hidden": [], "user_namespace": False}
    return build(told, {"tmp": 1 << 20, "user": 1000, "headers": None})


class Inmate:
    """`with Inmate() as inmate: inmate.run("print(1)")`; options are the kernel's."""

    def __init__(self, **options: Any) -> None:
        self.kernel = SandboxedKernel(**options)

    def __enter__(self) -> Self:
        self.kernel.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kernel.end()

    def run(self, code: str, heard: Callable[[str], None] = lambda text: None) -> str:
        """The code's output, or its traceback.

        Args:
            heard: called with each piece of the output while the code runs.
        """
        texts: list[str] = []

        def take(message: dict[str, Any] | None, size: int) -> None:
            if message is None:
                return
            said = message.get("traceback", [message.get("text", "")])
            texts.extend(said)
            heard("".join(said))

        self.kernel.run(code, PATIENCE, heard=take)
        return "".join(texts)

    def begin(self, code: str) -> None:
        """Start the code, and return at once."""
        for packet in messages.packets(messages.encode({"cell": "begun", "source": code})):
            self.kernel._end.send(packet)

    def hear(self) -> dict[str, Any]:
        """The next message of what :meth:`begin` began."""
        limit = kernel_module._Limit(self.kernel, PATIENCE)
        return messages.decode(self.kernel._next(deque(), limit))

    def wait_until_said(self, word: str) -> None:
        """Wait until the running code has printed a word."""
        while word not in self.hear().get("text", ""):
            pass

    def value(self, code: str) -> Any:
        """The value of the last line's expression, through JSON."""
        *before, last = code.strip().splitlines()
        printed = self.run("\n".join([*before, f"print(__import__('json').dumps({last}))"]))
        try:
            return json.loads(printed)
        except ValueError:
            raise AssertionError(printed) from None

    def ends(self) -> str:
        """Wait until the kernel has ended by itself; return the reason."""
        end = time.monotonic() + PATIENCE
        while self.kernel.alive():
            assert time.monotonic() < end, "it runs on"
            time.sleep(0.05)
        return self.kernel.why_stopped()


def descriptors() -> set[tuple[str, str]]:
    """This process's open descriptors, except those of garbage: number and what it opens.

    Something that an earlier test left, such as a thread, may close its own descriptors at any
    time. So a test should look for new descriptors, and not expect the same ones.
    """
    gc.collect()
    found = set()
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):  # the one that lists them
            found.add((number, os.readlink(f"/proc/self/fd/{number}")))
    return found


def descendants(root: int | None = None) -> dict[int, str]:
    """Descendants of a process (default: the zygote), without zombies: id and command line."""
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
