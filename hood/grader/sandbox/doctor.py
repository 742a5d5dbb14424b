"""Test what this machine can sandbox and compile, for ``python -m hood doctor``."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time

from hood import UserError
from hood.grader.course_sandbox import of_course
from hood.grader.inside import cgroup
from hood.grader.sandbox.kernel import SandboxedKernel
from hood.grader.sandbox.limits import MIB, Limits
from hood.grader.sandbox.remedies import UNGROUPED, Obstacle, missing
from hood.grader.sandbox.scope import DELEGATE, in_scope, try_scope
from hood.grader.sandbox.warm_process import CannotSandbox, ZygoteDied, own_users

LOCK_SECONDS = 600  # the wait for another apt, such as updates after a machine's start
LOCK_TRIES = 5  # seconds between tries
HELD = "Could not get lock"  # apt's message; apt runs in English


def problems() -> list[Obstacle]:
    """Start a kernel in a sandbox, and return the obstacles to sandboxes on this machine."""
    if found := missing():
        return found
    try:
        with SandboxedKernel() as kernel:
            kernel.run("1", 30)
    except CannotSandbox as error:
        return [error.problem]
    except (RuntimeError, ZygoteDied) as error:
        return [Obstacle(f"a kernel did not start in its sandbox: {error}", "Run doctor again.")]
    return []


def machine() -> bool:
    """Print what this machine can compile and sandbox; return whether it can run sandboxes."""
    course = of_course()
    lack = course.lacks()
    if lack:
        print(f"compile: no; missing: {', '.join(lack.tools)}. Checks that need C++ are not run.")
        print("  Their points are withheld: by default, nobody loses these points")
        print(f"  what to do: {lack.how}")
    elif course.compiles:
        print(f"compile: yes, {course.compiles} with {course.compiler()}")
    found = problems()
    for problem in found:
        print(f"no sandbox: {problem.what}\n  what to do: {problem.how}")
    if found:
        return False
    limits = Limits()
    print("sandbox: yes, a kernel was started in a sandbox and ended again")
    users = "its own user id" if own_users() else "its own user namespace"
    print(f"users: each kernel has {users}")
    print(
        f"limits: {limits.memory // MIB} MiB of memory, {limits.processes} processes, "
        f"{limits.cell_seconds} s for a cell, {limits.total_seconds} s in all"
    )
    if cgroup.enter():
        print("memory: Linux itself enforces each sandbox's limit, in its own cgroup")
    else:
        print(f"memory: warning: {UNGROUPED.what}\n  what to do: {_how_to_be_grouped()}")
    return True


def _how_to_be_grouped() -> str:
    """Test whether systemd makes a delegated cgroup here, and return how to grade in it."""
    why = try_scope()
    if not why:
        grade = in_scope("python -m hood grade LAB")
        return f"A test has just shown that systemd can make such a cgroup. Grade with: {grade}"
    delegate = f" If your systemd may not limit memory, run {DELEGATE}." if os.geteuid() else ""
    return f"{UNGROUPED.how}{delegate} A test has just failed: {why}"


def install() -> None:
    """Install bubblewrap, a C++ compiler and Python's headers with apt-get, if they are missing.

    Raises UserError if bubblewrap is missing and not installed.
    """
    if shutil.which("bwrap") is None:
        if shutil.which("apt-get") is None:
            raise UserError(
                "--install needs apt-get: install bubblewrap with this system's package manager"
            )
        if not _apt_get_install("bubblewrap"):
            raise UserError(
                "bubblewrap was not installed. As an administrator run: apt-get update && "
                "apt-get install bubblewrap"
            )
    if (lack := of_course().lacks()) and lack.packages:
        _apt_get_install(*lack.packages)


def _apt_get_install(*packages: str) -> bool:
    wanted = ("install", "-y", *packages)
    return _apt_get(*wanted) or (_apt_get("update") and _apt_get(*wanted))


def _apt_get(*words: str) -> bool:
    """Run apt-get; wait while another apt runs, for example on a machine that has just started.

    Apt itself waits for dpkg's lock, and names the process that has that lock. If another process
    has another of apt's locks, apt-get is run again.
    """
    sudo = [] if os.geteuid() == 0 else ["sudo", "-n"]
    command = [*sudo, "apt-get", "-o", f"DPkg::Lock::Timeout={LOCK_SECONDS}", *words]
    end = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            done = subprocess.run(
                command,
                check=False,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                env=os.environ | {"LC_ALL": "C"},
            )
        except OSError:  # no sudo
            return False
        held = [line for line in done.stderr.splitlines() if HELD in line]
        if not done.returncode or not held or time.monotonic() > end:
            print(done.stderr, end="", file=sys.stderr)
            return done.returncode == 0
        print(f"Waiting for another apt: {held[0].removeprefix('E: ')}", flush=True)
        time.sleep(LOCK_TRIES)
