"""Start the zygote from the grading process, ask it for kernels, and notice its end."""

from __future__ import annotations

import atexit
import contextlib
import errno
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hood import UserError
from hood.course import VARIABLE, course, course_folder
from hood.grader.course_sandbox import of_course
from hood.grader.inside import cgroup
from hood.grader.inside.bubblewrap import USER
from hood.grader.sandbox.remedies import Obstacle, explain, missing
from hood.grader.sandbox.stage import environment_folders, hidden_folders, make_stage

# The end of the zygote is noticed at once, so these limits are for a stuck zygote. On a busy
# machine the three seconds of its imports can become a hundred.
SECONDS_TO_IMPORT = 600
SECONDS_TO_START = 600
SECONDS_TO_RETRY = 0.1
START = """
import sys
sys.path.insert(0, sys.argv[1])
from hood.grader.inside.zygote import main
main(int(sys.argv[2]))
"""
# CAP_SETGID, CAP_SETUID, CAP_SYS_CHROOT and CAP_SYS_ADMIN. Root has these capabilities, unless a
# container drops them.
NEEDED = (6, 7, 18, 21)
# User ids that no account has. If root runs the grader, each kernel gets such an id.
FIRST_USER, LAST_USER = 1_600_000_000, 2_000_000_000
# The judge and the judged code must see the same devices. A sandbox has no GPU, so a worker must
# not see a GPU either. So on every machine, both use the records of runs on a GPU.
NO_GPU = {"CUDA_VISIBLE_DEVICES": ""}
# An empty file with this name. Libraries find this file before NVIDIA's driver, and then use no
# driver. The driver starts a thread in each process that counts GPUs, even if all GPUs are hidden,
# and some libraries count GPUs before they first compute. The zygote must have no extra thread when
# it forks.
DRIVER = Path("no-driver") / "libcuda.so.1"


class CannotSandbox(UserError):
    """This machine cannot run a learner's code safely."""

    def __init__(self, problem: Obstacle) -> None:
        super().__init__(f"learners' code cannot be run safely here: {problem}")
        self.problem = problem

    def __reduce__(self) -> tuple[type[CannotSandbox], tuple[Obstacle]]:
        return CannotSandbox, (self.problem,)  # for pickling, from a worker to the batch


class FilesRefused(UserError):
    """A submission's files are too many, too large or nested too deeply for its sandbox."""


class ZygoteDied(RuntimeError):
    """The zygote or a sandbox ended or hung, but not because of the learner's code.

    The caller may retry: the next start makes a new zygote.
    """


def own_users() -> bool:
    """Return whether this process may give each kernel its own user id, or a user namespace."""
    status = Path("/proc/self/status").read_text()
    held = int(status.partition("CapEff:")[2].split()[0], 16)
    if not all(held >> capability & 1 for capability in NEEDED):
        return False
    ranges = Path("/proc/self/uid_map").read_text().splitlines()
    numbers = [map(int, line.split()) for line in ranges]
    return any(first <= FIRST_USER and first + n > LAST_USER for first, _, n in numbers)


