"""One round: a copy of a class, a disturbed run, and the run after it."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.faults import processes
from tests.faults.classes import Class, variables, words
from tests.faults.state import State, differences, halves, look, recorded
from tests.patience import PATIENCE

KILLED = -9
GOES_ON = "run the same command again"


@dataclass
class Struck:
    """How the disturbed run went.

    Attributes:
        what: the fault, in words.
        at: how many submissions were recorded at that moment.
        status: the run's exit status.
        right: the expected exit statuses.
        says: a pattern that the output must match; or empty.
        open_marks: whether the run may record learners without a verdict, too.
        again: more words for the next run.
        by_learner: the learners graded as if their own code had ended the kernel.
    """

    what: str
    at: int
    status: int
    right: tuple[int, ...]
    says: str = ""
    open_marks: bool = False
    again: tuple[str, ...] = ()
    by_learner: set[str] = field(default_factory=set)


class Run:
    """A grading run as a separate process.

    Its output goes to a file, so that no pipe can fill up.
    """

    def __init__(self, command: list[str], scene: Scene, **options: object):
        self.log = scene.folder / f"run{len(scene.runs)}.log"
        self._scene = scene
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                command,
                cwd=scene.root,
                env=variables(scene.root, scene.tmp),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                **options,
            )
        self.pid = self.process.pid
        scene.runs.append(self)

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self.process.poll() is not None

    @property
    def said(self) -> str:
        """What the run printed, in one line."""
        return " ".join(self.log.read_text(errors="replace").split())

    def until(self, happened: Callable[[], object], step: float = 0.004) -> bool:
        """Wait for an event; return False if the run ends first."""
        return self._scene.until(lambda: happened() or self.over, step) and not self.over

    def until_recorded(self, number: int) -> bool:
        """Wait until `count` submissions are recorded."""
        return self.until(lambda: recorded(self._scene.root) >= number)

    def wait(self) -> int:
        """Its exit status."""
        return self.process.wait(PATIENCE)


class Scene:
    """A copy of a class and the runs on it. Use it as a context manager.

    Attributes:
        root: the course folder.
        tmp: the temporary folder of every process of the round.
        rng: the random generator of the round.
    """

    def __init__(self, of: Class, seed: str, base: Path):
        self.cls = of
        self.rng = random.Random(seed)
        # a short path, because the path of a socket in this folder may have at most 107 characters
        self.folder = Path(tempfile.mkdtemp(prefix="r", dir=base))
        self.root, self.tmp = self.folder / "course", self.folder / "t"
        self.runs: list[Run] = []
        self._mounts: list[Path] = []
        self.others: list[subprocess.Popen] = []
        self.tmp.mkdir()

    def __enter__(self) -> Scene:
        return self

    def __exit__(self, *_: object) -> None:
        for other in self.others:
            other.kill()
            other.wait()
        for pid in processes.of(self.folder):
            processes.kill(pid)
        for run in self.runs:
            run.process.wait()
        for place in reversed(self._mounts):
            subprocess.run(["umount", "-l", str(place)], check=False)
        shutil.rmtree(self.folder, ignore_errors=True)

    def prepare(self) -> None:
        """Copy the class."""
        self.cls.copy(self.root)

    def grade(self, *more: str, **options: object) -> Run:
        """Start the command."""
        return Run(words(self.cls.lab, *more), self, **options)

    def patched(self, spec: dict, *more: str) -> Run:
        """Start the command with a planned fault, see :mod:`tests.faults.patched`."""
        command = [sys.executable, "-m", "tests.faults.patched", json.dumps(spec), "grade"]
        return Run([*command, self.cls.lab, *more], self)

    def workers(self) -> tuple[str, str]:
        """Options for one worker or two."""
        return "--workers", str(self.rng.choice((1, 1, 2)))

    def somewhere(self) -> int:
        """A random number of recorded submissions: at least those before the run, at most all."""
        return self.rng.randrange(len(self.cls.before.keys), self.cls.students)

    def aimed(self, patience: float = 0.0) -> tuple[Run, int]:
        """A run, at the moment when a random number of submissions is recorded."""
        words = self.workers()
        run = self.patched({"patience": patience}, *words) if patience else self.grade(*words)
        number = self.somewhere()
        run.until_recorded(number)
        time.sleep(self.rng.uniform(0, 0.03))
        return run, number

    def recorded(self) -> int:
        """How many are recorded now."""
        return recorded(self.root)

    def until(self, happened: Callable[[], object], step: float = 0.05) -> bool:
        """Wait until a condition is true; raise TimeoutError if it stays false."""
        end = time.monotonic() + PATIENCE
        while not happened():
            if time.monotonic() > end:
                raise TimeoutError(f"it did not happen within {PATIENCE:g} s")
            time.sleep(step)
        return True

    def remove(self, left: Path) -> None:
        """Remove the files of a process that could not clean up."""
        shutil.rmtree(left, ignore_errors=True)

    def mount(self, place: Path, options: str) -> None:
        """Mount a small file system at a path, with copies of the files that are there."""
        place.mkdir(exist_ok=True)
        aside = self.folder / f"aside{len(self._mounts)}"
        shutil.copytree(place, aside)
        command = ["mount", "-t", "tmpfs", "-o", options, "none", str(place)]
        subprocess.run(command, check=True)
        self._mounts.append(place)
        shutil.copytree(aside, place, dirs_exist_ok=True)


def check(scene: Scene, strike: Callable[[Scene], Struck]) -> tuple[Struck, str, list[str]]:
    """Play a round; return the fault, what the next run did, and the errors."""
    cls = scene.cls
    struck = strike(scene)
    wrong = []
    if struck.status not in struck.right:
        wrong.append(f"exit status {struck.status}, not {struck.right}: {scene.runs[-1].said}")
    if struck.status in struck.right and not re.search(struck.says, scene.runs[-1].said):
        wrong.append(f"it does not say {struck.says!r} but {scene.runs[-1].said!r}")
    wrong += [f"a traceback: {run.said}" for run in scene.runs if "Traceback" in run.said]
    wrong += _left_behind(scene, files=False)
    middle = look(scene.root, cls.lab)
    if not struck.open_marks and not struck.by_learner:
        wrong += halves(middle, cls.before, cls.reference)
    done = middle.done(cls.reference)
    again = scene.grade("--workers", "1", *struck.again)
    status = again.wait()
    if status:
        wrong.append(f"exit status {status} of the run after it: {again.said}")
    skipped = _count(again, "recorded before, skipped")
    if not struck.by_learner and skipped != len(done):
        wrong.append(f"the run after it skipped {skipped}, and {len(done)} were done")
    end = look(scene.root, cls.lab)
    wrong += [f"then: {one}" for one in differences(end, cls.reference, cls.same_seeds)]
    wrong += _left_behind(scene, files=True)
    if not cls.same_seeds and not wrong:
        wrong += _same_with_the_same_seeds(scene, end)
    then = f"exit {status}, {_count(again, 'graded')} graded, {skipped} skipped"
    return struck, then, wrong


def _same_with_the_same_seeds(scene: Scene, end: State) -> list[str]:
    """Grade all again, undisturbed and with the same seeds: the outputs must be equal, too."""
    run = scene.grade("--regrade", "--workers", "1")
    if run.wait():
        return [f"grading again: {run.said}"]
    found = look(scene.root, scene.cls.lab)
    return [f"graded again: {one}" for one in differences(found, end, same_seeds=True)]


def _count(run: Run, what: str) -> int:
    found = re.search(rf"\b{what} (\d+)", run.said)
    return int(found[1]) if found else -1


def _left_behind(scene: Scene, files: bool) -> list[str]:
    """The round's remaining processes and temporary files at its end."""
    others = {other.pid for other in scene.others if other.poll() is None}
    others |= {pid for other in others for pid in processes.below(other)}

    def still() -> list[int]:
        return [pid for pid in processes.of(scene.tmp) if pid not in others]

    left = processes.after_a_while(still)
    out = [f"processes are left: {processes.named(left)}"] if left else []
    if files and (names := processes.after_a_while(lambda: sorted(os.listdir(scene.tmp)))):
        out.append(f"temporary files are left: {names}")
    return out
