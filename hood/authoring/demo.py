"""``python -m hood demo``: run a generated sample class from release to feedback and report.

Every score is compared with the predicted score. Only students with an id that starts with
``sample-`` are created, replaced and removed, so a real class in the same folder does not change.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from nbgrader.api import Gradebook, MissingEntry
from rich.console import Console

from hood import UserError
from hood.atomic_files import write_whole
from hood.authoring.class_summary import print_summary
from hood.authoring.proof.sample_class import PREFIX, Learner, load_lab, make_class
from hood.classroom.gradebook.graded import Graded, read_class
from hood.classroom.report import command as class_report
from hood.grader.course import nbgrader, open_course, run_module
from hood.phase_paths import lab_named, phases

# The default lab shows the most features in the shortest time.
SHOWPIECE = "01_tensors"
ALL = "all"
STEPS = ("submitted", "autograded", "feedback")
# nbgrader's process writes one feedback page at a time, so two processes are faster on two cores.
# If there is only one lab, each process takes half of the class.
AT_ONCE = 2
EVERYBODY = (f"--student={PREFIX}*",)
HALVES = (f"--student={PREFIX}[a-i]*", f"--student={PREFIX}[!a-i]*")
# Some sample learners write endless loops. Six seconds per cell are enough to show the time limit;
# the labs' own limits would make the demo wait for minutes.
CELL_SECONDS = 6


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "lab",
        nargs="*",
        help=f"the labs, such as 01_tensors or 01, or `{ALL}` (default: {SHOWPIECE})",
    )
    parser.add_argument("--remove", action="store_true", help="remove the sample class")


def run(args: argparse.Namespace, root: Path, console: Console | None = None) -> int:
    """Grade the sample class of each lab; return 1 when a score differs from the prediction."""
    console = console or Console()
    labs = _choose(args.lab or ([ALL] if args.remove else [SHOWPIECE]), root)
    for lab in labs:
        _remove(root, lab)
    if args.remove:
        console.print(
            "The sample class was removed. Other students' work was not touched. The lab's reports "
            "and tables still contain the sample class: `python -m hood report` makes them again."
        )
        return 0
    classes = {lab: make_class(load_lab(root, lab)) for lab in labs}
    _grade(root, classes, console)
    parts = HALVES if len(labs) == 1 else EVERYBODY
    with console.status("Writing feedback"), ThreadPoolExecutor(AT_ONCE) as pool:
        feedback = partial(nbgrader, root, "generate_feedback")
        for done in [pool.submit(feedback, lab, "--force", part) for lab in labs for part in parts]:
            done.result()
    surprises = [line for lab in labs for line in _show(root, lab, classes[lab], console)]
    nbgrader(root, "export")
    if surprises:
        console.print(f"\n[bold red]{len(surprises)} scores differ from the prediction:[/bold red]")
        for line in surprises:
            console.print(f"  {line}", markup=False)
    console.print("\n[bold]Where to look next[/bold]")
    console.print(f"  reports/{labs[-1]}/index.html   the class report")
    console.print(f"  feedback/{PREFIX}*/{labs[-1]}/   a page for each learner", markup=False)
    console.print("  grades.csv   the marks, as nbgrader exports them")
    console.print("  make teach   then Nbgrader > Formgrader: every submission, and marks by hand")
    console.print("  python -m hood demo --remove   removes the sample class")
    return 1 if surprises else 0


def _choose(words: list[str], root: Path) -> list[str]:
    labs = [phase.name for phase in phases(root) if phase.lab.exists()]
    if words == [ALL]:
        return labs
    chosen = [lab_named(root, word) for word in words]
    for lab in chosen:
        if lab not in labs:
            raise UserError(f"no lab is called {lab!r}; there are {', '.join(labs)}, or `{ALL}`")
    return chosen


def _grade(root: Path, classes: Mapping[str, Sequence[Learner]], console: Console) -> None:
    started = time.monotonic()
    course = open_course(root)
    with Gradebook(course.directory.db_url) as gradebook:
        for lab, learners in classes.items():
            for learner in learners:
                path = course.folder("submitted", learner.id, lab) / learner.filename
                write_whole(path, learner.data)
                first, _, last = learner.name.partition(" ")
                gradebook.update_or_create_student(learner.id, first_name=first, last_name=last)
    which = ("--students", f"{PREFIX}*", "--cell-seconds", str(CELL_SECONDS))
    run_module(root, "hood", "grade", *classes, *which, shown=console.is_terminal)
    count, took = sum(map(len, classes.values())), time.monotonic() - started
    console.print(f"{count} submissions graded in {took:.0f} s.")


def _show(root: Path, lab: str, learners: Sequence[Learner], console: Console) -> list[str]:
    """Write a lab's report, print its summary, and return `score_surprises`."""
    with console.status(f"{lab}: writing the report"):
        # Ignore the exit status: it says only whether other students of the course lack marks.
        words = argparse.Namespace(lab=lab, out=None, hide_names=False)
        class_report.run(words, root, Console(quiet=True))
    stories = {learner.id: learner.story for learner in learners}
    graded = read_class(open_course(root), lab, only=stories)
    print_summary(console, f"{lab}: {len(graded)} learners", graded, stories)
    surprises = score_surprises(learners, graded)
    count = sum(len(learner.predicted) for learner in learners)
    if not surprises:
        console.print(f"[green]All {count} scores agree with the predictions.[/green]")
    return surprises


def _remove(root: Path, lab: str) -> None:
    """Remove an earlier run's files and submissions, and its students with no other submission."""
    course = open_course(root)
    for step in STEPS:
        for student in course.students(step, lab):
            if student.startswith(PREFIX):
                folder = course.folder(step, student, lab)
                shutil.rmtree(folder)
                if not any(folder.parent.iterdir()):
                    folder.parent.rmdir()
    if course.database is not None and not course.database.exists():
        return
    with Gradebook(course.directory.db_url) as gradebook:
        for student in [s.id for s in gradebook.students if s.id.startswith(PREFIX)]:
            with contextlib.suppress(MissingEntry):
                gradebook.remove_submission(lab, student)
            if not gradebook.student_submissions(student):
                gradebook.remove_student(student)


def score_surprises(learners: Sequence[Learner], graded: Sequence[Graded]) -> list[str]:
    """Return one line for each score that differs from the prediction."""
    scores = {one.student: one.scores for one in graded}
    return [
        f"{learner.name} ({learner.story}): {name} earned {earned}, predicted {points}"
        for learner in learners
        for name, points in learner.predicted.items()
        if (earned := scores.get(learner.id, {}).get(name)) != points
    ]
