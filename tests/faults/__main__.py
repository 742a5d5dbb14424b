"""``python -m tests.faults``: grading runs are killed, starved and locked out, and later continue.

Each round grades a class, disturbs the run, runs the command once more, and compares the records
with those of an undisturbed run. The exit status is 1 if a round fails.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from tests.faults.classes import Class, make_quick, make_real
from tests.faults.kinds import KINDS
from tests.faults.scene import Scene, check


@dataclass(frozen=True)
class Round:
    """The result of a round.

    Attributes:
        wrong: the errors; empty if there are none.
    """

    kind: str
    number: int
    what: str
    at: str
    then: str
    seconds: float
    wrong: list[str]


class Classes:
    """The two classes, each made at its first use."""

    def __init__(self, folder: Path):
        self._folder = folder

    @cached_property
    def quick(self) -> Class:
        """See :func:`tests.faults.classes.make_quick`."""
        return make_quick(self._folder)

    @cached_property
    def real(self) -> Class:
        """See :func:`tests.faults.classes.make_real`."""
        return make_real(self._folder)


def choose(only: Sequence[str], rounds: int | None, seed: int) -> list[str]:
    """The faults to play, in random order, without those that this machine can't play."""
    possible = [name for name in only or KINDS if why_not(name) == ""]
    weighted = [name for name in possible for _ in range(KINDS[name].rounds)]
    if rounds is None:
        names = weighted
    else:
        first = random.Random(seed).sample(possible, len(possible))
        names = (first + weighted * (rounds // len(weighted) + 1))[:rounds]
    return random.Random(seed).sample(names, len(names))


def why_not(name: str) -> str:
    """The reason why this machine can't play a fault; empty if there is none."""
    if KINDS[name].root and os.getuid():
        return "only root can mount a small disk"
    if name in ("scheduler", "dask-worker") and find_spec("distributed") is None:
        return "the extra `cluster` is not installed"
    if KINDS[name].real and shutil.which("bwrap") is None:
        return "bubblewrap is not installed"
    return ""


def play(kind: str, number: int, seed: int, classes: Classes, base: Path) -> Round:
    """One round."""
    started = time.monotonic()
    cls = classes.real if KINDS[kind].real else classes.quick
    with Scene(cls, f"{seed} {number} {kind}", base) as scene:
        try:
            scene.prepare()
            struck, then, wrong = check(scene, KINDS[kind].strike)
        except Exception:
            logs = [f"{run.log.name}: {run.said}" for run in scene.runs]
            wrong = [traceback.format_exc(), *logs]
            return Round(kind, number, "the round broke", "", "", 0.0, wrong)
    at = f"{struck.at} of {cls.students}"
    then = f"exit {struck.status}; then {then}"
    return Round(kind, number, struck.what, at, then, time.monotonic() - started, wrong)


def main(argv: Sequence[str] | None = None, console: Console | None = None) -> int:
    """Play the rounds; return 0 if none fails."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--rounds", type=int, help="default: all kinds, the likely ones more often")
    parser.add_argument("--seed", type=int, default=0, help="of all that is drawn")
    parser.add_argument("--only", nargs="+", default=[], choices=list(KINDS), metavar="KIND")
    parser.add_argument("--at-once", type=int, default=2, help="rounds played side by side")
    args = parser.parse_args(argv)
    console = console or Console(width=None if sys.stdout.isatty() else 180)
    for name in args.only or KINDS:
        if why := why_not(name):
            console.print(f"not played: {name}: {why}")
    names = choose(args.only, args.rounds, args.seed)
    base = Path(tempfile.mkdtemp(prefix="faults-"))
    try:
        done = _play_all(names, args.seed, args.at_once, base, console)
    finally:
        shutil.rmtree(base, ignore_errors=True)
    _show(done, console)
    return 0 if done and not any(one.wrong for one in done) else 1


def _play_all(
    names: list[str], seed: int, at_once: int, base: Path, console: Console
) -> list[Round]:
    classes, done = Classes(base), []
    if any(not KINDS[name].real for name in names):
        console.print(f"{classes.quick.students} submissions that take no time")
    if any(KINDS[name].real for name in names):
        console.print(f"{classes.real.students} submissions in sandboxed kernels")
    with ThreadPoolExecutor(at_once) as threads:
        futures = [
            threads.submit(play, name, number, seed, classes, base)
            for number, name in enumerate(names, 1)
        ]
        for future in as_completed(futures):
            done.append(one := future.result())
            verdict = "NOT RIGHT" if one.wrong else "right"
            line = f"[{len(done):2}/{len(names)}] {one.kind} (round {one.number}): {one.what}; "
            line += f"recorded {one.at}; {one.then}; {verdict} ({one.seconds:.0f} s)"
            console.print(line, markup=False, highlight=False)
            for wrong in one.wrong:
                console.print(f"    {wrong[:3000]}", markup=False, highlight=False)
    return done


def _show(done: list[Round], console: Console) -> None:
    table = Table(title="Faults", box=box.SIMPLE_HEAD, title_justify="left")
    for column in ("kind", "rounds", "right"):
        table.add_column(column, justify="left" if column == "kind" else "right")
    for kind in KINDS:
        of_kind = [one for one in done if one.kind == kind]
        if of_kind:
            right = sum(not one.wrong for one in of_kind)
            table.add_row(kind, str(len(of_kind)), str(right))
    right = sum(not one.wrong for one in done)
    table.add_row("all", str(len(done)), str(right))
    console.print(table)


if __name__ == "__main__":
    sys.exit(main())
