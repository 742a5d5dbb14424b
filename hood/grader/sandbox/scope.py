"""Make a systemd scope with a delegated cgroup, in which Linux itself limits sandboxes."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys

from hood.course import ENGINE

SECONDS = 20  # for systemd, which waits for a session bus if there is none
# A program that exits with 0 if a grader in the scope can make groups for its sandboxes.
TEST = "import sys; from hood.grader.inside import cgroup; sys.exit(cgroup.enter() is None)"
# The setting that lets each user's systemd limit memory; the default since systemd 244.
DROP_IN = "/etc/systemd/system/user@.service.d/delegate.conf"
DELEGATE = (
    f"sudo mkdir -p {os.path.dirname(DROP_IN)} && "
    f"printf '[Service]\\nDelegate=cpu memory pids\\n' | sudo tee {DROP_IN} && "
    "sudo systemctl daemon-reload, then log in again"
)


def scope_command() -> list[str]:
    """Return the command that runs a program in its own scope, with a delegated cgroup."""
    whose = [] if os.geteuid() == 0 else ["--user"]
    return ["systemd-run", *whose, "--scope", "--quiet", "--collect", "-p", "Delegate=yes"]


def try_scope() -> str:
    """Return why sandboxes in a scope can't get cgroups; an empty text if they can.

    To find this out, the function makes a scope. The scope ends with the test.
    """
    if shutil.which("systemd-run") is None:
        return "systemd-run is not installed"
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
    """Return the command line that runs a program of this course in a scope."""
    return f"{shlex.join(scope_command())} {program}"
