"""Measure how fast the service on this machine answers a class that checks its work.

    python -m benchmarks.service                     200 learners, who each check once a minute
    python -m benchmarks.service --hostile 10 the same, and in turn with ten more learners, who send
                                                     endless loops all the time
    python -m benchmarks.service --learners 40 --minutes 1 --rounds 1

The service runs in a separate process, in a new course folder, over loopback. Every second answer
is wrong. The command prints the times from request to verdict, and the failures. A check without a
verdict after a minute counts as failed, so that a run ends.
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

from hood.classroom.service.people import OfFile
from hood.phase_paths import ROOT, environment_with

LAB = "01_tensors"
MINUTE = 60.0
ENDED = ("done", "failed", "replaced")
ENDLESS = "while True: pass"
PAUSE = 5.0  # the mean number of seconds between two checks of a hostile learner
WARM = 8  # verdicts that are not counted
TEACHER = "teacher"


@dataclass
class Figures:
    """The learners' results in a run: seconds until each verdict, and counts of other outcomes."""

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
            while said["state"] not in ENDED and time.monotonic() < began + MINUTE:
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


def learn(asker: Asker, end: float, figures: Figures, seed: int) -> None:
    """Ask for one check in each minute, at a random moment, until the end."""
    dice = random.Random(seed)
    known = exercises()
    begin = time.monotonic() + dice.uniform(0, MINUTE)
    while begin < end:
        time.sleep(max(0.0, begin - time.monotonic()))
        exercise, right, wrong = dice.choice(known)
        asker.check(exercise, right if dice.random() < 0.5 else wrong, figures)
        begin += MINUTE


def attack(asker: Asker, end: float, figures: Figures, seed: int) -> None:
    """Ask for checks of endless code, again and again, without waiting for a verdict."""
    dice = random.Random(seed)
    known = exercises()
    while time.monotonic() < end:
        exercise, right, _ = dice.choice(known)
        cells = [*right[:-1], {**right[-1], "source": ENDLESS}]
        try:
            figures.others[asker.ask("jobs", {"exercise": exercise, "cells": cells})["state"]] += 1
        except OSError as error:
            figures.others[str(error)] += 1
        time.sleep(dice.uniform(0, 2 * PAUSE))


def main(arguments: list[str] | None = None) -> int:
    """Run the measurement and print its results; return 1 if an honest learner saw an error."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--learners", type=int, default=200)
    parser.add_argument("--minutes", type=float, default=1.0, help="the length of each measurement")
    parser.add_argument("--hostile", type=int, default=0)
    parser.add_argument(
        "--rounds", type=int, default=2, help="the number of measurements of each kind"
    )
    parser.add_argument("--workers", type=int, default=4)
    args = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder, socket.socket() as probe:
        root = Path(folder, "course")
        root.mkdir()
        for name in ("source", "release", "phases", "hood", "utils", "nbgrader_config.py"):
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
            copy(ROOT / name, root / name)
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        probe.close()
        serve = [sys.executable, "-m", "hood", "serve", "--port", str(port)]
        service = subprocess.Popen(
            [*serve, "--workers", str(args.workers), "--teachers", TEACHER],
            cwd=root,
            env=environment_with(root),
        )
        try:
            return measured(args, root, f"http://127.0.0.1:{port}")
        finally:
            service.terminate()
            try:
                service.wait(MINUTE)
            except subprocess.TimeoutExpired:
                service.kill()


def measured(args: argparse.Namespace, root: Path, address: str) -> int:
    """Have a class ask a service, alternately without and with the hostile learners."""
    tokens = OfFile(root, ())
    warm_up(Asker(address, tokens.token("warm")))
    alone, beside, hostile = Figures(), Figures(), Figures()
    for number in range(args.rounds):
        if number and args.hostile:
            drain(Asker(address, tokens.token(TEACHER)))
        window(args, address, tokens, alone)
        if args.hostile:
            window(args, address, tokens, beside, hostile)
    alone.say("alone")
    if args.hostile:
        beside.say("beside hostile learners")
        print(f"hostile: {dict(hostile.others)}")
        if alone.seconds and beside.seconds:
            more = statistics.median(beside.seconds) / statistics.median(alone.seconds) - 1
            print(f"beside hostile learners, the others' median wait changed by {more:+.0%}")
    return 1 if alone.others or beside.others else 0


def warm_up(asker: Asker) -> None:
    """Wait until the service answers, and all its workers have begun."""
    exercise, right, _ = exercises()[0]
    warm = Figures()
    while len(warm.seconds) < WARM:
        time.sleep(0.5)
        asker.check(exercise, right, warm)


def window(
    args: argparse.Namespace,
    address: str,
    tokens: OfFile,
    figures: Figures,
    hostile: Figures | None = None,
) -> None:
    """Have the class send checks for the chosen time, and the hostile learners if there are any."""
    end = time.monotonic() + args.minutes * MINUTE

    def begin(target: Any, name: str, into: Figures, seed: int) -> threading.Thread:
        given = Asker(address, tokens.token(f"{name}{seed}")), end, into, seed
        thread = threading.Thread(target=target, args=given, daemon=True)
        thread.start()
        return thread

    threads = [begin(learn, "learner", figures, k) for k in range(args.learners)]
    if hostile is not None:
        threads += [begin(attack, "hostile", hostile, k) for k in range(args.hostile)]
    for thread in threads:
        thread.join()


def drain(teacher: Asker) -> None:
    """Wait for a limited time until the service has nothing more to do."""
    end = time.monotonic() + MINUTE
    while time.monotonic() < end:
        load = teacher.ask("queue")
        if not load["waiting"] + load["running"]:
            return
        time.sleep(1)


if __name__ == "__main__":
    sys.exit(main())
