"""``python -m grader demo``: a sample class, from release to feedback, through nbgrader itself.

Made-up learners hand in their notebooks, ``nbgrader autograde``, ``generate_feedback`` and
``export`` run as they would for a real class, and every score is compared with the one that was
predicted. Only students whose id starts with ``sample-`` are made, replaced or removed: a real
class in the same course folder is left alone.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from nbgrader.api import Gradebook, MissingEntry
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from grader import UserError
from grader.layout import ROOT, phases
from grader.sample_class import PREFIX, Learner, load_lab, make_class
from grader.summary import Graded, print_summary, read_class

FOLDERS = ("submitted", "autograded", "feedback")
# Two nbgrader processes, each with half of the class, use two processor cores.
HALVES = (f"--student={PREFIX}[a-i]*", f"--student={PREFIX}[!a-i]*")
# Endless loops are in the class on purpose; nobody should wait a lab's whole minute for them.
CELL_SECONDS = 6


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``python -m grader demo``."""
    parser.add_argument("lab", nargs="*", help="labs, by folder name (all by default)")
    parser.add_argument("--remove", action="store_true", help="take the sample class away again")


def run(args: argparse.Namespace, root: Path = ROOT, console: Console | None = None) -> int:
    """Grade the sample class of each lab; 1 when a score is not the predicted one."""
    console = console or Console()
    labs = [phase.name for phase in phases(root) if phase.lab.exists()]
    unknown = sorted(set(args.lab) - set(labs))
    if unknown:
        raise UserError(f"no lab is called {unknown[0]!r}; there are {', '.join(labs)}")
    labs = args.lab or labs
    for lab in labs:
        remove_class(root, lab)
    if args.remove:
        console.print("The sample class is gone. Other students' work was left as it was.")
        return 0
    surprises = [line for lab in labs for line in grade_class(root, lab, console)]
    nbgrader(root, "export")
    _closing(console, labs, surprises)
    return 1 if surprises else 0


def grade_class(root: Path, lab: str, console: Console) -> list[str]:
    """Hand in, grade, give feedback, print; returns a line for each score that surprised."""
    started = time.monotonic()
    learners = make_class(load_lab(root, lab))
    with console.status(f"{lab}: telling the gradebook about the lab"):
        enter_lab(root, lab)
    hand_in(root, lab, learners)
    with _progress(console) as progress:
        task = progress.add_task(f"{lab}: grading", total=len(learners))

        def advance(line: str) -> None:
            if "Autograding" in line:
                progress.advance(task)

        limit = f"--Execute.max_cell_seconds={CELL_SECONDS}"
        in_halves(root, "autograde", lab, limit, at_line=advance)
    with console.status(f"{lab}: writing feedback"):
        in_halves(root, "generate_feedback", lab, "--force")
    graded = read_class(root, lab, PREFIX)
    seconds = time.monotonic() - started
    title = f"{lab}: {len(graded)} learners, graded in {seconds:.0f} s"
    print_summary(console, title, graded, {learner.id: learner.story for learner in learners})
    surprises = compare(learners, graded)
    count = sum(len(learner.predicted) for learner in learners)
    if not surprises:
        console.print(f"[green]All {count} scores are the predicted ones.[/green]")
    return surprises


def enter_lab(root: Path, lab: str) -> None:
    """Let nbgrader record the lab. The release it writes is thrown away: the built one stays."""
    with tempfile.TemporaryDirectory() as folder:
        release = f"--CourseDirectory.release_directory={folder}"
        nbgrader(root, "generate_assignment", lab, "--force", release)


def hand_in(root: Path, lab: str, learners: Sequence[Learner]) -> None:
    """Write each learner's submission and enter their name."""
    with Gradebook(_database(root)) as gradebook:
        for learner in learners:
            path = root / "submitted" / learner.id / lab / learner.filename
            path.parent.mkdir(parents=True)
            path.write_bytes(learner.data)
            first, _, last = learner.name.partition(" ")
            gradebook.update_or_create_student(learner.id, first_name=first, last_name=last)


def remove_class(root: Path, lab: str) -> None:
    """Take away what an earlier run left of this lab: files, submissions, students without any."""
    for kind in FOLDERS:
        for folder in (root / kind).glob(f"{PREFIX}*/{lab}"):
            shutil.rmtree(folder)
            if not any(folder.parent.iterdir()):
                folder.parent.rmdir()
    if not (root / "gradebook.db").exists():
        return
    with Gradebook(_database(root)) as gradebook:
        for student in [s.id for s in gradebook.students if s.id.startswith(PREFIX)]:
            with contextlib.suppress(MissingEntry):
                gradebook.remove_submission(lab, student)
            if not gradebook.student_submissions(student):
                gradebook.remove_student(student)


def compare(learners: Sequence[Learner], graded: Sequence[Graded]) -> list[str]:
    """A line for each score that is not the predicted one."""
    scores = {one.student: one.scores for one in graded}
    return [
        f"{learner.name} ({learner.story}): {name} earned {earned}, predicted {points:g}"
        for learner in learners
        for name, points in learner.predicted.items()
        if (earned := scores.get(learner.id, {}).get(name)) != points
    ]


def in_halves(root: Path, *words: str, at_line: Callable[[str], object] | None = None) -> None:
    """Run an nbgrader command for both halves of the class at the same time."""
    with ThreadPoolExecutor(len(HALVES)) as pool:
        runs = [pool.submit(nbgrader, root, *words, half, at_line=at_line) for half in HALVES]
        for run_of_half in runs:
            run_of_half.result()


def nbgrader(root: Path, *words: str, at_line: Callable[[str], object] | None = None) -> None:
    """Run an nbgrader command in the course's folder.

    Raises:
        UserError: with the end of its log, when it fails.
    """
    path = os.pathsep.join(filter(None, [str(root), os.environ.get("PYTHONPATH")]))
    process = subprocess.Popen(
        [sys.executable, "-m", "nbgrader", *words],
        cwd=root,
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    said = []
    for line in process.stdout:
        said.append(line)
        if at_line is not None:
            at_line(line)
    if process.wait():
        raise UserError(f"nbgrader {words[0]} failed:\n{''.join(said[-20:])}")


def _closing(console: Console, labs: list[str], surprises: list[str]) -> None:
    if surprises:
        console.print(f"\n[bold red]{len(surprises)} scores are not the predicted ones:[/bold red]")
        for line in surprises:
            console.print(f"  {line}", markup=False)
    console.print("\n[bold]Where to look next[/bold]")
    console.print(f"  feedback/{PREFIX}*/{labs[-1]}/   a page for each learner", markup=False)
    console.print("  grades.csv   the marks, as nbgrader exports them")
    console.print("  make lab   then Nbgrader > Formgrader: every submission, and marks by hand")
    console.print("  python -m grader demo --remove   takes the sample class away")


def _progress(console: Console) -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    return Progress(*columns, TimeElapsedColumn(), console=console, transient=True)


def _database(root: Path) -> str:
    return f"sqlite:///{root / 'gradebook.db'}"
