"""Start a kernel for a notebook and run cells in it, one after the other."""

from __future__ import annotations

import contextlib
import json
import math
import os
import secrets
import select
import signal
import socket
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self

from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel

from hood import UserError
from hood.grader.inside import messages
from hood.grader.inside.usage import AWAITED, OWN_TIME, SPARED, WAITS
from hood.grader.sandbox.limits import MIB, Limits
from hood.grader.sandbox.warm_process import ZygoteDied, warm

PYTHON = ("", "python", "python3")  # Jupyter's kernel names for the Python that runs the grader
SECONDS_TO_SAY_WHY = 1
# The end of a zygote is noticed at once, so this limit is only for a stuck zygote. On a busy
# machine, a sandbox full of processes took more than ten seconds to end.
SECONDS_TO_END = 60
SHORTEST, LONGEST = 0.05, 1.0  # seconds between two looks at a kernel's own time
UNSAFE = "from hood.grader.inside.kernel import prepare, run; prepare(); run({}, {!r})"


class KernelDied(RuntimeError):
    """The kernel is gone; `Kernel.why_stopped` says why."""


class NotInterrupted(RuntimeError):
    """A cell did not end within its time limit, and did not end after the interrupt."""


class TimeIsUp(RuntimeError):
    """A cell was interrupted at its time limit, and has ended."""


class Kernel(ABC):
    """A kernel of :mod:`hood.grader.inside.kernel`: start it, or use it as a context manager.

    ``name`` is the name of a notebook's kernel. Raises UserError if that kernel is not Python.
    """

    waits = WAITS  # by the clock, a cell may take this many times its limit

    def __init__(self, name: str = "") -> None:
        if name not in PYTHON:
            _refuse_other_languages(name)
        self._end: socket.socket
        self._assembler = messages.Assembler()
        # Names that the last cell bound, by line, according to the kernel; see
        # :data:`messages.FORMS`
        self.bound: dict[int, list[str]] = {}

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    @abstractmethod
    def start(self) -> None:
        """Start the kernel."""

    @abstractmethod
    def interrupt(self) -> None:
        """Interrupt the cell that runs."""

    @abstractmethod
    def end(self) -> None:
        """End the kernel and everything that it started."""

    @abstractmethod
    def alive(self) -> bool:
        """Return whether the kernel still runs."""

    @abstractmethod
    def passed(self) -> float:
        """Return seconds of the kernel's own time, which counts for time limits."""

    @abstractmethod
    def why_stopped(self) -> str:
        """Return, in words for a learner, why the kernel ended early; else an empty text."""

    @property
    def died(self) -> bool:
        """Whether the kernel ended by itself or was killed, but not at a limit."""
        return False

    @abstractmethod
    def wait(self, waits: bool) -> None:
        """Record whether the grader waits for the kernel. If not, its sleep does not count."""

    @abstractmethod
    def spare(self, seconds: float) -> None:
        """Set how many seconds of the kernel's own time do not count towards its total limit."""

    @abstractmethod
    def _over(self) -> None:
        """Find out why the kernel's socket was closed, and end the processes that still run."""

    def _starved(self, limit: float) -> Exception | None:
        """Return the error to raise if a limit passed only by the clock; None to raise TimeIsUp."""
        return None

    def run(
        self,
        source: str,
        seconds: float | None = None,
        grace: float = 10,
        heard: Callable[[dict[str, Any] | None, int], None] = lambda message, size: None,
    ) -> dict[str, Any]:
        """Run a cell and return its last message, ``done``.

        For each other message, ``heard`` is called with the result of :func:`messages.decode` and
        the size in bytes. For a late or malformed message, ``heard`` is called with None and the
        size. When ``seconds`` of the kernel's own time have passed, the cell is interrupted.

        Raises:
            TimeIsUp: the cell was interrupted, and ended within ``grace`` seconds.
            NotInterrupted: the cell was interrupted, and did not end within ``grace`` seconds.
            KernelDied: the kernel died.
            ZygoteDied: the machine is too busy.
            messages.BadMessage: the kernel sent a malformed message. This error is raised after the
                cell has ended.
        """
        cell, self.bound = secrets.token_hex(8), {}
        asked = deque(messages.packets(messages.encode({"cell": cell, "source": source})))
        limit = _Limit(self, seconds or math.inf)
        interrupted, bad = False, None
        while True:
            try:
                said = self._next(asked, limit)
                message = messages.decode(said)
            except _Passed as over:
                if interrupted:
                    raise NotInterrupted(f"{seconds} s") from None
                if seconds and over.by_the_clock and (error := self._starved(seconds)):
                    raise error from None
                interrupted = True
                self.interrupt()
                limit = _Limit(self, grace)
                continue
            except messages.BadMessage as error:
                bad = error
                heard(None, messages.PACKET)
                continue
            if message["cell"] == cell and message["kind"] == "done":
                self.bound = {int(line): names for line, names in message["bound"].items()}
            if message["cell"] != cell:
                heard(None, len(said))
            elif message["kind"] != "done":
                heard(message, len(said))
            elif interrupted:
                raise TimeIsUp(f"{seconds} s")
            elif bad:
                raise bad
            else:
                return message

    def _next(self, asked: deque[bytes], limit: _Limit) -> bytes:
        """Send pending packets, and return the next message's bytes."""
        ready = select.poll()
        while True:
            ready.register(self._end, select.POLLIN | (select.POLLOUT if asked else 0))
            if not (events := ready.poll(1000 * limit.left())):
                if not self.alive():
                    raise KernelDied
                continue
            if events[0][1] & select.POLLOUT:
                with contextlib.suppress(OSError):  # its last messages can still be read
                    self._end.send(asked.popleft())
            try:
                packet = self._end.recv(messages.PACKET + 1)
            except BlockingIOError:
                continue
            except OSError:
                packet = b""
            if not packet:
                self._over()
                raise KernelDied
            if (complete := self._assembler.take(packet)) is not None:
                return complete


