"""``python -m hood doctor``: what this machine can sandbox and compile, and what others read."""

from __future__ import annotations

import argparse
import os
import pwd
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from hood import UserError
from hood.grader.inside import cgroup
from hood.grader.sandbox.kernel import SandboxedKernel
from hood.grader.sandbox.limits import MIB, Limits
from hood.grader.sandbox.remedies import UNGROUPED, Obstacle, missing
from hood.grader.sandbox.scope import DELEGATE, in_scope, try_scope
from hood.grader.sandbox.warm_process import CannotSandbox, ZygoteDied, own_users
from hood.learner.exposed_answers import ANSWERS, entered, open_to_others
from hood.phase_paths import ROOT
from utils.instruments.toolchain import cxx, inductor_lacks

LOCK_SECONDS = 600  # that another apt may take, as the updates of a machine that has just started
LOCK_TRIES = 5  # seconds from one try to the next
# What a class's folder may have beside nbgrader's own: names, work, marks, the service's key.
CLASS = ("received", "downloaded", "reports", "grades.csv", ".pseudonyms", ".service-key")
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


def learners_and_others(root: Path) -> list[str]:
    """Return the accounts of people on this machine, but for the course's owner and this one.

    A machine may have accounts that it does not list, as those of a directory service.
    """
    own = {os.getuid(), root.stat().st_uid}
    return sorted(
        one.pw_name
        for one in pwd.getpwall()
        if one.pw_uid >= 1000 and one.pw_uid not in own
        if not one.pw_shell.endswith(("nologin", "false"))
    )


def open_places(root: Path) -> Iterator[tuple[Path, Path, str]]:
    """Yield each place of a course that any account can read, a file there, and how to close it."""
    from nbgrader.exchange.default import ExchangeCollect  # here: slow

    from hood.classroom.results.exports import PLACES
    from hood.classroom.rules.reading import FILE, read_course_file
    from hood.grader.course import open_course

    course = open_course(root)
    directory = course.directory
    steps = ("source", "submitted", "autograded", "feedback")
    named = [getattr(directory, f"{step}_directory") for step in steps]
    own = [*CLASS, *PLACES.values()]
    inside = dict.fromkeys([*ANSWERS, ".git", FILE, *own, *named])
    places = [root / one for one in inside]
    with suppress(UserError):  # `course check` says what is wrong in the file
        if (file := read_course_file(root)) and file.roster:
            places.append(root / file.roster.file)
    places += [course.database] if course.database else []
    for place in places:
        if found := open_to_others(place):
            closed = root if place.is_relative_to(root) else place
            yield place, found, f"chmod o-rwx {shlex.quote(str(closed))}"
    exchange = ExchangeCollect(coursedir=directory, config=course.config)
    inbound = Path(exchange.root, directory.course_id, "inbound").resolve()
    # Learners write there, and nbgrader lets none of them list it: names there can't be guessed.
    if inbound.is_dir() and inbound.stat().st_mode & 0o005 == 0o005 and entered(inbound):
        yield inbound, inbound, f"chmod o-r {shlex.quote(str(inbound))}"


def answers(root: Path) -> bool:
    """Say what of a course other accounts can read; return whether that is nothing, or nobody."""
    found = list(open_places(root))
    if not found:
        print("answers: kept, no other account of this machine can read them, or learners' work")
        return True
    people = learners_and_others(root)
    who = ", ".join(people[:3]) + (f" and {len(people) - 3} others" if len(people) > 3 else "")
    said = who or "warning: any other account, of which this machine lists none,"
    print(f"answers: {said} can read {', '.join(str(place) for place, _, _ in found)}")
    print(f"  for example {found[0][1]}")
    print(f"  what to do: {'; '.join(dict.fromkeys(how for _, _, how in found))}")
    return not people


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--install",
        action="store_true",
        help="install what is missing of bubblewrap, a C++ compiler and Python's headers with "
        "apt-get, as root or with sudo where it asks for no password; answers are not looked for",
    )


def run(args: argparse.Namespace, root: Path = ROOT) -> int:
    """Print what this machine can do, and what of the course is open to others.

    It returns 1 if the machine cannot run sandboxes, or people with accounts can read answers.
    """
    if args.install:
        install()
    kept = args.install or answers(root)
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
        print(f"memory: warning: {UNGROUPED.what}\n  what to do: {_how_to_be_grouped()}")
    return 0 if kept else 1


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
    if (lack := inductor_lacks()) and lack.packages:
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
