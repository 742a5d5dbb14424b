"""The warm process: it has imported everything, never ran an op, and forks a kernel per room.

It is started once per grading process and never sees a seed, a check, a grade or a submission.
Messages are JSON over two kinds of SOCK_SEQPACKET sockets:

- the grading process's socket carries one request per kernel: its limits, and descriptors for its
  lease, its socket to a client, its link, its clock and, where there is one, its folder;
- the lease is that kernel's own. The grading process sends "interrupt" on it, or closes it, also
  by dying, and the room ends. The zygote sends "started", and at the end why it ended.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import select
import shutil
import signal
import socket
import struct
import sys
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grader.sandbox import headers, kernel, linux, room, watch
from grader.sandbox.preload import preload, preload_compiler, preload_tracer

WATCH_SECONDS = 0.1
WAITS = 10  # times a limit that its room may take by the clock on the wall
MESSAGE = 1 << 16
FIXED = 4  # lease, socket to a client, link, clock
CLOCK = struct.Struct("d")


@dataclass
class Tenant:
    """A room with its kernel, its lease, and its limits.

    clock: a file for whoever waits for the room: the seconds of its own that have passed
    """

    room: room.Room
    lease: socket.socket
    meter: watch.Meter
    memory: int
    seconds: float
    clock: int
    begun: float
    nice: int = 0


def main(control_fd: int) -> None:
    """Serve until the grading process is gone.

    What comes first on the socket is JSON with `folder` (removed at the end), `stage` in it,
    `shown` and `hidden` folders for the rooms, and `user_namespace`. It is not on the command
    line, which rooms show.
    """
    grader = os.pidfd_open(os.getppid())
    control = socket.socket(fileno=control_fd)
    told = json.loads(control.recv(MESSAGE))
    try:
        linux.prctl(linux.PR_SET_CHILD_SUBREAPER, 1)
        linux.prctl(linux.PR_SET_DUMPABLE, 0)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        # an editable install would lead to the project's root
        sys.path[:] = [path for path in sys.path if _within(path, told["shown"])]
        preload()
        import torch

        from grader.sandbox.app import prepare  # when the debugger has been kept out

        torch.set_num_threads(1)
        prepare()
        _settle()
        control.send(json.dumps({"ready": True}).encode())
        Zygote(control, grader, told).serve()
    except Exception as error:
        _say(control, {"problem": f"{type(error).__name__}: {error}"})
        raise
    finally:
        shutil.rmtree(told["folder"], ignore_errors=True)


class Zygote:
    """Rooms and their ends, in one thread: bubblewrap dies with the thread that started it."""

    def __init__(self, control: socket.socket, grader: int, told: Mapping[str, Any]) -> None:
        self.control = control
        self.grader = grader
        self.told = told
        self.tenants: list[Tenant] = []
        self.compiles = self.traces = False

    def serve(self) -> None:
        """Until the grading process closes its socket or dies."""
        watched = 0.0
        try:
            while True:
                ready = self._wait()
                if self.grader in ready:
                    return
                if self.control.fileno() in ready and not self._request():
                    return
                for tenant in list(self.tenants):
                    if tenant.lease.fileno() in ready:
                        self._told(tenant)
                    if {tenant.room.kernel_fd, tenant.room.init_fd} & ready:
                        self._end(tenant, "died")
                now = time.monotonic()
                if now - watched >= WATCH_SECONDS:
                    watched = now
                    self._watch(now)
        finally:
            for tenant in list(self.tenants):
                self._end(tenant, "closed")

    def _wait(self) -> set[int]:
        poll = select.poll()
        descriptors = [self.control.fileno(), self.grader]
        for tenant in self.tenants:
            descriptors += [tenant.lease.fileno(), tenant.room.kernel_fd, tenant.room.init_fd]
        for descriptor in descriptors:
            poll.register(descriptor, select.POLLIN)
        return {
            descriptor
            for descriptor, _ in poll.poll(WATCH_SECONDS * 1000 if self.tenants else None)
        }

    def _request(self) -> bool:
        """Start one kernel; False when there is nobody left to ask for one."""
        message, descriptors, _, _ = socket.recv_fds(self.control, MESSAGE, 16)
        if not message:
            return False
        lease = socket.socket(fileno=descriptors[0])
        lease.setblocking(False)
        try:
            self.tenants.append(self._start(json.loads(message), lease, descriptors[1:]))
            _say(lease, {"started": True})
        except Exception as error:
            kinds = {"files": kernel.FilesError, "lost": room.RoomLost}
            whose = {kind: isinstance(error, made) for kind, made in kinds.items()}
            _say(lease, {"problem": str(error), **whose})
            lease.close()
        finally:
            for descriptor in descriptors[1:]:
                os.close(descriptor)
        return True

    def _start(self, asked: dict[str, Any], lease: socket.socket, given: list[int]) -> Tenant:
        told = self.told
        if asked["traces"] and not self.traces:
            preload_tracer()
            _settle()
            self.traces = True
        if asked["headers"] and not self.compiles:
            preload_compiler()
            headers.use(Path(asked["headers"]))
            _settle()
            self.compiles = self.traces = True
        built = room.build(
            told["stage"],
            told["shown"],
            told["hidden"],
            asked["tmp"],
            asked["user"],
            told["user_namespace"],
            asked["headers"],
        )
        try:
            for keeper in built.keepers():
                kernel.set_limits(asked, keeper)
            built.kernel = self._fork(built, asked, given)
            built.kernel_fd = os.pidfd_open(built.kernel)
            meter = watch.Meter(built.init, room.WRITABLE)
        except BaseException:
            built.close()
            raise
        seconds, clock = asked["total_seconds"], os.dup(given[FIXED - 2])
        return Tenant(built, lease, meter, asked["memory"], seconds, clock, time.monotonic())

    def _fork(self, built: room.Room, asked: dict[str, Any], given: list[int]) -> int:
        """The kernel's process id. Only a child of the one that joins is in the PID namespace."""
        report, inside = os.pipe()
        joiner = os.fork()
        if joiner == 0:
            self._join(built, asked, given, inside)
        os.close(inside)
        try:
            with open(report) as file:  # its end is when the kernel is confined, or gone
                said = {name: value for line in file for name, value in json.loads(line).items()}
        finally:
            os.waitpid(joiner, 0)
        if "kernel" not in said:
            # Something killed the joiner. A process that nobody waits for keeps its room from
            # ending, so all of them end here, with the zygote.
            os._exit(1)
        if "confined" not in said:
            os.kill(said["kernel"], signal.SIGKILL)
            os.waitpid(said["kernel"], 0)
            if "files" in said:
                raise kernel.FilesError(said["files"])
            if "problem" in said:
                raise room.RoomError(
                    f"a kernel could not be confined to its room: {said['problem']}"
                )
            raise room.RoomLost("a kernel was killed on its way into its room")
        return said["kernel"]

    def _join(self, built: room.Room, asked: dict[str, Any], given: list[int], report: int) -> None:
        """In the child: enter the room and become, in a child of it, the kernel. Never returns."""
        try:
            spaces = linux.ROOM
            if self.told["user_namespace"]:
                spaces |= linux.CLONE_NEWUSER
            linux.setns(built.init_fd, spaces)
            child = os.fork()
            if child:
                _write(report, {"kernel": child})
                os._exit(0)
            end, link, _ = given[: FIXED - 1]
            files = given[FIXED - 1] if asked["files"] else None
            kernel.confine(asked, files, [end, link, report])
            for tenant in self.tenants:
                tenant.lease.detach()
            self.control.detach()
            self.tenants.clear()
            for descriptor in (end, link):
                os.set_inheritable(descriptor, False)
            kernel.refresh(self.told["stage"], link)
            _write(report, {"confined": True})
            os.close(report)
        except BaseException as error:
            files = isinstance(error, kernel.FilesError)
            with contextlib.suppress(OSError):
                _write(report, {"files": str(error)} if files else {"problem": _trace()})
            os._exit(1)
        try:
            from grader.sandbox.app import run

            run(end, asked["arguments"], room.HOME)
        finally:
            os._exit(0)

    def _told(self, tenant: Tenant) -> None:
        """Something on its lease: an interrupt, or the end."""
        try:
            word = tenant.lease.recv(MESSAGE)
        except BlockingIOError:
            return
        except OSError:
            word = b""
        if word == b"interrupt":
            with contextlib.suppress(ProcessLookupError):
                os.killpg(tenant.room.kernel, signal.SIGINT)
        else:
            self._end(tenant, "closed")

    def _watch(self, now: float) -> None:
        for tenant in list(self.tenants):
            try:
                greedy = tenant.meter.exceeds(tenant.memory)
                tenant.meter.look()
            except OSError:  # there is no room left to measure
                self._end(tenant, "died")
                continue
            tenant.nice = max(tenant.nice, watch.niceness(tenant.meter.runnable))
            if tenant.meter.runnable > watch.FAIR:
                watch.be_nice((tenant.room.init, tenant.room.kernel), tenant.nice)
            passed = tenant.meter.passed
            os.pwrite(tenant.clock, CLOCK.pack(passed), 0)
            if greedy:
                self._end(tenant, "memory")
            elif passed > tenant.seconds or now - tenant.begun > WAITS * tenant.seconds:
                self._end(tenant, "time")

    def _end(self, tenant: Tenant, reason: str) -> None:
        """Kill the room, wait until it is empty, and say so on the lease."""
        if tenant not in self.tenants:
            return
        self.tenants.remove(tenant)
        tenant.meter.close()
        tenant.room.close()
        _say(tenant.lease, {"ended": reason})
        tenant.lease.close()
        os.close(tenant.clock)


def _settle() -> None:
    """After imports: check that a fork can go well, and spare the memory that forks share."""
    tasks = len(os.listdir("/proc/self/task"))
    if tasks != 1:
        raise room.RoomError(f"the warm process has {tasks} threads; a fork would hang")
    gc.collect()
    linux.use_huge_pages()
    gc.freeze()  # the collector of a kernel then writes to no page that all of them share


def _within(path: str, folders: list[str]) -> bool:
    return any(Path(path).is_relative_to(folder) for folder in folders)


def _write(report: int, message: Mapping[str, Any]) -> None:
    """One line, in one piece: the joiner and its child write to the same pipe."""
    os.write(report, json.dumps(message).encode() + b"\n")


def _trace() -> str:
    """The end of the current exception's traceback, short enough for one piece of a pipe."""
    return traceback.format_exc()[-1000:]


def _say(where: socket.socket, message: Mapping[str, Any]) -> None:
    with contextlib.suppress(OSError):  # nobody there to hear it
        where.send(json.dumps(message).encode())
