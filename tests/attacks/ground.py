"""A small grading machine: a course with secrets, and the steps of grading.

A submission goes through the steps of ``nbgrader autograde`` and ``generate_feedback``: read,
rebuild, execute, sanitize, score, clean, export a page. All steps run in this process, with one
zygote for all submissions.
"""

from __future__ import annotations

import contextlib
import functools
import json
import logging
import os
import re
import secrets
import shutil
import socket
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
from nbformat.notebooknode import NotebookNode
from nbgrader.preprocessors import (
    ClearHiddenTests,
    ClearMarkScheme,
    ComputeChecksums,
    LimitOutput,
)
from nbgrader.utils import determine_grade, is_grade
from traitlets.config import Config

from hood.authoring.notebooks.notebook import to_notebook
from hood.authoring.notebooks.text import parse
from hood.classroom.feedback.exporter import FeedbackExporter
from hood.classroom.feedback.feedback import CleanFeedback
from hood.classroom.feedback.page import ABOUT, About
from hood.grader.cleaning.sanitize import Sanitize
from hood.grader.course import nbgrader_config
from hood.grader.execution import examiner, execute
from hood.grader.execution.execute import Execute
from hood.grader.execution.graded_cell import is_verified, read_verdicts
from hood.grader.sandbox import Limits
from hood.grader.sandbox.warm_process import warm
from hood.grader.submission.files import read_notebooks
from hood.grader.submission.rebuild import as_recorded, rebuild
from hood.judge.catalogue import find_check
from hood.phase_paths import ROOT
from hood.verdict import VERDICT_MIME, Verdict
from tests.attacks.submission import Host

COURSE = Path(__file__).parent / "course"
LAB = "98_attacked"
MARK = "hood-loot"  # part of the name of every file that an attack makes
SECRET = "GRADING_TOKEN"
LIMITS = {
    "memory_mb": 256,
    "tmp_mb": 32,
    "file_mb": 16,
    "output_kb": 512,
    "processes": 64,
    "total_seconds": 120,
}


def source_notebook() -> NotebookNode:
    """Return the instructor's version of the lab."""
    text = parse("lab.py", (COURSE / "phases" / LAB / "lab.py").read_text())
    nb = to_notebook(text)
    nb.metadata.open_the_hood.limits = LIMITS
    return nb


def released(source: NotebookNode, config: Config) -> NotebookNode:
    """Return the learner's version of the lab."""
    nb = as_recorded(source, config)
    for step in (ClearHiddenTests, ClearMarkScheme, ComputeChecksums):
        nb, _ = step(config=config).preprocess(nb, {})
    return nb


@dataclass(frozen=True)
class Outcome:
    """The result of grading one submission.

    Attributes:
        nb: the graded notebook.
        page: its feedback.
        scores: points for each exercise, as nbgrader reads them.
        notes: the notes about the notebook, one per line.
        seed: the seed of its cases.
        seconds: how long the grading took.
        memory: bytes of the grading process at its peak.
    """

    nb: NotebookNode
    page: str
    scores: dict[str, float]
    notes: str
    seed: str
    seconds: float
    memory: int

    @property
    def verdicts(self) -> dict[str, Verdict]:
        """Graded cell -> its verdict."""
        return read_verdicts(self.nb)

    @property
    def shown(self) -> str:
        """All outputs of the learner's code, as JSON, without the grader's outputs."""
        shown = []
        for cell in self.nb.cells:
            for output in cell.get("outputs", []):
                if is_verified(cell) and VERDICT_MIME in output.get("data", {}):
                    continue
                shown.append(output)
        return json.dumps(shown, ensure_ascii=False)

    @property
    def told(self) -> str:
        """Everything about the submission that a person can read."""
        verdicts = {name: verdict.to_json() for name, verdict in self.verdicts.items()}
        said = json.dumps(verdicts, ensure_ascii=False)
        return "\n".join([self.notes, said, self.shown])


