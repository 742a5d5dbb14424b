"""The child's side: confine this process to its sandbox, before it is an IPython kernel in it.

All of it runs before the learner's first line of code and before any thread.
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

from grader.inside import linux, seccomp
from grader.inside.bubblewrap import HOME

WORK = f"{HOME}/work"
CACHE = "/tmp/inductor"
NOT_SHOWN = ("timestamp.txt",)  # nbgrader's, which the grader reads
LINK = "OPEN_THE_HOOD_LINK"
ENVIRONMENT = {
    "HOME": HOME,
    "TMPDIR": "/tmp",
    "USER": "learner",
    "LOGNAME": "learner",
    "SHELL": "/bin/sh",
    "PWD": WORK,
    "IPYTHONDIR": f"{HOME}/.ipython",
    "MPLCONFIGDIR": f"{HOME}/.config/matplotlib",
    "MPLBACKEND": "module://matplotlib_inline.backend_inline",
    "JUPYTER_RUNTIME_DIR": f"{HOME}/.runtime",
    "XDG_CACHE_HOME": f"{HOME}/.cache",
    "XDG_CONFIG_HOME": f"{HOME}/.config",
    "XDG_DATA_HOME": f"{HOME}/.local/share",
    "XDG_RUNTIME_DIR": f"{HOME}/.runtime",
    "OPEN_THE_HOOD_TEXT_ONLY": "1",  # figures of utils: their words, not their pictures
    "NBGRADER_EXECUTION": "autograde",  # nbgrader's word to the code it runs
    "TORCHINDUCTOR_CACHE_DIR": CACHE,
    "TRITON_CACHE_DIR": "/tmp/triton",
}


class FilesError(Exception):
    """The submission's files could not be copied."""


def confine(sandbox: Mapping[str, Any], files: int | None, keep: list[int]) -> None:
    """Become what a learner's code may be.

    Raises FilesError and, for anything else, OSError; then nothing of a learner's may run.

    sandbox: `user` (the id to take), `own_user` (whether to take it), and the limits
    files: descriptor of a folder outside, copied into the sandbox and closed
    keep: descriptors that stay open
    """
    linux.prctl(linux.PR_SET_DUMPABLE, 1)  # or its own /proc/self would be root's
    os.setsid()
    os.umask(0o077)
    with open("/proc/self/oom_score_adj", "w") as file:
        file.write("500")  # when the machine runs out of memory, a kernel goes first
    owner = sandbox["user"] if sandbox["own_user"] else -1
    os.mkdir(WORK)
    os.chown(WORK, owner, owner)
    try:
        copy_plain_files(files, WORK, owner, NOT_SHOWN)
    except (OSError, RecursionError) as error:
        raise FilesError(f"the files could not be copied: {str(error)[-500:]}") from error
    close_all_but(keep)
    set_limits(sandbox)
    linux.drop_bounding_set()
    if sandbox["own_user"]:
        os.setgroups([])
        os.setresgid(owner, owner, owner)
        os.setresuid(owner, owner, owner)
    linux.drop_capabilities()
    linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
    linux.prctl(linux.PR_SET_DUMPABLE, 1)  # a new id took that back
    seccomp.forbid()
    os.chdir(WORK)


def copy_plain_files(
    source: int | None, target: str, owner: int, left_behind: tuple[str, ...] = ()
) -> None:
    """Copy plain files; links of both kinds, devices, pipes and notebooks are left behind.

    The notebook that is being graded lies there, hidden tests included. Of the files only names
    and bytes are copied, and no empty folder: that is what tells submissions apart.

    source: descriptor of the folder, which is closed, or None
    target: an existing folder
    owner: user and group id for what is made, or -1
    left_behind: further names, in this folder and not below it
    """
    if source is None:
        return
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
            copy_plain_files(inner, made, owner)
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


def close_all_but(keep: list[int]) -> None:
    """Close every descriptor but `keep`; 0, 1 and 2 become /dev/null."""
    null = os.open("/dev/null", os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    start = 3
    for descriptor in sorted(keep):
        os.closerange(start, descriptor)
        start = descriptor + 1
    os.closerange(start, resource.getrlimit(resource.RLIMIT_NOFILE)[0])


def set_limits(sandbox: Mapping[str, Any], process: int = 0) -> None:
    """Limits that the machine's kernel enforces, for this or another process.

    The zygote watches what cannot be limited so.
    """
    with open(f"/proc/{process or 'self'}/status") as file:
        at_start = next(int(line.split()[1]) for line in file if line.startswith("VmData"))
    for kind, value in (
        (resource.RLIMIT_DATA, at_start * 1024 + sandbox["memory"]),
        (resource.RLIMIT_NPROC, sandbox["processes"]),
        (resource.RLIMIT_FSIZE, sandbox["file"]),
        (resource.RLIMIT_NOFILE, 1024),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_MEMLOCK, 0),
        (resource.RLIMIT_MSGQUEUE, 0),
        (resource.RLIMIT_SIGPENDING, 4096),  # each timer and each signal that waits takes memory
    ):
        hard = resource.prlimit(process, kind)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.prlimit(process, kind, (value, value))


def refresh(stage: str, link: int) -> None:
    """What a fork shares and a process of its own would not: environment, paths, randomness."""
    import matplotlib
    import numpy as np
    import torch

    # PYTHONPATH is for the processes that it starts
    os.environ.update(ENVIRONMENT, **{LINK: str(link), "PYTHONPATH": stage})
    sys.path.append(WORK)  # last: nothing in the learner's folder hides a module
    sys.argv[:] = ["kernel"]
    tempfile.tempdir = None
    for folder in (matplotlib.get_configdir, matplotlib.get_cachedir):
        _forget(folder)
    random.seed()
    np.random.seed()
    torch.default_generator.seed()


def _forget(remembering: Any) -> None:
    """Make one of matplotlib's functions that remember their first answer ask again."""
    names = remembering.__code__.co_freevars
    remembering.__closure__[names.index("called")].cell_contents = False
