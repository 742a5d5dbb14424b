"""Have systemd make a scope whose cgroup is delegated, in which Linux itself limits sandboxes."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys

from hood.course import ENGINE

SECONDS = 20  # that systemd may take; without a session bus it waits for one
# Status 0 where a grader that runs there can make groups for its sandboxes.
TEST = "import sys; from hood.grader.inside import cgroup; sys.exit(cgroup.enter() is None)"
# What lets the systemd of each user limit memory; systemd does so by itself from 244 on.
DROP_IN = "/etc/systemd/system/user@.service.d/delegate.conf"
DELEGATE = (
    f"sudo mkdir -p {os.path.dirname(DROP_IN)} && "
    f"printf '[Service]\\nDelegate=cpu memory pids\\n' | sudo tee {DROP_IN} && "
    "sudo systemctl daemon-reload, then log in anew"
)


def scope_command() -> list[str]:
    """Return what runs a program in a scope of its own, with a cgroup that is delegated to it."""
    whose = [] if os.geteuid() == 0 else ["--user"]
    return ["systemd-run", *whose, "--scope", "--quiet", "--collect", "-p", "Delegate=yes"]


def try_scope() -> str:
    """Make such a scope and look; return why sandboxes have no cgroup in it, empty if they have.

    The scope ends with the test.
    """
    if shutil.which("systemd-run") is None:
        return "there is no systemd-run here"
    try:
        done = subprocess.run(
            [*scope_command(), sys.executable, "-c", TEST],
            cwd=ENGINE,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"systemd made no scope: {error}"
    if not done.returncode:
        return ""
    said = done.stderr.strip().splitlines()
    return said[-1] if said else "systemd made a scope that may not limit memory"


def in_scope(program: str) -> str:
    """Return the command line that runs a program of this course in such a scope."""
    return f"{shlex.join(scope_command())} {program}"
