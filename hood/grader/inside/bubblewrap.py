"""Build a sandbox with bubblewrap: namespaces, and a file tree with only what Python needs."""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hood.grader.inside import course_sandbox, seccomp

HOME = "/home/learner"
WRITABLE = ("/tmp", HOME, "/dev/shm")
USER = 1000  # in a user namespace; root gives each kernel its own id
SECONDS_TO_BUILD = 20
SECONDS_OF_A_WAIT = 0.05
# No terminals: Linux counts the terminals of all sandboxes together.
DEVICES = ("full", "null", "random", "urandom")
STAY = "echo r; exec sleep infinity"  # what pid 1 runs
KILLED = (-signal.SIGKILL, 128 + signal.SIGKILL)  # if bubblewrap or its child was killed


class SandboxError(Exception):
    """A sandbox could not be made. The message has what bubblewrap printed."""


class SandboxLost(SandboxError):
    """A process of the sandbox was killed while the sandbox was being made. Retrying may help."""


@dataclass
class Sandbox:
    """A sandbox, and the two processes that keep it open, with their ids outside the sandbox."""

    keeper: subprocess.Popen[bytes]  # bubblewrap, outside the sandbox
    init: int  # pid 1 of the sandbox
    init_fd: int  # its pidfd
    kernel: int = 0  # the kernel; 0 before it is started
    kernel_fd: int = -1

    def keepers(self) -> list[int]:
        """Return the ids of the processes that keep the sandbox open: pid 1 and its children."""
        return [self.init, *_children(self.init)]

    def close(self, meanwhile: Callable[[], object] = lambda: None) -> int:
        """Kill the sandbox, and wait until all its processes have ended.

        While it waits, this method calls ``meanwhile`` again and again. One call is not enough: a
        walk through the tree of processes can miss an orphan, which moves to another parent.
        Return the kernel's exit status, which is negative if a signal ended the kernel.
        """
        with contextlib.suppress(ProcessLookupError):
            # Linux then kills every process in the sandbox
            signal.pidfd_send_signal(self.init_fd, signal.SIGKILL)
        status = 0
        if self.kernel:
            _wait(self.kernel_fd, meanwhile)
            status = os.waitstatus_to_exitcode(os.waitpid(self.kernel, 0)[1])
        _wait(self.init_fd, meanwhile)
        self.keeper.wait()
        # pid 1 is our child only if bubblewrap ended first
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.init, 0)
        for descriptor in (self.init_fd, self.kernel_fd):
            if descriptor >= 0:
                os.close(descriptor)
        return status