class Ground:
    """A course with secrets, listening sockets, and a method that grades.

    Args:
        folder: an empty folder.
    """

    def __init__(self, folder: Path):
        self.course = folder / "course"
        self.config = nbgrader_config(ROOT)
        self.source = source_notebook()
        self.release = released(self.source, self.config)
        self.secrets = {
            "the grading process's environment": f"env-{secrets.token_hex(8)}",
            "the gradebook": f"gradebook-{secrets.token_hex(8)}",
            "another submission": f"other-{secrets.token_hex(8)}",
            "the source notebook": "canary-of-the-solutions",
            "the checks": "canary-of-the-checks",
            "the hidden test": "canary-of-the-hidden-test",
        }
        os.environ[SECRET] = self.secrets["the grading process's environment"]
        self._plant()
        self._listen()
        self.host = Host(
            self.course, self._tcp, self._udp, str(folder / "s"), f"hood-{os.getpid()}"
        )
        logging.getLogger("traitlets").setLevel(logging.CRITICAL)  # it quotes what attackers send

    def _plant(self) -> None:
        for cell in self.source.cells:
            if is_grade(cell):
                cell.source = cell.source.replace("verify(", "# canary-of-the-hidden-test\nverify(")
        shutil.copytree(COURSE, self.course)
        (self.course / "gradebook.db").write_text(self.secrets["the gradebook"])
        source = self.course / "source" / LAB / f"{LAB}.ipynb"
        source.parent.mkdir(parents=True)
        source.write_text(nbformat.writes(self.source))
        other = self.course / "submitted" / "other" / LAB / f"{LAB}.ipynb"
        other.parent.mkdir(parents=True)
        other.write_text(self.secrets["another submission"])

    def _listen(self) -> None:
        self._listeners = []
        for family, kind, address in (
            (socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0)),
            (socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0)),
            (socket.AF_UNIX, socket.SOCK_STREAM, str(self.course.parent / "s")),
            (socket.AF_UNIX, socket.SOCK_STREAM, f"\0hood-{os.getpid()}"),
        ):
            listener = socket.socket(family, kind)
            listener.bind(address)
            listener.setblocking(False)
            if kind == socket.SOCK_STREAM:
                listener.listen(8)
            self._listeners.append(listener)
        self._tcp, self._udp = (self._listeners[i].getsockname()[1] for i in (0, 1))

    def close(self) -> None:
        """Close the sockets and remove the secret from the environment."""
        for listener in self._listeners:
            listener.close()
        os.environ.pop(SECRET, None)

    def arrived(self) -> list[str]:
        """Return which of the machine's own sockets were reached since the last call."""
        came = []
        for listener in self._listeners:
            with contextlib.suppress(BlockingIOError):
                if listener.type == socket.SOCK_DGRAM:
                    came.append(f"UDP: {listener.recv(1000)!r}")
                else:
                    connection, _ = listener.accept()
                    connection.close()
                    came.append(f"{listener.family.name}: somebody connected")
        return came

    def grade(self, path: Path, cell_seconds: int = 2, with_page: bool = True) -> Outcome:
        """Grade a submission, from reading its file to writing its feedback.

        Args:
            cell_seconds: the lab's time limit for a cell.
            with_page: whether to write the feedback.
        """
        begun, before = time.monotonic(), _memory(reset=True)
        nb, scores = graded(path, self.source, self.config, cell_seconds)
        seed = nb.metadata.open_the_hood.seed
        page = page_of(nb, scores, self.config, str(self.course)) if with_page else ""
        said = "\n".join(note["message"] for note in nb.metadata.open_the_hood.notes)
        return Outcome(nb, page, scores, said, seed, time.monotonic() - begun, _memory() - before)

    def spilled(self, outcome: Outcome) -> list[str]:
        """Return which secrets leaked, and where."""
        loot = {"the seed": outcome.seed, **self.secrets}
        places = {"the outputs": outcome.shown, "the feedback": outcome.page}
        places["the network"] = "\n".join(self.arrived())
        return [
            f"{name} in {place}"
            for place, text in places.items()
            for name, secret in loot.items()
            if secret in text
        ] + ([places["the network"]] if places["the network"] else [])


def graded(
    path: Path, source: NotebookNode, config: Config, cell_seconds: int = 2
) -> tuple[NotebookNode, dict[str, float]]:
    """Return a submission's notebook with its outputs, and its points by graded cell.

    Args:
        path: the file that was handed in.
        source: the instructor's version of the lab.
    """
    submitted, note = read_notebooks(path.parent, [path.name])[path.name]
    nb = rebuild(submitted, source, config, [note] if note else []).nb
    nb.metadata.open_the_hood.seed = secrets.token_hex(16)
    nb.metadata.open_the_hood.cell_seconds = cell_seconds
    with judging():
        nb, _ = Execute(config=config).preprocess(nb, {"metadata": {"path": str(path.parent)}})
    for step in (LimitOutput, Sanitize):
        nb, _ = step(config=config).preprocess(nb, {})
    nbformat.validate(nb)  # as nbgrader does before it writes
    nb = nbformat.reads(nbformat.writes(nb), as_version=4)
    cells = [cell for cell in nb.cells if is_grade(cell)]
    return nb, {c.metadata.nbgrader.grade_id: float(determine_grade(c)[0]) for c in cells}


def page_of(nb: NotebookNode, scores: dict[str, float], config: Config, root: str = "") -> str:
    """Return the feedback that nbgrader writes."""
    nb = nbformat.from_dict(nb)
    most = 0.0
    for cell in nb.cells:
        if is_grade(cell):
            cell.metadata.nbgrader.score = scores[cell.metadata.nbgrader.grade_id]
            most += cell.metadata.nbgrader.points
    about = About("mallory", LAB, sum(scores.values()), most)
    nb = nbformat.reads(nbformat.writes(nb), as_version=4)
    nb, resources = CleanFeedback(config=config).preprocess(
        nb, {"nbgrader": {ABOUT: about, "root": root}}
    )
    page, _ = FeedbackExporter(config=config).from_notebook_node(nb, resources)
    return page


@dataclass(frozen=True)
class QuickLimits(Limits):
    """Limits with a short time between interrupt and kill."""

    grace: int = 1


@contextlib.contextmanager
def judging() -> Any:
    """Use the checks of the lab under attack, and :class:`QuickLimits`."""
    before = examiner.find_check, execute.Limits
    examiner.find_check = functools.partial(find_check, root=COURSE)
    execute.Limits = QuickLimits
    try:
        yield
    finally:
        examiner.find_check, execute.Limits = before


def left_behind() -> list[str]:
    """Return sandbox processes that still run, and files that attacks wrote elsewhere."""
    zygote = warm()
    left = [f"process {pid}" for pid in _children(zygote.process.pid)]
    known = {"home", "inductor", "no-driver", "stage", "zygote.log"}
    left += [path.name for path in zygote.folder.iterdir() if path.name not in known]
    for folder in ("/tmp", "/dev/shm", "/var/tmp", os.path.expanduser("~"), os.getcwd()):
        left += [f"{folder}/{entry}" for entry in os.listdir(folder) if MARK in entry]
    return left


def _children(parent: int) -> list[int]:
    pids = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return [int(pid) for pid in pids]


def _memory(reset: bool = False) -> int:
    """Return the peak of this process's memory in bytes; if asked to, start a new measurement."""
    if reset:
        Path("/proc/self/clear_refs").write_text("5")
    [peak] = re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(peak) * 1024
