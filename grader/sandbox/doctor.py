"""``python -m grader doctor``: test whether this machine can sandbox learners' code."""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import subprocess

from grader import UserError
from grader.sandbox.limits import MIB, Limits
from grader.sandbox.manager import SandboxedKernelManager
from grader.sandbox.remedies import Obstacle, missing
from grader.sandbox.warm_process import CannotSandbox, ZygoteDied, own_users


def problems() -> list[Obstacle]:
    """Return what keeps this machine from running sandboxes.

    If nothing obvious is missing, a kernel is started in a sandbox. If that works, the list is
    empty.
    """
    found = missing()
    if found:
        return found

    async def attempt() -> None:
        manager = SandboxedKernelManager()
        await manager.start_kernel()
        client = manager.client()
        client.start_channels()
        try:
            await client.wait_for_ready(30)
        finally:
            client.stop_channels()
            await manager.shutdown_kernel(now=True)

    try:
        asyncio.run(attempt())
    except CannotSandbox as error:
        return [error.problem]
    except (RuntimeError, ZygoteDied) as error:
        return [Obstacle(f"a kernel did not start in its sandbox: {error}", "Run it again.")]
    return []


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``python -m grader doctor``."""
    parser.add_argument(
        "--install",
        action="store_true",
        help="install bubblewrap with apt-get, as root or with sudo where it asks for no password",
    )


def run(args: argparse.Namespace) -> int:
    """Print what this machine can do; return 1 if it cannot run sandboxes."""
    if args.install:
        install()
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
        f"{limits.cell_seconds} s for a cell, {limits.total_seconds} s in all; "
        "memory is watched ten times a second"
    )
    return 0


def install() -> None:
    """Install bubblewrap with apt-get if it is missing.

    Raises:
        UserError: if there is no apt-get, or if it fails.
    """
    if shutil.which("bwrap"):
        return
    if shutil.which("apt-get") is None:
        raise UserError("--install knows apt-get only; install bubblewrap with this system's tool")
    sudo = [] if os.geteuid() == 0 else ["sudo", "-n"]
    done = subprocess.run([*sudo, "apt-get", "install", "-y", "bubblewrap"], check=False)
    if done.returncode:
        raise UserError(
            "bubblewrap was not installed. As an administrator run: apt-get update && "
            "apt-get install bubblewrap"
        )
