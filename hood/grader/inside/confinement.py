"""Confine a forked process to its sandbox before it becomes an IPython kernel.

All of this runs before the learner's first line of code and before any thread is started.
"""

from __future__ import annotations

import os
import random
import resource
import shutil
import stat
import sys
import tempfile
from collections.abc import Mapping
from typing import Any

from hood.grader.inside import linux, seccomp
from hood.grader.inside.bubblewrap import HOME
from hood.grader.inside.course_sandbox import CourseSandbox

WORK = f"{HOME}/work"
# Limit on the descriptors of a process. Linux counts a user's descriptors in flight, and a process
# can't send more than it may have open. Without root, that user is the grader, who may have 1024 or
# more. FILES plus 253 (the most descriptors in one message) is far below 1024.
FILES = 256  # open files of a process
# nbgrader's files, which only the grader and the exchange read
NOT_SHOWN = ("timestamp.txt", "submission_secret.txt")
ENVIRONMENT = {
    "HOME": HOME,
    "TMPDIR": "/tmp",
    "USER": "learner",
    "LOGNAME": "learner",
    "SHELL": "/bin/sh",
    "PWD": WORK,
    "MPLCONFIGDIR": f"{HOME}/.config/matplotlib",
    "XDG_RUNTIME_DIR": f"{HOME}/.runtime",
    "OPEN_THE_HOOD_TEXT_ONLY": "1",  # hood.audience
    "NBGRADER_EXECUTION": "autograde",  # nbgrader sets this for the code that it runs
}


class FilesError(Exception):
    """The submission's files could not be copied."""


def confine(sandbox: Mapping[str, Any], files: int | None, keep: list[int]) -> None:
    """Give up every right that a learner's code must not have.

    If this function raises an error, don't run the learner's code. ``sandbox`` has ``user`` (a user
    id), ``own_user`` (whether to take that user id), and the limits that :func:`set_limits` reads.
    The files of the folder with the descriptor ``files`` are copied. Descriptors in ``keep`` stay
    open. Raises FilesError if the files could not be copied.
    """
    linux.prctl(linux.PR_SET_DUMPABLE, 1)  # otherwise root would own this process's /proc/self
    os.setsid()
    os.umask(0o077)
    owner = sandbox["user"] if sandbox["own_user"] else -1
    os.mkdir(WORK)
    os.chown(WORK, owner, owner)
    try:
        if files is not None:
            _copy_plain_files(files, WORK, owner, NOT_SHOWN)
    except (OSError, RecursionError) as error:
        raise FilesError(f"the files could not be copied: {str(error)[-500:]}") from error
    _close_all_but(keep)
    set_limits(sandbox)
    linux.drop_bounding_set()
    if sandbox["own_user"]:
        os.setgroups([])
        os.setresgid(owner, owner, owner)
        os.setresuid(owner, owner, owner)
    linux.drop_capabilities()
    linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
    linux.prctl(linux.PR_SET_DUMPABLE, 1)  # changing the user id has cleared this flag
    seccomp.forbid(sandbox["loopback"])
    os.chdir(WORK)


def _copy_plain_files(
    source: int, target: str, owner: int, left_behind: tuple[str, ...] = ()
) -> None:
    """Copy the plain files of a folder and its subfolders, then close the folder.

    Symbolic links, hard links, devices, pipes and notebooks are not copied. Notebooks are left out
    because the graded notebook with its hidden tests is in the folder. Empty folders are not copied
    either. Only names and bytes are copied, so equal submissions look the same inside a sandbox.
    """
    with os.scandir(source) as entries:
        names = [
            (entry.name, entry.stat(follow_symlinks=False))
            for entry in entries
            if not entry.name.endswith(".ipynb") and entry.name not in left_behind
        ]
    for name, about in names:
        made = f"{target}/{name}"
        if stat.S_ISDIR(about.st_mode):
            inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=source)
            os.mkdir(made)
            _copy_plain_files(inner, made, owner)
            if not os.listdir(made):
                os.rmdir(made)
                continue
        elif stat.S_ISREG(about.st_mode) and about.st_nlink == 1:
            opened = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=source)
            with open(opened, "rb") as read, open(made, "xb") as write:
                shutil.copyfileobj(read, write)
            os.chmod(made, 0o600)
        else:
            continue
        os.chown(made, owner, owner)
    os.close(source)


def _close_all_but(keep: list[int]) -> None:
    """Close every descriptor that is not in ``keep``; 0, 1 and 2 become /dev/null."""
    null = os.open("/dev/null", os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    start = 3
    for descriptor in sorted(keep):
        os.closerange(start, descriptor)
        start = descriptor + 1
    os.closerange(start, resource.getrlimit(resource.RLIMIT_NOFILE)[0])


def set_limits(sandbox: Mapping[str, Any], process: int = 0) -> None:
    """Set the limits that Linux itself enforces for a process. ``process`` is 0 for this process.

    The zygote watches everything that these limits do not cover. ``sandbox`` has ``memory`` and
    ``file`` in bytes, and ``processes``.
    """
    with open(f"/proc/{process or 'self'}/status") as file:
        at_start = next(int(line.split()[1]) for line in file if line.startswith("VmData"))
    for kind, value in (
        (resource.RLIMIT_DATA, at_start * 1024 + sandbox["memory"]),
        (resource.RLIMIT_NPROC, sandbox["processes"]),
        (resource.RLIMIT_FSIZE, sandbox["file"]),
        (resource.RLIMIT_NOFILE, FILES),
        (resource.RLIMIT_CORE, 1),  # with 0, Linux still passes a dump to a program outside
        (resource.RLIMIT_MEMLOCK, 0),
        (resource.RLIMIT_MSGQUEUE, 0),
        (resource.RLIMIT_SIGPENDING, 4096),  # timers and pending signals use Linux's own memory
    ):
        hard = resource.prlimit(process, kind)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.prlimit(process, kind, (value, value))


def refresh(stage: str, connection: int, course: CourseSandbox) -> None:
    """Replace what the kernel inherited from the zygote: environment, paths, random states."""
    import matplotlib
    import numpy as np

    from hood.judge.connection import rpc_server

    # for processes that the kernel starts
    os.environ.update({**ENVIRONMENT, **course.kernel_environment}, PYTHONPATH=stage)
    rpc_server.connection = connection  # the environment may be cleared
    sys.path.append(WORK)  # last, so that no file of the learner hides a module
    sys.argv[:] = ["kernel"]
    tempfile.tempdir = None
    for folder in (matplotlib.get_configdir, matplotlib.get_cachedir):
        remembering: Any = folder  # clear the function's cached result
        names = remembering.__code__.co_freevars
        remembering.__closure__[names.index("called")].cell_contents = False
    random.seed()
    np.random.seed()
    course.refresh()
