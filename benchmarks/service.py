"""How soon the service answers a class that checks its work, on this machine.

    python -m benchmarks.service                     200 learners, a check a minute each, 2 minutes
    python -m benchmarks.service --hostile 10        the same, beside ten whose answers never end
    python -m benchmarks.service --learners 40 --minutes 1

The service runs in a process of its own, in a course folder made for it, and all is on loopback.
Every second answer is wrong. Printed are the times from asking to the verdict, and what failed.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat

from grader.phase_paths import ROOT, environment_with
from grader.service.people import OfFile

LAB = "01_tensors"
MINUTE = 60.0
ENDED = ("done", "failed", "replaced")
ENDLESS = "while True: pass"


@dataclass
class Figures:
    """What the learners of a run have seen: seconds until each verdict, and other ends, counted."""

    seconds: list[float] = field(default_factory=list)
    others: Counter[str] = field(default_factory=Counter)

    def say(self, who: str) -> None:
        """Print a line."""
        times = sorted(self.seconds)
        if len(times) > 1:
            p95 = statistics.quantiles(times, n=20)[-1]
            middle = statistics.median(times)
            print(f"{who}: {len(times)} verdicts, median {middle:.2f} s, 95 % within {p95:.2f} s")
        print(f"{who}: {dict(self.others) or 'no error'}")


@dataclass(frozen=True)
class Asker:
    """Asks the service at ``address`` in the name of one learner."""

    address: str
    token: str

    def ask(self, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.address}/{path}", data, headers)
        with urllib.request.urlopen(request, timeout=2 * MINUTE) as reply:
            return json.load(reply)

    def check(self, exercise: str, cells: list[dict[str, str]], figures: Figures) -> None:
        """Ask for a verdict, and note how long it took."""
        began = time.monotonic()
        try:
            said = self.ask("jobs", {"exercise": exercise, "cells": cells})
            while said["state"] not in ENDED:
                said = self.ask(f"jobs/{said['id']}?wait=20")
        except (OSError, urllib.error.HTTPError) as error:
            figures.others[str(error)] += 1
            return
        if said["state"] == "done":
            figures.seconds.append(time.monotonic() - began)
        else:
            figures.others[said["state"]] += 1


def exercises() -> list[tuple[str, list[dict[str, str]], list[dict[str, str]]]]:
    """Return each exercise of the lab with right cells, and with a last cell that fails."""
    nb = nbformat.read(ROOT / "source" / LAB / f"{LAB}.ipynb", as_version=4)
    found, cells = [], []
    for cell in nb.cells:
        ours = cell.metadata.get("nbgrader", {})
        if ours.get("solution") and cell.cell_type == "code" and not ours.get("grade"):
            cells.append({"id": cell.id, "source": cell.source})
        elif ours.get("grade") and cell.cell_type == "code" and cells:
            wrong = [
                *cells[:-1],
                {**cells[-1], "source": f"{cells[-1]['source']}\nraise ValueError"},
            ]
            found.append((ours["grade_id"], list(cells), wrong))
    return found


def learn(asker: Asker, end: float, figures: Figures, seed: int, hostile: bool) -> None:
    """Ask once a minute, at a moment of one's own, until the end."""
    dice = random.Random(seed)
    known = exercises()
    begin = time.monotonic() + dice.uniform(0, MINUTE)
    while begin < end:
        time.sleep(max(0.0, begin - time.monotonic()))
        exercise, right, wrong = dice.choice(known)
        cells = right if dice.random() < 0.5 else wrong
        if hostile:
            cells = [*cells[:-1], {**cells[-1], "source": ENDLESS}]
        asker.check(exercise, cells, figures)
        begin += MINUTE


def main(arguments: list[str] | None = None) -> int:
    """Run the measurement and print its figures; return 1 if an honest learner saw an error."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--learners", type=int, default=200)
    parser.add_argument("--minutes", type=float, default=2.0)
    parser.add_argument("--hostile", type=int, default=0)
    parser.add_argument("--workers", type=int, default=4)
    args = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder, socket.socket() as probe:
        root = Path(folder, "course")
        root.mkdir()
        for name in ("source", "release", "phases", "grader", "utils", "nbgrader_config.py"):
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
            copy(ROOT / name, root / name)
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        probe.close()
        serve = [sys.executable, "-m", "grader", "serve", "--port", str(port)]
        service = subprocess.Popen(
            [*serve, "--workers", str(args.workers)], cwd=root, env=environment_with(root)
        )
        try:
            return measured(args, root, f"http://127.0.0.1:{port}")
        finally:
            service.terminate()
            service.wait()


def measured(args: argparse.Namespace, root: Path, address: str) -> int:
    """Have a class ask a service; the first verdict, which warms it up, is not counted."""
    time.sleep(5)
    tokens, honest, hostile = OfFile(root, ()), Figures(), Figures()
    warm = Figures()
    while not warm.seconds:
        exercise, right, _ = exercises()[0]
        Asker(address, tokens.token("warm")).check(exercise, right, warm)
        time.sleep(0.5)
    end = time.monotonic() + args.minutes * MINUTE
    threads = []
    for number in range(args.learners + args.hostile):
        is_hostile = number >= args.learners
        given = (
            Asker(address, tokens.token(f"learner{number}")),
            end,
            hostile if is_hostile else honest,
            number,
            is_hostile,
        )
        threads.append(threading.Thread(target=learn, args=given, daemon=True))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    honest.say("honest")
    if args.hostile:
        hostile.say("hostile")
    return 1 if honest.others else 0


if __name__ == "__main__":
    sys.exit(main())
