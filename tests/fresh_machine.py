"""``python -m tests.fresh_machine [SUITE...]``: the README's two commands on fresh Debian machines.

For each release of Debian, debootstrap makes a root folder with what a newcomer has: git, make and
a Python that can make virtual environments. A clone of the last commit is put there. `make demo`
and `make test` run as root, with this machine's kernel, network and certificates, but without its
packages. Prints a line for each command: seconds, what apt installed for it, and how many tests
passed, failed and were skipped. ``make proof`` calls it. On a machine that cannot make such a root,
it says what is missing. The exit status is 1 if a command failed. Each release needs several GB of
disk, which are freed afterwards; the commands' output stays in build/fresh_machine. The commands
see `TORCH=cpu` if it is set in the environment.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOGS = ROOT / "build" / "fresh_machine"
SUITES = ("bookworm", "trixie", "forky")  # Python 3.11, 3.13 and 3.14
MIRROR = "http://deb.debian.org/debian"
PACKAGES = "ca-certificates,git,make,python3,python3-venv"
FROM_HERE = ("etc/resolv.conf", "etc/hosts", "etc/ssl/certs/ca-certificates.crt")
COMMANDS = ("make demo", "make test")
# A chroot is not enough, because bubblewrap needs a / that is a mount.
ENTER = """
set -e; root=$1; shift
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"; mount --rbind /sys "$root/sys"; mount --rbind /dev "$root/dev"
cd "$root"; mkdir -p .old; pivot_root . .old; cd /; umount -l /.old
cd /root/course; exec "$@"
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run both commands on each release and print the table."""
    parser = argparse.ArgumentParser(prog="tests.fresh_machine", description=__doc__)
    parser.add_argument("suites", nargs="*", metavar="SUITE", help="Debian releases, by name")
    suites = parser.parse_args(arguments).suites or SUITES
    if missing := unable():
        print(f"Fresh machines are not tried: {missing}.")
        return 0
    LOGS.mkdir(parents=True, exist_ok=True)
    failed = False
    print(f"{'suite':10}{'Python':8}{'command':12}{'seconds':>8}  {'result':38}apt installed")
    for suite in suites:
        with tempfile.TemporaryDirectory(prefix="fresh-") as folder:
            root = Path(folder, suite)
            make_root(suite, root)
            python = said(root, "python3", "--version").removeprefix("Python ")
            before: list[str] = []
            for command in COMMANDS:
                log = LOGS / f"{suite}-{command.replace(' ', '-')}.txt"
                began = time.monotonic()
                status = run(root, command, log)
                failed |= status != 0
                seconds, after = time.monotonic() - began, apt_installed(root)
                row = f"{suite:10}{python:8}{command:12}{seconds:8.0f}  {result(status, log):38}"
                print(row + ", ".join(after[len(before) :]), flush=True)
                before = after
    return int(failed)


def unable() -> str:
    """Return the reason why this machine cannot make a root; empty if there is none."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "that needs root on Linux"
    tools = ("debootstrap", "unshare", "pivot_root")
    lacking = [tool for tool in tools if shutil.which(tool) is None]
    return f"{', '.join(lacking)} is not installed" if lacking else ""


def make_root(suite: str, root: Path) -> None:
    """Make a root of a release at `root`, with a clone of the last commit in root/course."""
    script = Path("/usr/share/debootstrap/scripts", suite)
    subprocess.run(
        [
            *("debootstrap", "--variant=minbase", f"--include={PACKAGES}", suite, root, MIRROR),
            script if script.exists() else script.with_name("sid"),
        ],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    for name in FROM_HERE:
        shutil.copyfile(Path("/", name), root / name)
    subprocess.run(["git", "clone", "-q", ROOT, root / "root" / "course"], check=True)


def inside(root: Path, *command: str) -> list[str]:
    """Return the call that runs a command with `root` as its /; nothing stays mounted."""
    enter = ["unshare", "--mount", "--pid", "--fork", "--propagation", "private", "sh", "-c", ENTER]
    return [*enter, "enter", str(root), *command]


def environment() -> dict[str, str]:
    """Return a newcomer's environment: this machine's, without its paths and wheels."""
    away = ("PIP_FIND_LINKS", "VIRTUAL_ENV", "MAKEFLAGS", "MAKELEVEL", "MFLAGS")
    kept = {name: value for name, value in os.environ.items() if name not in away}
    path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    return kept | {"HOME": "/root", "LANG": "C.UTF-8", "PATH": path}


def run(root: Path, command: str, log: Path) -> int:
    """Run a command line in root/course; return its exit status. Its output goes to `log`."""
    with log.open("wb") as out:
        call = inside(root, "sh", "-c", command)
        return subprocess.run(
            call, stdout=out, stderr=out, env=environment(), check=False
        ).returncode


def said(root: Path, *command: str) -> str:
    """Return what a command printed in the root."""
    call = inside(root, *command)
    done = subprocess.run(call, stdout=subprocess.PIPE, text=True, env=environment(), check=True)
    return done.stdout.strip()


def result(status: int, log: Path) -> str:
    """Return the counts of pytest's last line, or the exit status if there is no such line."""
    text = log.read_text(encoding="utf-8", errors="replace")
    lines = [line for line in text.splitlines() if re.search(r"\d+ (passed|failed)", line)]
    counts = re.findall(r"\d+ (?:passed|failed|skipped|errors?)", lines[-1]) if lines else []
    ended = "ended well" if status == 0 else f"ended with status {status}"
    return ", ".join(counts) if counts and status == 0 else ", ".join([ended, *counts])


def apt_installed(root: Path) -> list[str]:
    """Return the packages that each call of apt has installed since the root was made."""
    history = root / "var" / "log" / "apt" / "history.log"
    text = history.read_text(encoding="utf-8") if history.exists() else ""
    calls = re.findall(r"^Commandline: apt-get .*?\binstall\b(.*)$", text, re.MULTILINE)
    return [name for call in calls for name in call.split() if not name.startswith("-")]


if __name__ == "__main__":
    sys.exit(main())
