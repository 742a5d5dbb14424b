"""Grade a class of honest and hostile learners together, with ``python -m hood grade``."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell

from hood.classroom.recording import command
from hood.grader.course import open_course
from tests.attacks.catalogue import FAMILIES, Attack, every_attack
from tests.attacks.ground import COURSE, LAB, MARK, judging, released, source_notebook
from tests.attacks.submission import Host, Work, lazy
from tests.hood.classroom.recording.running import grade, marks, rows, run
from tests.hood.classroom.recording.small import Here, enter
from tests.hood.tiny import CONFIG, ROOT, environment, make_course, nbgrader, write

RIGHT = {"twice": 2.0, "row_sums": 3.0, "corner": 2.0}
# Some of the class solve only the first exercise.
HALF = {"twice": 2.0, "row_sums": 0.0, "corner": 0.0}
SECONDS_A_CELL = 2
WORKERS = 2


@dataclass(frozen=True)
class Graded:
    """The result of grading a class.

    Attributes:
        root: the course's folder.
        status: the exit status of the command.
        said: what the command printed, errors included.
        seconds: its time by the clock.
    """

    root: Path
    status: int
    said: str
    seconds: float

    def told(self, student: str) -> str:
        """Return all text written for a learner, feedback included, without random values."""
        folders = [self.root / step / student for step in ("autograded", "feedback")]
        paths = [p for folder in folders for p in sorted(folder.rglob("*")) if p.is_file()]
        text = "\n".join(path.read_text(errors="replace") for path in paths)
        path = self.root / "autograded" / student / LAB / f"{LAB}.ipynb"
        ours = nbformat.read(path, as_version=4).metadata.open_the_hood
        for drawn in (ours.get("seed"), ours.get("key")):
            text = text.replace(drawn, "...") if drawn else text
        return re.sub(r'"seconds": [0-9.]+', '"seconds": 0', text)


def make_class(root: Path, honest: int) -> Path:
    """Make a course of honest learners; each prints a different word."""
    root.mkdir()
    shutil.copy(ROOT / "nbgrader_config.py", root)
    source = source_notebook()
    source.metadata.open_the_hood.cell_seconds = SECONDS_A_CELL
    write(source, root / "source" / LAB / f"{LAB}.ipynb")
    for number in range(honest):
        work = _work(root, f"honest-{number:02}")
        work.answer_all()
        if number % 3 == 0:
            # only stubs, because the size of the report on a wrong answer depends on the seed
            for exercise in ("row_sums", "corner"):
                work.answer(exercise, 'raise NotImplementedError("write your answer here")')
        write(nbformat.writes(work.nb).encode(), work.folder / f"{LAB}.ipynb")
    return root


def add_attacks(root: Path, attacks: Sequence[Attack]) -> dict[str, Attack]:
    """Add hostile learners whose names sort among the others; return the attacks by student."""
    students = {}
    for number, attack in enumerate(attacks):
        student = f"honest-{number:02}-{re.sub(r'[^a-z]', '-', str(attack).lower())}"
        work = _work(root, student)
        attack.change(work)
        path = work.folder / f"{LAB}.ipynb"
        if not os.path.lexists(path):
            path.write_bytes(work.bytes())
        students[student] = attack
    return students


def _work(root: Path, student: str) -> Work:
    folder = root / "submitted" / student / LAB
    folder.mkdir(parents=True)
    host = Host(root, 1, 1, str(root / "socket"), "hood-nobody")
    work = lazy(released(source_notebook(), CONFIG), host, folder)
    work.nb.cells.append(new_code_cell(f"print('word-of-{student}.')"))
    return work


def one_of_each_family(count: int, seed: str) -> list[Attack]:
    """Return `count` attacks, taken from all families in turn."""
    draw = random.Random(seed)
    by_family = {name: [a for a in every_attack() if a.family == name] for name in FAMILIES}
    for found in by_family.values():
        draw.shuffle(found)
    return [by_family[FAMILIES[k % len(FAMILIES)]][k // len(FAMILIES)] for k in range(count)]


def grade_here(root: Path) -> Graded:
    """Grade the class in this process; only the kernels run in sandboxes."""
    course = open_course(root)
    enter(course, (LAB,), LAB)
    begun, executor = time.monotonic(), command._executor
    command._executor = lambda *_: Here()
    try:
        with judging():
            status, said = run(course, labs=(LAB,))
    finally:
        command._executor = executor
    return Graded(root, status, said, time.monotonic() - begun)


def grade_class(root: Path) -> Graded:
    """Grade the class with the commands that an instructor types, and generate the feedback."""
    make_course(root, COURSE / "phases")
    begun = time.monotonic()
    done = grade(root, "--workers", str(WORKERS), lab=LAB)
    seconds = time.monotonic() - begun
    said = done.stdout + done.stderr
    pages = nbgrader(root, "generate_feedback", LAB)
    said += pages.stderr * (pages.returncode != 0)
    return Graded(root, done.returncode, said, seconds)


def grade_on_cluster(root: Path) -> Graded:
    """Grade the class on a local Dask cluster."""
    make_course(root, COURSE / "phases")
    script = (
        "import sys; from distributed import LocalCluster\n"
        "if __name__ == '__main__':\n"
        "    options = dict(n_workers=2, threads_per_worker=1, dashboard_address=None)\n"
        "    with LocalCluster(**options) as made:\n"
        "        print(made.scheduler_address, flush=True); sys.stdin.read()\n"
    )
    (root / "cluster.py").write_text(script)
    command = [sys.executable, str(root / "cluster.py")]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=root, env=environment(root), **pipes) as cluster:
        begun = time.monotonic()
        address = cluster.stdout.readline().strip()
        done = grade(root, "--scheduler", address, lab=LAB)
        cluster.stdin.close()
    said = done.stdout + done.stderr
    return Graded(root, done.returncode, said, time.monotonic() - begun)


def compare(alone: Graded, mixed: Graded, hostile: dict[str, Attack]) -> None:
    """Assert that hostile learners change nothing for honest ones, and gain nothing themselves.

    Args:
        alone: the honest learners graded alone.
        mixed: the honest and hostile learners graded together.
        hostile: the attack of each hostile learner.
    """
    assert (alone.status, mixed.status) == (0, 0), mixed.said
    assert "Traceback" not in mixed.said, mixed.said
    before, after = rows(alone.root, LAB), rows(mixed.root, LAB)
    assert set(after) - set(before) == set(hostile)
    for number, student in enumerate(sorted(before)):
        assert marks(mixed.root, student, LAB) == (RIGHT if number % 3 else HALF)
        assert after[student] == before[student]
        told = mixed.told(student)
        assert told.splitlines() == alone.told(student).splitlines()
        assert re.findall(r"print\('word-of-(.*?)\.'\)", told.replace("&#39;", "'"))
        assert set(re.findall(r"word-of-([\w-]+)\.", told)) == {student}
        assert MARK not in told
    for student, attack in hostile.items():
        earned = marks(mixed.root, student, LAB)
        assert set(earned) == set(RIGHT)
        most = {name: max(attack.honest[name], attack.earns[name]) for name in RIGHT}
        too_much = {name: mark for name, mark in earned.items() if (mark or 0) > most[name]}
        assert not too_much, f"{attack}: {earned}"
        unread = {mark is None for mark in earned.values()}  # an unreadable notebook has no mark
        assert len(unread) == 1, f"{attack} has no verdict on something: {earned}"
        others = set(re.findall(r"word-of-([\w-]+)\.", mixed.told(student))) - {student}
        assert not others, f"{attack} shows the work of {others}"
    left = [f"{folder}/{name}" for folder in ("/tmp", "/dev/shm") for name in os.listdir(folder)]
    assert not [path for path in left if MARK in path]


def copy_of(root: Path, to: Path) -> Path:
    """Copy a course before it is graded."""
    shutil.copytree(root, to)
    return to


def own_limits(hostile: Sequence[Attack]) -> float:
    """Return the sum of the hostile learners' own time limits, in seconds of wall time."""
    return sum(attack.seconds for attack in hostile) / WORKERS


def figures(alone: Graded, mixed: Graded, hostile: Sequence[Attack]) -> str:
    """Return the times as JSON."""
    return json.dumps(
        {
            "honest alone": round(alone.seconds, 1),
            "with the hostile": round(mixed.seconds, 1),
            "allowed": round(1.5 * alone.seconds + own_limits(hostile), 1),
        }
    )
