"""Find out why a machine can't make sandboxes, and what to do about it."""

from __future__ import annotations

import platform
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hood.grader.inside import seccomp

OLDEST_LINUX = (5, 9)  # setns takes a pidfd from 5.8 on, close_range came with 5.9
PROFILE = """\
sudo tee /etc/apparmor.d/bwrap >/dev/null <<'END'
abi <abi/4.0>,
include <tunables/global>
profile bwrap /usr/bin/bwrap flags=(unconfined) {
  userns,
}
END
sudo apparmor_parser -r /etc/apparmor.d/bwrap"""
INSTALL = (
    "sudo apt-get install bubblewrap   (or: dnf, pacman, zypper, apk; "
    "`python -m hood doctor --install` does it)"
)


@dataclass(frozen=True)
class Obstacle:
    """A reason why sandboxes do not work."""

    what: str  # a clause without a full stop
    how: str  # what to do, as sentences or commands

    def __str__(self) -> str:
        return f"{self.what}. {self.how}"


UNGROUPED = Obstacle(
    "memory is measured only ten times a second. Between measurements, Linux does not enforce a "
    "sandbox's limit, because the grader may not make cgroups (version 2) for memory",
    "On a machine with systemd, grade in a scope: systemd-run --user --scope -p Delegate=yes "
    "python -m hood grade LAB (as root, leave out --user). In a container, allow writing to the "
    "container's own cgroup.",
)


def missing() -> list[Obstacle]:
    """Return the problems that can be found without starting a sandbox."""
    if sys.platform != "linux":
        return [
            Obstacle(
                f"learners' code is sandboxed on Linux only, but this is {platform.system()}",
                "Grade on a Linux machine, in a virtual machine with Linux, or in WSL 2.",
            )
        ]
    known = " and ".join(seccomp.MACHINES)
    version = tuple(int(part) for part in platform.release().split(".")[:2])
    tests = (
        (
            platform.machine() not in seccomp.MACHINES,
            f"the system call filter is written for {known}, not for {platform.machine()}",
            "Grade on a machine with one of these processors.",
        ),
        (
            version < OLDEST_LINUX,
            f"Linux {platform.release()} is too old: sandboxes need 5.9 or newer",
            "Update the system, or grade on a newer system.",
        ),
        (shutil.which("bwrap") is None, "bubblewrap (`bwrap`) is not installed", INSTALL),
    )
    return [Obstacle(what, how) for fails, what, how in tests if fails]


def explain(said: str) -> Obstacle:
    """Return the obstacle that made a sandbox fail, according to bubblewrap's message."""
    of_bubblewrap = said.partition("bwrap: ")[2]
    for words, problem in REMEDIES:
        if any(word in of_bubblewrap.lower() for word in words):
            found = problem()
            return Obstacle(f"{found.what} ({of_bubblewrap})", found.how)
    return Obstacle(
        f"a sandbox could not be made: {said}", "Run `python -m hood doctor` to test sandboxes."
    )


def _switch(name: str) -> str:
    """Return the value of a switch under /proc/sys; empty if this system does not have it."""
    try:
        return Path("/proc/sys", name).read_text().strip()
    except OSError:
        return ""


def _no_namespaces() -> Obstacle:
    what = "this system forbids the namespaces that bubblewrap needs for sandboxes"
    if _switch("kernel/apparmor_restrict_unprivileged_userns") == "1":
        return Obstacle(
            "AppArmor forbids user namespaces for programs without a profile (on Ubuntu since "
            "23.10), and bubblewrap has no profile here",
            f"Add a profile, then try again:\n{PROFILE}",
        )
    if _switch("kernel/unprivileged_userns_clone") == "0":
        return Obstacle(what, "sudo sysctl -w kernel.unprivileged_userns_clone=1")
    if _switch("user/max_user_namespaces") == "0":
        return Obstacle(what, "sudo sysctl -w user.max_user_namespaces=15000")
    return Obstacle(
        what,
        "If this is a container, start it with --security-opt seccomp=unconfined --security-opt "
        "apparmor=unconfined --security-opt systempaths=unconfined, or as root with "
        "--cap-add SYS_ADMIN.",
    )


TOO_OLD = Obstacle("bubblewrap is too old", "Sandboxes need bubblewrap 0.8 or newer: update it.")
NO_PROC = Obstacle(
    "this container does not let a sandbox have its own /proc",
    "Start the container with --security-opt systempaths=unconfined (podman: unmask=ALL).",
)
# (words in bubblewrap's message, in lower case; a function for the obstacle). The first match
# counts.
REMEDIES: tuple[tuple[tuple[str, ...], Callable[[], Obstacle]], ...] = (
    (("unknown option",), lambda: TOO_OLD),
    (("mount proc", "/newroot/proc"), lambda: NO_PROC),
    (("namespace", "uid map", "gid map", "setgroups", "loopback", "permitted"), _no_namespaces),
)
