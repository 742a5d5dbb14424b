"""The zygote, or warm process: it imports everything, starts no thread, and forks the kernels.

Each grading process starts one zygote. The zygote never sees a seed, a check or a grade. The only
part of a submission that the zygote gets is the descriptor of the submission's folder. The zygote
exchanges JSON messages over two kinds of SOCK_SEQPACKET sockets:

- The control socket, from the grading process, carries one request for each kernel. A request has
  the kernel's limits and these descriptors: the lease, the socket to a client, the connection, the
  time file and, if there is one, the submission's folder. In the time file, the zygote writes how
  much of the sandbox's own time has passed, and the grading process writes whether it waits for the
  kernel.
- The lease belongs to one kernel. The grading process sends "interrupt" on the lease. Any other
  message ends the sandbox. Closing the lease also ends the sandbox. If the grading process dies,
  Linux closes the lease. The zygote sends "started" and, at the end, the reason for the end.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import select
import shutil
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hood.grader.inside import bubblewrap, cgroup, confinement, course_sandbox, linux, usage
from hood.grader.inside.long_lived import long_lived
from hood.grader.inside.preload import preload
from hood.judge.connection import course_code, originals

WATCH_SECONDS = 0.1
# This many kernels start before the zygote's memory is moved into huge pages. Moving takes as much
# time as it saves in a dozen kernels, so one or two notebooks would only lose time.
FEW = 2
MESSAGE = 1 << 16
EDITABLE = "__editable__"  # in the name of an editable install's finder
COMPILER, TRACER = "compiler", "tracer"  # additional groups of modules to import


@dataclass
class RunningSandbox:
    sandbox: bubblewrap.Sandbox
    lease: socket.socket  # the zygote's end
    meter: usage.Meter
    limits: Mapping[str, Any]  # `memory` in bytes, `total_seconds` of own time (`usage.Meter.look`)
    own_time: int
    begun: float  # by `time.monotonic`
    group: cgroup.Group | None
    killed: int  # at the start, how many processes Linux had killed on this machine for memory
    nice: int = 0  # the niceness that was set so far
    glance: float = 0.0  # when its memory is measured next, by `time.monotonic`


def main(control_fd: int) -> None:
    """Serve until the grading process has ended.

    The first message on the control socket is a JSON object with these keys:

    - ``folder``: the zygote removes this folder at the end.
    - ``stage``: a folder in ``folder``, with the modules that a kernel imports, ``etc``, ``proc``
      and ``sys``.
    - ``readable``: folders that a sandbox sees at the same path.
    - ``hidden``: folders inside the readable folders that a sandbox does not see.
    - ``user_namespace``: whether to make a user namespace.
    - ``packages``: the names of the course's packages.
    - ``sandbox``: the name of the course's own sandbox module, or an empty string.
    - ``cgroup``: the path from :func:`cgroup.enter`, or null.

    The command line does not have these values, because sandboxes can read a command line.
    """
    grader = os.pidfd_open(os.getppid())
    control = socket.socket(fileno=control_fd)
    told = json.loads(control.recv(MESSAGE))
    try:
        linux.prctl(linux.PR_SET_CHILD_SUBREAPER, 1)
        linux.prctl(linux.PR_SET_DUMPABLE, 0)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        # drop, among others, the path of an editable install, which leads to the project's root
        sys.path[:] = [
            path
            for path in sys.path
            if any(Path(path).is_relative_to(folder) for folder in told["readable"])
        ]
        sys.meta_path[:] = [one for one in sys.meta_path if EDITABLE not in str(one)]
        course_code.tell(told["packages"])
        with _before_forks():
            from hood.grader.inside.kernel import prepare

            prepare()
            course = course_sandbox.load(told["sandbox"])
            preload(course)
            course.one_thread()
            originals.remember()
        control.send(json.dumps({"ready": True}).encode())
        Zygote(control, grader, told, course).serve()
    except Exception as error:
        _say(control, {"problem": f"{type(error).__name__}: {error}"})
        raise
    finally:
        shutil.rmtree(told["folder"], ignore_errors=True)


class Zygote:
    """Start, watch and end sandboxes in one thread, because bubblewrap dies with that thread.

    ``grader`` is a pidfd of the grading process. ``told`` is the first message; see :func:`main`.
    ``course`` has the course's sandbox settings.
    """

    def __init__(
        self,
        control: socket.socket,
        grader: int,
        told: Mapping[str, Any],
        course: course_sandbox.CourseSandbox,
    ) -> None:
        self.control = control
        self.course = course
        self.grader = grader
        self.told = told
        self.running: list[RunningSandbox] = []
        self.preloaded: set[str] = set()
        self.started = 0
        self.forks = 0  # since the last import
        self.moved = False  # whether the memory is in huge pages since then
        self.nice = os.nice(0)  # the least niceness of a sandbox, which has its own session

    def serve(self) -> None:
        watch = 0.0
        try:
            while True:
                ready = self._wait()
                if self.grader in ready:
                    return
                if self.control.fileno() in ready and not self._request():
                    return
                for entry in list(self.running):
                    if entry.lease.fileno() in ready:
                        self._receive(entry)
                    if {entry.sandbox.kernel_fd, entry.sandbox.init_fd} & ready:
                        self._end(entry, "died")
                if time.monotonic() >= watch:
                    self._watch(self._excess)
                    # Look at irregular times, so that a thread can't run only at the time of a
                    # look. A sandbox that is stopped while it is measured runs between two looks.
                    watch = time.monotonic() + WATCH_SECONDS * (0.5 + random.random())
                else:
                    self._watch(self._glance)
        finally:
            for entry in list(self.running):
                self._end(entry, "closed")

    def _wait(self) -> set[int]:
        poll = select.poll()
        descriptors = [self.control.fileno(), self.grader]
        for entry in self.running:
            descriptors += [entry.lease.fileno(), entry.sandbox.kernel_fd, entry.sandbox.init_fd]
        for descriptor in descriptors:
            poll.register(descriptor, select.POLLIN)
        seconds = min((entry.glance - time.monotonic() for entry in self.running), default=None)
        if seconds is not None:
            seconds = 1000 * max(0.0, min(seconds, WATCH_SECONDS))
        return {ready for ready, _ in poll.poll(seconds)}

    def _request(self) -> bool:
        """Read one request and start its kernel; return False if the control socket is closed."""
        message, descriptors, _, _ = socket.recv_fds(self.control, MESSAGE, 16)
        if not message:
            return False
        lease = socket.socket(fileno=descriptors[0])
        lease.setblocking(False)
        try:
            self.running.append(self._start(json.loads(message), lease, *descriptors[1:]))
            _say(lease, {"started": True})
        except Exception as error:
            files, lost = confinement.FilesError, bubblewrap.SandboxLost
            whose = {"files": isinstance(error, files), "lost": isinstance(error, lost)}
            _say(lease, {"problem": str(error), **whose})
            lease.close()
        finally:
            for descriptor in descriptors[1:]:
                os.close(descriptor)
        return True

    def _start(
        self,
        asked: dict[str, Any],
        lease: socket.socket,
        end: int,
        connection: int,
        own_time: int,
        files: int | None = None,
    ) -> RunningSandbox:
        self._import(asked)
        may_wait = not self.running  # limits are not watched meanwhile
        if may_wait and self.forks >= FEW and not self.moved:
            linux.use_huge_pages()
            self.moved = True
        self.forks += 1
        self.started += 1
        built = bubblewrap.build(self.told, asked)
        group = meter = None
        try:
            if above := self.told["cgroup"]:
                group = cgroup.Group(Path(above), f"sandbox-{os.getpid()}-{self.started}")
            for keeper in built.keepers():
                confinement.set_limits(asked, keeper)
                if group:
                    group.add(keeper)
            built.kernel = self._fork(built, asked, group, end, connection, files)
            built.kernel_fd = os.pidfd_open(built.kernel)
            if group:
                group.limit(asked["memory"])
            meter = usage.Meter(built.init, bubblewrap.WRITABLE, os.getppid())
            begun, killed = time.monotonic(), usage.killed_for_memory()
            own_time = os.dup(own_time)
        except BaseException:  # after any error, nobody else would end this sandbox
            if meter:
                meter.close()
            built.close()
            if group:
                group.close()
            raise
        return RunningSandbox(built, lease, meter, asked, own_time, begun, group, killed)

    def _import(self, asked: Mapping[str, Any]) -> None:
        wanted = {*asked["preload"], *([COMPILER] if asked["headers"] else [])}
        for group in sorted(wanted - self.preloaded):
            with _before_forks():
                if group == COMPILER:
                    self.course.preload_compiler()
                    self.course.use_headers(Path(asked["headers"]), course_sandbox.SHOWN)
                elif group == TRACER:
                    self.course.preload_tracer()
                else:
                    self.course.preload_group(group)
            self.preloaded |= {group, TRACER} if group == COMPILER else {group}
            originals.remember(anew=True)
            self.forks, self.moved = 0, False

    def _fork(self, built: bubblewrap.Sandbox, asked: dict[str, Any], *given: Any) -> int:
        """Fork the kernel into the sandbox; return the kernel's process id outside the sandbox.

        This takes two forks. The first child joins the namespaces, but only the child of that child
        is then in the PID namespace. For the other arguments see :meth:`_join`.
        """
        report, inside = os.pipe()
        try:
            joiner = os.fork()
        except OSError:
            os.close(report)
            os.close(inside)
            raise
        if joiner == 0:
            self._join(inside, built, asked, *given)
        os.close(inside)
        said: dict[str, Any] = {}
        try:
            # the pipe ends when the kernel is confined or has ended
            with open(report, errors="replace") as file:
                for line in file:
                    with contextlib.suppress(ValueError):  # an incomplete line is ignored
                        said |= json.loads(line)
        finally:
            os.waitpid(joiner, 0)
        if "kernel" not in said:
            # The first child was killed. If it had a child, the id of that child is not known. A
            # process without a waiting parent keeps its sandbox from ending. So the zygote ends
            # with all its sandboxes, and the grading process starts a new zygote.
            os._exit(1)
        if "confined" not in said:
            os.kill(said["kernel"], signal.SIGKILL)
            os.waitpid(said["kernel"], 0)
            if "files" in said:
                raise confinement.FilesError(said["files"])
            if "problem" in said:
                raise bubblewrap.SandboxError(
                    f"a kernel could not be confined to its sandbox: {said['problem']}"
                )
            raise bubblewrap.SandboxLost("a kernel was killed while it entered its sandbox")
        return said["kernel"]

    def _join(
        self,
        report: int,
        built: bubblewrap.Sandbox,
        asked: dict[str, Any],
        group: cgroup.Group | None,
        end: int,
        connection: int,
        files: int | None,
    ) -> None:
        """Enter the sandbox, fork again, and become the kernel in the new child. Never return.

        ``report`` is a pipe for the kernel's process id and for errors.
        """
        try:
            spaces = linux.SANDBOX
            if self.told["user_namespace"]:
                spaces |= linux.CLONE_NEWUSER
            # When memory runs out, Linux should kill kernels first. A sandbox's own /proc is
            # read-only, so the score is set here. If a dump is not allowed, the file with the score
            # belongs to root.
            linux.prctl(linux.PR_SET_DUMPABLE, 1)
            Path("/proc/self/oom_score_adj").write_text("500")
            linux.prctl(linux.PR_SET_DUMPABLE, 0)
            if group:
                group.add()
            linux.setns(built.init_fd, spaces)
            child = os.fork()
            if child:
                _write(report, {"kernel": child})
                os._exit(0)
            confinement.confine(asked, files, [end, connection, report])
            for entry in self.running:
                entry.lease.detach()
            self.control.detach()
            self.running.clear()
            for descriptor in (end, connection):
                os.set_inheritable(descriptor, False)
            confinement.refresh(self.told["stage"], connection, self.course)
            _write(report, {"confined": True})
            os.close(report)
        except BaseException as error:
            said = {"problem": traceback.format_exc()[-1000:]}  # short enough for an atomic write
            if isinstance(error, confinement.FilesError):
                said = {"files": str(error)}
            with contextlib.suppress(OSError):
                _write(report, said)
            os._exit(1)
        try:
            from hood.grader.inside.kernel import run

            run(end, bubblewrap.HOME)
        finally:
            os._exit(0)

    def _receive(self, entry: RunningSandbox) -> None:
        """Read a message from a lease: interrupt the kernel, or end its sandbox."""
        try:
            word = entry.lease.recv(MESSAGE)
        except BlockingIOError:
            return
        except OSError:
            word = b""
        if word == b"interrupt":
            with contextlib.suppress(ProcessLookupError):
                os.killpg(entry.sandbox.kernel, signal.SIGINT)
        else:
            self._end(entry, "closed")

    def _watch(self, exceeded: Callable[[RunningSandbox], str]) -> None:
        """End each sandbox that exceeds a limit; ``exceeded`` names the limit, or returns ""."""
        for entry in list(self.running):
            try:
                reason = exceeded(entry)
            except usage.TooDear:
                reason = "dear"
            except Exception:
                # the sandbox has ended, or its data can't be read: only this sandbox ends
                reason = "died"
            if reason:
                self._end(entry, reason)

    def _excess(self, entry: RunningSandbox) -> str:
        """Look at a sandbox; return the limit that it exceeds, or "".

        The sandbox's threads together get at most the processor share of FAIR threads. Memory comes
        last, because measuring it may take long.
        """
        [spared] = usage.OWN_TIME.unpack(
            os.pread(entry.own_time, usage.OWN_TIME.size, usage.SPARED)
        )
        meter, seconds = entry.meter, entry.limits["total_seconds"] + spared
        meter.look(os.pread(entry.own_time, 1, usage.AWAITED) != b"\0")
        os.pwrite(entry.own_time, usage.OWN_TIME.pack(meter.passed), 0)
        entry.nice = max(entry.nice, self.nice, usage.niceness(meter.runnable))
        if meter.runnable > usage.FAIR or self.nice:
            usage.be_nice((entry.sandbox.init, entry.sandbox.kernel), entry.nice)
        if meter.passed > seconds:
            return "time"
        if time.monotonic() - entry.begun > usage.WAITS * seconds:
            return "starved"
        if meter.new_sessions > usage.NEW_SESSIONS:
            return "sessions"
        return self._fills(entry)

    def _glance(self, entry: RunningSandbox) -> str:
        """Return the limit that a sandbox exceeds, or ""; measure only if memory may be used up."""
        if time.monotonic() < entry.glance:
            return ""
        if seconds := entry.meter.glance(entry.limits["memory"]):
            entry.glance = time.monotonic() + seconds
            return ""
        return self._fills(entry)

    def _fills(self, entry: RunningSandbox) -> str:
        limit = entry.limits["memory"]
        if entry.meter.exceeds(limit):
            return "memory"
        # an estimate above the limit (much shared memory) is verified again at the next look
        entry.glance = time.monotonic() + (entry.meter.glance(limit) or 2 * WATCH_SECONDS)
        return ""

    def _end(self, entry: RunningSandbox, reason: str) -> None:
        if entry not in self.running:
            return
        self.running.remove(entry)
        entry.meter.close()

        # Ending also takes processor time. On a busy machine, many processes with high niceness
        # would take minutes to end. Without root, the niceness can't be lowered.
        def hurry() -> None:
            if entry.nice > self.nice:
                usage.be_nice((entry.sandbox.init, entry.sandbox.kernel), self.nice)

        status = entry.sandbox.close(hurry)
        if reason == "died" and entry.group and entry.group.exceeded():
            reason = "memory"
        elif reason == "died" and status == -signal.SIGKILL:
            # perhaps Linux killed the kernel for memory, but Linux does not say which process
            reason = "died" if usage.killed_for_memory() == entry.killed else "exhausted"
        if entry.group:
            entry.group.close()
        _say(entry.lease, {"ended": reason, "status": status})
        entry.lease.close()
        os.close(entry.own_time)


@contextlib.contextmanager
def _before_forks() -> Iterator[None]:
    """Import modules, then check that no thread was started."""
    with long_lived():
        yield
    tasks = len(os.listdir("/proc/self/task"))
    if tasks != 1:
        raise bubblewrap.SandboxError(f"the warm process has {tasks} threads; a fork would hang")


def _write(report: int, message: Mapping[str, Any]) -> None:
    """Write one line in a single call, because the first child and its child share the pipe."""
    os.write(report, json.dumps(message).encode() + b"\n")


def _say(where: socket.socket, message: Mapping[str, Any]) -> None:
    with contextlib.suppress(OSError):  # the other end is closed
        where.send(json.dumps(message).encode())
