"""The zygote, or warm process: it imports everything, starts no thread, and forks the kernels.

Each grading process starts one. It never sees a seed, a check or a grade, and of a submission only
the descriptor of its folder. It exchanges JSON messages over two kinds of SOCK_SEQPACKET sockets:

- The control socket, from the grading process, carries one request for each kernel: its limits,
  and descriptors for its lease, its socket to a client, its connection, a file of its own time (the
  zygote writes how much has passed, the grading process whether it waits) and, if there is one, its
  folder.
- The lease belongs to one kernel. The grading process sends "interrupt" on it. Any other word ends
  the sandbox, and so does closing the lease, which also happens when the grading process dies. The
  zygote sends "started" and, at the end, the reason for the end.
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
# So many kernels start before the zygote's memory is moved into huge pages. Moving takes as long as
# it saves for a dozen kernels, so whoever grades one or two notebooks would wait in vain.
FEW = 2
MESSAGE = 1 << 16
EDITABLE = "__editable__"  # in the name of a finder that such an install brings
COMPILER, TRACER = "compiler", "tracer"  # beside the groups of modules that a lab may name


@dataclass
class RunningSandbox:
    sandbox: bubblewrap.Sandbox
    lease: socket.socket  # the zygote's end
    meter: usage.Meter
    limits: Mapping[str, Any]  # `memory` in bytes, `total_seconds` of its own (`usage.Meter.look`)
    own_time: int
    begun: float  # by `time.monotonic`
    group: cgroup.Group | None
    killed: int  # how many processes Linux had killed on this machine for want of memory
    nice: int = 0  # the niceness that was set so far
    glance: float = 0.0  # when its memory is looked at next, by `time.monotonic`


def main(control_fd: int) -> None:
    """Serve until the grading process is gone.

    The first message on the control socket is JSON: ``folder`` (removed at the end); ``stage`` in
    it, with the modules that a kernel imports, ``etc``, ``proc`` and ``sys``; ``readable`` folders,
    which a sandbox has at the same path, but for the ``hidden`` ones inside; ``user_namespace``,
    whether to make one; the course's ``packages``; ``sandbox``, the name of its own module, or
    empty; and ``cgroup`` (the path from :func:`cgroup.enter`, or null). Sandboxes could read
    command line arguments.
    """
    grader = os.pidfd_open(os.getppid())
    control = socket.socket(fileno=control_fd)
    told = json.loads(control.recv(MESSAGE))
    try:
        linux.prctl(linux.PR_SET_CHILD_SUBREAPER, 1)
        linux.prctl(linux.PR_SET_DUMPABLE, 0)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        # drop, among others, what an editable install brings, which leads to the project's root
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
    """Start, watch and end sandboxes, in the thread whose end would be the end of bubblewrap.

    ``grader`` is a pidfd of the grading process, ``told`` the first message; see :func:`main`.
    ``course`` is what the course says of its sandboxes.
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
        self.nice = os.nice(0)  # the least niceness of a sandbox, whose session is one of its own

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
                    # At no regular times, so that no thread can be there for the look alone. One
                    # that stands still while it is measured runs in between.
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
        may_wait = not self.running  # no limit is watched meanwhile
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
        except BaseException:  # whatever it was, nobody would end this sandbox
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
        """Fork the kernel into the sandbox and return its process id, seen from outside.

        It takes two forks: the first child joins the namespaces, but only its own child is then in
        the PID namespace. Further arguments are those of :meth:`_join`.
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
            # it ends when the kernel is confined or has ended
            with open(report, errors="replace") as file:
                for line in file:
                    with contextlib.suppress(ValueError):  # as if it had not been written
                        said |= json.loads(line)
        finally:
            os.waitpid(joiner, 0)
        if "kernel" not in said:
            # The joiner was killed, and its child, if it had one, has an unknown id. A process that
            # nobody waits for keeps its sandbox from ending. So the zygote ends, and with it all
            # sandboxes; the grading process starts a new one.
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
        """Enter the sandbox, fork again, and become the kernel in that child. Never return.

        ``report`` is a pipe for the kernel's process id and for errors.
        """
        try:
            spaces = linux.SANDBOX
            if self.told["user_namespace"]:
                spaces |= linux.CLONE_NEWUSER
            # When memory ends, Linux kills kernels first. A sandbox's own /proc is read-only, so it
            # is said here, where the file is root's meanwhile unless a dump is allowed.
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
        """Read a word from a lease: interrupt the kernel, or end its sandbox."""
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
        """End each sandbox of which ``exceeded`` says which limit it exceeds."""
        for entry in list(self.running):
            try:
                reason = exceeded(entry)
            except usage.TooDear:
                reason = "dear"
            except Exception:  # it has ended, or shows of itself what can't be read: it alone ends
                reason = "died"
            if reason:
                self._end(entry, reason)

    def _excess(self, entry: RunningSandbox) -> str:
        """Look at a sandbox; return which limit it exceeds, empty if none.

        Its threads get no larger share of the processor than FAIR. Its memory comes last, because
        to measure it may take long.
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
        """Return which limit a sandbox exceeds, where a glance shows that it may; else nothing."""
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
        # what was verified, because its processes share much, is verified again at the next look
        entry.glance = time.monotonic() + (entry.meter.glance(limit) or 2 * WATCH_SECONDS)
        return ""

    def _end(self, entry: RunningSandbox, reason: str) -> None:
        if entry not in self.running:
            return
        self.running.remove(entry)
        entry.meter.close()

        # Ending takes processor time, too: many processes that are nice to a busy machine would
        # take minutes. Without root they stay as they are.
        def hurry() -> None:
            if entry.nice > self.nice:
                usage.be_nice((entry.sandbox.init, entry.sandbox.kernel), self.nice)

        status = entry.sandbox.close(hurry)
        if reason == "died" and entry.group and entry.group.exceeded():
            reason = "memory"
        elif reason == "died" and status == -signal.SIGKILL:
            # it, or a neighbour: Linux does not say whom it killed
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
    """Write one line with a single call, because the joiner and its child share the pipe."""
    os.write(report, json.dumps(message).encode() + b"\n")


def _say(where: socket.socket, message: Mapping[str, Any]) -> None:
    with contextlib.suppress(OSError):  # the other end is closed
        where.send(json.dumps(message).encode())