class _Passed(Exception):
    """A time limit has passed, in the kernel's own time or (``by_the_clock``) by the clock."""

    def __init__(self, by_the_clock: bool) -> None:
        self.by_the_clock = by_the_clock


class _Limit:
    """A limit of a kernel's own time, and a limit by the clock that is ``waits`` times as long."""

    def __init__(self, kernel: Kernel, seconds: float) -> None:
        self._kernel = kernel
        self._until = kernel.passed() + seconds
        self._end = time.monotonic() + kernel.waits * seconds

    def left(self) -> float:
        """Return how many seconds to wait before the next call.

        Raises _Passed if no time is left.
        """
        left = self._until - self._kernel.passed()
        if left <= 0:
            raise _Passed(by_the_clock=False)
        if (by_the_clock := self._end - time.monotonic()) <= 0:
            raise _Passed(by_the_clock=True)
        return max(min(left, by_the_clock, LONGEST), SHORTEST)


def _refuse_other_languages(name: str) -> None:
    """Refuse a kernel that is not Python; the grader always runs its own Python."""
    try:
        language = KernelSpecManager().get_kernel_spec(name).language
    except NoSuchKernel:
        raise UserError(
            f"the notebook's kernel is {name!r}, which is not installed here: "
            "write python3 into the kernelspec of the lab's source"
        ) from None
    if language.lower() != "python":
        raise UserError(
            f"the notebook's kernel is {name!r}, with the language {language}, but only Python "
            "can be graded"
        )