class Warm:
    """A zygote, with a folder that exists as long as the zygote runs.

    Raises CannotSandbox if a requirement is missing, or the folder cannot be written.
    """

    def __init__(self) -> None:
        """Start the zygote without waiting for its imports."""
        for problem in missing():
            raise CannotSandbox(problem)
        self.owner = os.getpid()
        self.lock = threading.Lock()
        self.own_users = own_users()
        self.folder = Path(tempfile.mkdtemp(prefix="open-the-hood-")).resolve()
        stage = self.folder / "stage"
        try:
            make_stage(stage)
            (self.folder / DRIVER).parent.mkdir()
            (self.folder / DRIVER).touch()
        except OSError as error:  # because of a full disk, or a limit on the size of files
            shutil.rmtree(self.folder, ignore_errors=True)
            # shutil.Error has a list with (source, target, reason) for each file
            why = error.args[0][0][2] if isinstance(error, shutil.Error) else error
            raise CannotSandbox(
                Obstacle(
                    f"the warm process's files could not be written: {why}",
                    f"Free some space in {self.folder.parent} and run the same command again.",
                )
            ) from error
        readable = [*environment_folders(), str(stage)]
        told = {
            "folder": str(self.folder),
            "stage": str(stage),
            "readable": readable,
            "hidden": hidden_folders(readable),
            "user_namespace": not self.own_users,
            "sandbox": course(course_folder()).sandbox,
            "packages": course(course_folder()).packages,
            "cgroup": str(above) if (above := cgroup.enter()) else None,
        }
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        python = [sys.executable, "-I", "-c", START]
        self.log = self.folder / "zygote.log"
        self.ready = False
        with theirs, self.log.open("wb") as stderr:
            self.process = subprocess.Popen(
                [*python, str(stage), str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                env=environment(self.folder),
                cwd="/",
                start_new_session=True,
            )
        with contextlib.suppress(OSError):  # it ended at once; `wait` will report that
            self.control.send(json.dumps(told).encode())

    def wait(self) -> None:
        """Wait until the zygote has imported everything; raise CannotSandbox if it can't."""
        if self.ready:
            return
        said = self._hear(self.control, SECONDS_TO_IMPORT)
        self.ready = "ready" in said
        if not self.ready:
            log = ""
            with contextlib.suppress(FileNotFoundError):  # the zygote has removed its folder
                log = self.log.read_text(errors="replace")[-2000:]
            problem = said.get("problem") or log or "it died"
            self.close()
            raise CannotSandbox(
                Obstacle(
                    f"the warm Python process did not start: {problem}",
                    "Install the packages that the course needs into the grader's environment. If "
                    "the error is in the module that course.toml names as `sandbox`, repair that "
                    "module.",
                )
            )

    def alive(self) -> bool:
        """Return whether the zygote runs, and was started by this process, not by a parent."""
        return self.owner == os.getpid() and self.process.poll() is None

    def start(self, asked: Mapping[str, Any], descriptors: list[int], lease: socket.socket) -> None:
        """Ask for a kernel and wait until it is confined to its sandbox.

        ``asked`` is the request (see :mod:`hood.grader.inside.zygote`). ``descriptors`` are for the
        zygote. The first descriptor is the zygote's end of the lease; this method closes that end
        in this process. ``lease`` is this process's end of the lease.

        Raises:
            CannotSandbox: the sandbox could not be made.
            FilesRefused: the submission's files could not be copied.
            ZygoteDied: the zygote or a process of the new sandbox died.
        """
        user = FIRST_USER + secrets.randbelow(LAST_USER - FIRST_USER) if self.own_users else USER
        request = json.dumps({**asked, "user": user, "own_user": self.own_users}).encode()
        end = time.monotonic() + SECONDS_TO_START
        try:
            with self.lock:
                while True:
                    try:
                        socket.send_fds(self.control, [request], descriptors)
                        break
                    except OSError as error:
                        # this user's programs may have too many descriptors in flight
                        if error.errno != errno.ETOOMANYREFS or time.monotonic() > end:
                            raise
                    time.sleep(SECONDS_TO_RETRY)
        except OSError as error:
            raise ZygoteDied(f"the warm process is gone: {error}") from error
        finally:
            # only the zygote keeps that end open, so the zygote's death closes the lease
            os.close(descriptors[0])
        said = self._hear(lease, SECONDS_TO_START)
        if said.get("files"):
            raise FilesRefused(said["problem"])
        if said.get("lost"):
            raise ZygoteDied(said["problem"])
        if "problem" in said:
            raise CannotSandbox(explain(said["problem"]))
        if "started" not in said:
            self.process.kill()  # the zygote may only hang; its sandboxes end with it
            raise ZygoteDied("the warm process ended while it started a kernel")

    def close(self) -> None:
        """End the zygote and all its sandboxes, and remove its folder."""
        if self.owner != os.getpid():
            return
        self.control.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()  # bubblewrap and each sandbox die with it
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    @staticmethod
    def _hear(where: socket.socket, seconds: float) -> dict[str, Any]:
        """Return the next message; empty if the connection ends or ``seconds`` pass."""
        where.settimeout(seconds)
        try:
            message = where.recv(1 << 16)
        except (TimeoutError, ConnectionError):
            return {}
        finally:
            where.settimeout(None)
        return json.loads(message) if message else {}


def environment(folder: Path) -> dict[str, str]:
    """Return the environment variables of the zygote and its kernels; no variable is inherited."""
    return {
        "PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
        "LANG": "C.UTF-8",
        VARIABLE: str(folder / "stage"),
        "HOME": str(folder / "home"),
        "MPLCONFIGDIR": str(folder / "home"),
        "PYTHONNOUSERSITE": "1",
        # One thread for each kernel, because kernels run side by side. With a fixed number of
        # threads, results do not depend on the machine.
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        **NO_GPU,
        "LD_LIBRARY_PATH": str((folder / DRIVER).parent),
        **of_course().environment(folder),
    }


_lock = threading.Lock()
_warm: Warm | None = None


def warm() -> Warm:
    """Return this process's zygote, ready for requests; if no zygote is alive, start one."""
    global _warm
    with _lock:
        if _warm is None or not _warm.alive():
            if _warm is not None:
                _warm.close()
            _warm = Warm()
        _warm.wait()
        return _warm


def warm_up() -> None:
    """Start this process's zygote in the background; :func:`warm` reports problems later."""
    global _warm
    with _lock, contextlib.suppress(CannotSandbox):
        _warm = _warm or Warm()


def shut_down() -> None:
    """End this process's zygote, if there is one, and all its sandboxes."""
    global _warm
    with _lock:
        if _warm is not None:
            _warm.close()
            _warm = None


atexit.register(shut_down)
