"""What this machine can sandbox and compile: what ``python -m hood doctor`` says of it."""

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

LOCK_SECONDS = 600  # that another apt may take, as the updates of a machine that has just started
LOCK_TRIES = 5  # seconds from one try to the next
HELD = "Could not get lock"  # in English, as apt is asked to speak


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


def machine() -> bool:
    """Print what this machine can compile and sandbox; return whether it can run sandboxes."""
    course = of_course()
    lack = course.lacks()
    if lack:
        print(f"compile: no, {', '.join(lack.tools)} missing; what needs C++ is not run, and labs")
        print(f"  withhold its points instead of taking them\n  what to do: {lack.how}")
    elif course.compiles:
        print(f"compile: yes, {course.compiles} with {course.compiler()}")
    found = problems()
    for problem in found:
        print(f"no sandbox: {problem.what}\n  what to do: {problem.how}")
    if found:
        return False
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
        print(f"memory: warning: {UNGROUPED.what}\n  what to do: {_how_to_be_grouped()}")
    return True


def _how_to_be_grouped() -> str:
    """Try whether systemd makes a delegated cgroup here, and return how to grade in one."""
    why = try_scope()
    if not why:
        grade = in_scope("python -m hood grade LAB")
        return f"systemd makes such a group here, as was tried just now. Grade with: {grade}"
    delegate = f" Where your systemd may not limit memory: {DELEGATE}." if os.geteuid() else ""
    return f"{UNGROUPED.how}{delegate} It was tried just now: {why}"


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
    if (lack := of_course().lacks()) and lack.packages:
        _apt_get_install(*lack.packages)


def _apt_get_install(*packages: str) -> bool:
    wanted = ("install", "-y", *packages)
    return _apt_get(*wanted) or (_apt_get("update") and _apt_get(*wanted))


def _apt_get(*words: str) -> bool:
    """Run apt-get; while another one works, as on a machine that has just started, wait for it.

    For dpkg's own lock apt waits itself, and says who holds it. Where it is told by another of its
    locks that it can't begin, it is run again.
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