def _command(
    told: Mapping[str, Any], asked: Mapping[str, Any], descriptors: Iterable[int]
) -> list[str]:
    """Return bubblewrap's options; see :func:`build`.

    The descriptors are for bubblewrap's report, for /etc/passwd and /etc/group, and for the system
    call filter of the two processes that keep the sandbox open. These processes have a filter
    because the learner's code may be able to write to their memory.
    """
    report, passwd, group, refused = map(str, descriptors)
    stage, hidden = told["stage"], told["hidden"]
    out = ["--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"]
    if told["user_namespace"]:
        out += ["--unshare-user", "--uid", str(USER), "--gid", str(USER)]
    out += ["--hostname", "sandbox", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    out += ["--info-fd", report, "--seccomp", refused, "--clearenv", "--chdir", "/"]
    out += ["--ro-bind", "/usr", "/usr"]
    for top in ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"):
        if os.path.islink(top):
            out += ["--symlink", os.readlink(top), top]
        elif os.path.isdir(top):
            out += ["--ro-bind", top, top]
    # explicit: parents that bubblewrap creates by itself are unreadable for other users
    out += _folder("/etc")
    for name in ("alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime"):
        out += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    out += ["--ro-bind", f"{stage}/etc/nsswitch.conf", "/etc/nsswitch.conf"]
    out += ["--perms", "0644", "--ro-bind-data", passwd, "/etc/passwd"]
    out += ["--perms", "0644", "--ro-bind-data", group, "/etc/group"]
    out += ["--proc", "/proc"]
    # a copy, or an empty file or folder, hides each entry that does not belong to a process
    for name in sorted(os.listdir("/proc")):
        if os.path.exists(f"{stage}/proc/{name}"):
            out += ["--ro-bind", f"{stage}/proc/{name}", f"/proc/{name}"]
    # Read-only, because a process could write to its own files in /proc. Such a process could then
    # choose which process is killed first when memory runs out, and what goes into a dump.
    out += ["--remount-ro", "/proc", "--ro-bind", f"{stage}/sys", "/sys"]
    out += ["--perms", "0755", "--tmpfs", "/dev"]
    for name in DEVICES:
        out += ["--dev-bind", f"/dev/{name}", f"/dev/{name}"]
    for name, to in (("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")):
        out += ["--symlink", f"/proc/self/fd{to}", f"/dev/{name}"]
    # /dev/full reads as zeros, as /dev/zero does, but cannot be mapped. A shared mapping of
    # /dev/zero is memory that belongs to no process, so the meter could not see it.
    out += ["--dev-bind", "/dev/full", "/dev/zero", *_folder("/dev/shm")]
    out += ["--remount-ro", "/dev", *_folder("/home")]
    for place in WRITABLE:
        out += ["--perms", "1777", "--size", str(asked["tmp"]), "--tmpfs", place]
    if asked["headers"]:
        out += ["--ro-bind", asked["headers"], course_sandbox.SHOWN]
    for folder in sorted(
        {*told["readable"], *hidden}
    ):  # an outer folder comes before those inside it
        if folder in hidden:
            out += ["--perms", "0755", "--tmpfs", folder]
        else:
            out += [*_folder(os.path.dirname(folder)), "--ro-bind", folder, folder]
    for folder in hidden:
        out += ["--remount-ro", folder]
    return [*out, "--remount-ro", "/"]


def _folder(path: str) -> list[str]:
    """Return the options that make a folder and its parents, readable for all users."""
    out = []
    for folder in [*reversed(Path(path).parents), Path(path)]:
        if folder != Path("/"):
            out += ["--perms", "0755", "--dir", str(folder)]
    return out


def build(told: Mapping[str, Any], asked: Mapping[str, Any]) -> Sandbox:
    """Start bubblewrap and wait until its sandbox is complete.

    Call it from the main thread: bubblewrap dies with the thread that started it. ``told`` is the
    zygote's first message (:func:`hood.grader.inside.zygote.main`). ``asked`` has three keys:
    ``tmp`` is the size in bytes of each writable file system. ``user`` is the id in /etc/passwd.
    ``headers`` is the folder of :mod:`hood.grader.sandbox.compiled_headers`, or None.

    After an error no process is left.

    Raises:
        SandboxLost: bubblewrap or its sandbox was killed.
        SandboxError: bubblewrap made no sandbox.
        OSError: this machine can't start another process or open another descriptor.
    """
    if shutil.which("bwrap") is None:
        raise SandboxError("bubblewrap (`bwrap`) is not installed")
    user = asked["user"]
    report, report_in = os.pipe()
    inherited = [report_in]
    try:
        for data in (
            f"learner:x:{user}:{user}:learner:{HOME}:/bin/sh\n".encode(),
            f"learner:x:{user}:\n".encode(),
            seccomp.program(),
        ):
            inherited.append(_ready(data))
        options = _command(told, asked, inherited)
        # The options go through a pipe, because the command line of pid 1 is visible inside the
        # sandbox and would show paths of this machine.
        inherited.append(_ready("".join(f"{option}\0" for option in options).encode()))
        keeper = subprocess.Popen(
            ["bwrap", "--args", str(inherited[-1]), "--", "/bin/sh", "-c", STAY],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=inherited,
            executable=shutil.which("bwrap"),
            env={},
            cwd="/",
        )
    except BaseException:
        os.close(report)
        raise
    finally:
        for descriptor in inherited:
            os.close(descriptor)
    assert keeper.stdout is not None
    assert keeper.stderr is not None
    try:
        return _complete(keeper, keeper.stdout.fileno(), keeper.stderr.fileno(), report)
    except BaseException:
        _end(keeper)
        raise
    finally:
        os.close(report)
        keeper.stdout.close()
        keeper.stderr.close()


def _complete(keeper: subprocess.Popen[bytes], out: int, errors: int, report: int) -> Sandbox:
    """Wait until a sandbox is complete, and return it; see :func:`build` for what it raises.

    ``out`` and ``errors`` have the output of bubblewrap's processes; ``report`` has bubblewrap's
    report. Each descriptor is read when it has data. The time for this is limited, because other
    sandboxes are not watched meanwhile.
    """
    end = time.monotonic() + SECONDS_TO_BUILD
    if _heard(out, 2, end) != b"r\n":
        with contextlib.suppress(subprocess.TimeoutExpired):
            keeper.wait(1)
        if keeper.poll() in KILLED:
            raise SandboxLost("bubblewrap was killed while it made a sandbox")
        _end(keeper)
        said = _heard(errors, 2000, time.monotonic()).decode(errors="replace").strip()
        raise SandboxError(f"bubblewrap made no sandbox: {said or 'it printed nothing'}")
    said_of_it = _heard(report, 4096, end)
    try:
        init = json.loads(said_of_it)["child-pid"]
        return Sandbox(keeper, init, os.pidfd_open(init))
    except ProcessLookupError:
        raise SandboxLost("a sandbox was killed after it was complete") from None
    except (ValueError, LookupError, TypeError):
        raise SandboxError(
            'bubblewrap should report the sandbox as JSON with "child-pid", the number of the '
            f"sandbox's first process; it reported {said_of_it[:200]!r}"
        ) from None


def _end(keeper: subprocess.Popen[bytes]) -> None:
    """Kill bubblewrap and its sandbox, and wait until both have ended."""
    below: list[int] = []
    with contextlib.suppress(OSError):  # it has ended
        below = _children(keeper.pid)
    keeper.kill()
    keeper.wait()
    for child in below:
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)  # it is now this process's child, or has ended


def _children(process: int) -> list[int]:
    return [*map(int, Path(f"/proc/{process}/task/{process}/children").read_text().split())]


def _heard(descriptor: int, most: int, end: float) -> bytes:
    """Return the data of a descriptor; wait for data until ``end`` (by ``time.monotonic``)."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    seconds = max(0.0, end - time.monotonic())
    return os.read(descriptor, most) if poll.poll(seconds * 1000) else b""


def _wait(pidfd: int, meanwhile: Callable[[], object]) -> None:
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    while not poll.poll(SECONDS_OF_A_WAIT * 1000):
        meanwhile()


def _ready(data: bytes) -> int:
    """Return a descriptor of a file in memory with ``data``, which may be too long for a pipe."""
    descriptor = os.memfd_create("ready")
    os.pwrite(descriptor, data, 0)
    return descriptor