class SandboxedKernel(Kernel):
    """A kernel in its own sandbox, forked by this process's zygote.

    ``files`` is a folder; its plain files are copied into the kernel's working folder. For a lab
    that uses a compiler, ``headers`` is the folder of :mod:`hood.grader.sandbox.compiled_headers`.
    ``preload`` may have "tracer", and names of groups in the course's own sandbox module.
    ``loopback`` says whether the kernel's processes may reach each other over TCP and UDP. After
    the start, ``connection`` is this side of a socket pair; the other side is
    :data:`hood.judge.connection.rpc_server.connection`.
    """

    def __init__(
        self,
        name: str = "",
        *,
        limits: Limits | None = None,
        files: Path | None = None,
        headers: Path | None = None,
        preload: Sequence[str] = (),
        loopback: bool = False,
    ) -> None:
        super().__init__(name)
        self.limits = limits or Limits()
        self.files = files
        self.headers = headers
        self.preload = preload
        self.loopback = loopback
        self.connection: socket.socket
        self._lease: socket.socket | None = None
        self._own_time = -1
        self._ended = ""
        self._status = 0

    def start(self) -> None:
        """Start the kernel in a new sandbox and return when it is confined.

        Raises:
            RuntimeError: the kernel already runs.
            CannotSandbox: this machine cannot make the sandbox.
            FilesRefused: the submission's files could not be copied.
            ZygoteDied: the zygote died. Retrying may help.
        """
        if self._lease is not None:
            raise RuntimeError("this kernel is running already")
        self._ended = ""
        asked = {
            **asdict(self.limits),
            "headers": str(self.headers) if self.headers else None,
            "preload": list(self.preload),
            "loopback": self.loopback,
        }
        with ExitStack() as given, ExitStack() as kept:

            def pair(kind: socket.SocketKind) -> tuple[socket.socket, socket.socket]:
                ours, theirs = socket.socketpair(socket.AF_UNIX, kind)
                return kept.enter_context(ours), given.enter_context(theirs)

            lease, zygotes_lease = pair(socket.SOCK_SEQPACKET)
            end, kernels_end = pair(socket.SOCK_SEQPACKET)
            connection, kernels_connection = pair(socket.SOCK_STREAM)
            own_time = os.memfd_create("own time")
            kept.callback(os.close, own_time)
            os.pwrite(own_time, OWN_TIME.pack(0) + b"\1" + OWN_TIME.pack(0), 0)
            descriptors = [kernels_end.fileno(), kernels_connection.fileno(), own_time]
            if self.files is not None:
                descriptors.append(os.open(self.files, os.O_RDONLY | os.O_DIRECTORY))
                given.callback(os.close, descriptors[-1])
            zygote = warm()
            zygote.start(asked, [zygotes_lease.detach(), *descriptors], lease)
            kept.pop_all()
        lease.setblocking(False)
        end.setblocking(False)
        self._lease, self._end, self.connection, self._own_time = lease, end, connection, own_time

    def passed(self) -> float:
        """Return the seconds of the sandbox's own time (see :class:`Limits`), as last measured."""
        if self._own_time < 0:
            return math.inf
        return OWN_TIME.unpack(os.pread(self._own_time, OWN_TIME.size, 0))[0]

    def wait(self, waits: bool) -> None:
        if self._own_time >= 0:
            os.pwrite(self._own_time, bytes([waits]), AWAITED)

    def spare(self, seconds: float) -> None:
        if self._own_time >= 0:
            os.pwrite(self._own_time, OWN_TIME.pack(seconds), SPARED)

    def alive(self) -> bool:
        self._listen()
        return self._lease is not None and not self._ended

    def why_stopped(self) -> str:
        """Return, in words for a learner, why the kernel ended early; else an empty text.

        Raises ZygoteDied if the learner's code did not cause the end; retrying may help.
        """
        self._listen()
        if self._ended == "lost":
            raise ZygoteDied("the warm process ended while a notebook ran")
        if self._ended == "starved":
            raise self._starved(self.limits.total_seconds)
        if self._ended == "exhausted":
            raise ZygoteDied(
                "this machine ran out of memory while a notebook ran, and Linux killed the "
                "notebook's kernel. Grade with fewer workers, or on a machine with more memory"
            )
        return {
            "memory": f"it used more than {self.limits.memory / MIB:g} MiB of memory",
            "dear": "it had so many mappings or processes that its memory could not be measured",
            "sessions": "it kept starting new sessions of processes",
            "time": f"it ran longer than {self.limits.total_seconds} s in all",
            "died": _exit(self._status),
            "left": "it closed its connection to the grader",
        }.get(self._ended, "")

    def _starved(self, limit: float) -> ZygoteDied:
        return ZygoteDied(
            f"this machine is too busy: {self.waits * limit:g} s by the clock were not enough for "
            f"a limit of {limit:g} s. Grade when the machine is less busy, or with fewer workers"
        )

    @property
    def died(self) -> bool:
        return self._ended == "died"

    def _listen(self) -> None:
        """Read the lease: the zygote may have reported the end of the sandbox."""
        if self._lease is None or self._ended:
            return
        message = b""
        # The zygote may have closed the lease before it read our last message. The first read
        # reports that as an error; the second read returns the zygote's own message.
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

    def interrupt(self) -> None:
        if self.alive():
            assert self._lease is not None
            with contextlib.suppress(BlockingIOError):  # many messages are unread
                self._lease.send(b"interrupt")

    def end(self) -> None:
        """End the kernel's sandbox and return when all its processes have ended.

        Raises ZygoteDied if the sandbox does not end in time.
        """
        self._listen()
        if self._lease is None:
            return
        if not self._ended:
            self._end_of_sandbox()
        self._lease.close()
        self._lease = None
        self._end.close()
        self.connection.close()
        os.close(self._own_time)
        self._own_time = -1

    def _over(self) -> None:
        self._listen()
        if self._lease is None or bool(self._ended):
            return
        if not self._hears_of_the_end(SECONDS_TO_SAY_WHY):
            # the kernel closed its socket and still runs, or the zygote is slow
            self._end_of_sandbox()
            if self._ended == "closed":
                # We ended the sandbox. If that did not kill the kernel, the kernel had ended by
                # itself.
                self._ended = "left" if self._status == -signal.SIGKILL else "died"

    def _end_of_sandbox(self) -> None:
        """Tell the zygote to end the sandbox, and wait for the reported reason."""
        assert self._lease is not None
        with contextlib.suppress(OSError):
            self._lease.send(b"end")
        if not self._hears_of_the_end(SECONDS_TO_END):
            raise ZygoteDied(f"a sandbox did not end within {SECONDS_TO_END} s")

    def _hears_of_the_end(self, seconds: float) -> bool:
        assert self._lease is not None
        said = select.poll()
        said.register(self._lease, select.POLLIN)
        heard = bool(said.poll(1000 * seconds))
        self._listen()
        return heard


