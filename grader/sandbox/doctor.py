"""``python -m grader doctor``: say what this machine can sandbox and compile, and mend it."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess

from grader import UserError
from grader.inside import cgroup
from grader.sandbox.kernel import SandboxedKernel
from grader.sandbox.limits import MIB, Limits
from grader.sandbox.remedies import UNGROUPED, Obstacle, missing
from grader.sandbox.warm_process import CannotSandbox, ZygoteDied, own_users
from utils.instruments.toolchain import cxx, inductor_lacks


def problems() -> list[Obstacle]:
    """Return what keeps this machine from running sandboxes; a kernel is started in one."""
    if found := missing():
        return found
    try:
        with SandboxedKernel() as kernel:
            kernel.run("1", 30)
    except CannotSandbox as error:
        return [error.problem]
    except (RuntimeError, ZygoteDied) as error:
        return [Obstacle(f"a kernel did not start in its sandbox: {error}", "Run it again.")]
    return []


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--install",
        action="store_true",
        help="install what is missing of bubblewrap, a C++ compiler and Python's headers with "
        "apt-get, as root or with sudo where it asks for no password",
    )


def run(args: argparse.Namespace) -> int:
    """Print what this machine can do; return 1 if it cannot run sandboxes."""
    if args.install:
        install()
    lack = inductor_lacks()
    if lack:
        print(f"compile: no, {', '.join(lack.tools)} missing; what needs C++ is not run, and labs")
        print(f"  withhold its points instead of taking them\n  what to do: {lack.how}")
    else:
        print(f"compile: yes, torch.compile's C++ with {cxx()}")
    found = problems()
    for problem in found:
        print(f"no sandbox: {problem.what}\n  what to do: {problem.how}")
    if found:
        return 1
    limits = Limits()
    print("sandbox: yes, a kernel was started in a sandbox and ended again")
    users = "a user id of its own" if own_users() else "a user namespace of its own"
    print(f"users: each kernel has {users}")
    print(
        f"limits: {limits.memory // MIB} MiB of memory, {limits.processes} processes, "
        f"{limits.cell_seconds} s for a cell, {limits.total_seconds} s in all"
    )
    if cgroup.enter():
        print("memory: Linux itself keeps each sandbox to its limit, in a cgroup of its own")
    else:
        print(f"memory: warning: {UNGROUPED.what}\n  what to do: {UNGROUPED.how}")
    return 0


def install() -> None:
    """Install with apt-get what is missing of bubblewrap, a C++ compiler and Python's headers.

    Raises UserError if bubblewrap is missing and not installed.
    """
    if shutil.which("bwrap") is None:
        if shutil.which("apt-get") is None:
            raise UserError(
                "--install knows apt-get only; install bubblewrap with this system's tool"
            )
        if not _apt_get_install("bubblewrap"):
            raise UserError(
                "bubblewrap was not installed. As an administrator run: apt-get update && "
                "apt-get install bubblewrap"
            )
    if (lack := inductor_lacks()) and lack.packages:
        _apt_get_install(*lack.packages)


def _apt_get_install(*packages: str) -> bool:
    sudo = [] if os.geteuid() == 0 else ["sudo", "-n"]
    wanted = [*sudo, "apt-get", "install", "-y", *packages]
    return _succeeds(wanted) or (_succeeds([*sudo, "apt-get", "update"]) and _succeeds(wanted))


def _succeeds(command: list[str]) -> bool:
    try:
        return subprocess.run(command, check=False).returncode == 0
    except OSError:  # no sudo
        return False
