"""Run `pip install` and print the number and size of each package that it fetches.

    python lock/numbered.py COMMAND ... -r FILE ...

pip prints three or more lines for each of hundreds of packages, and never how many are left. Its
errors go straight to the screen. `make` calls this with the Python of a new .venv, which has only
pip.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

# A package's own file, not its metadata, which pip may fetch before.
FETCHED = re.compile(
    r"(?:Processing| +Downloading| +Using cached) (?:\S*/)?(\S+\.whl)(?=\s)( \([\d.]+ \w+\))?"
)
NAMED = re.compile(r"^[\w.\[\]-]+==", re.MULTILINE)
HERE = ("Requirement already satisfied", "Ignoring ")


def numbered(lines: Iterable[str], total: int) -> Iterator[str]:
    """Yield the lines for the screen; `total` is how many packages the files of the lock name."""
    done = 0
    for line in lines:
        if line.startswith(HERE):
            total -= 1
        elif found := FETCHED.match(line):
            done += 1
            name, version, *_ = found[1].split("-")
            yield f"{done:4d} of {total}  {name} {version}{found[2] or ''}"
        elif line.startswith("Installing collected"):
            yield "Unpacking them ..."


def main(command: list[str]) -> int:
    """Run the command, and return its status."""
    files = [name for flag, name in zip(command, command[1:], strict=False) if flag == "-r"]
    total = sum(len(NAMED.findall(Path(name).read_text(encoding="utf-8"))) for name in files)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as pip:
        assert pip.stdout is not None
        for line in numbered(pip.stdout, total):
            print(line, flush=True)
    return pip.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