class UnsafeKernel(Kernel):
    """A kernel with the grader's own rights, in ``folder``; only the grader ends it."""

    def __init__(self, name: str, folder: Path | None, environment: Mapping[str, str]) -> None:
        super().__init__(name)
        self._folder, self._environment = folder, environment
        self._looked, self._passed = time.monotonic(), 0.0

    def start(self) -> None:
        self._end, theirs = socket.socketpair(socket.AF_UNIX, messages.KIND)
        for end in (self._end, theirs):  # macOS has 2 KiB by default
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 * messages.PACKET)
            end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 * messages.PACKET)
        self._end.setblocking(False)
        home = self._environment.get("HOME", "/")
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", UNSAFE.format(theirs.fileno(), home)],
                pass_fds=[theirs.fileno()],
                env=self._environment,
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )

    def passed(self) -> float:
        """Return seconds by the clock. While the machine is busy, each second counts less."""
        now, busy = time.monotonic(), os.getloadavg()[0] > (os.cpu_count() or 1)
        self._passed += (now - self._looked) / (WAITS if busy else 1)
        self._looked = now
        return self._passed

    def interrupt(self) -> None:
        self._signal(signal.SIGINT)

    def end(self) -> None:
        self._signal(signal.SIGKILL)
        self._process.wait()
        self._end.close()

    def alive(self) -> bool:
        return self._process.poll() is None

    def wait(self, waits: bool) -> None:
        """Do nothing: this kernel's time is measured by the clock."""

    def spare(self, seconds: float) -> None:
        """Do nothing: only the caller ends this kernel at a total limit."""

    def _over(self) -> None:
        self.end()

    def why_stopped(self) -> str:
        return ""

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)


def _exit(status: int) -> str:
    if status >= 0:
        return f"it ended with status {status}"
    with contextlib.suppress(ValueError):  # a real-time signal has no name
        return f"{signal.Signals(-status).name} ended it"
    return f"signal {-status} ended it"
