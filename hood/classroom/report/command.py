"""``python -m hood report LAB``: write the class report of a graded lab, as a page and CSV."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from rich.console import Console
from rich.progress import track

from hood.atomic_files import write_whole
from hood.classroom.formats.spreadsheet import write_table
from hood.classroom.gradebook.graded import Graded, Results
from hood.classroom.gradebook.pseudonyms import LearnerNames, pseudonyms
from hood.classroom.report.alike import Alike, stubs_of
from hood.classroom.report.counts import ClassCounts
from hood.classroom.report.page import Links, render
from hood.classroom.report.sheets import exercise_rows, learner_rows
from hood.classroom.report.tally import Tally
from hood.classroom.results.counted_marks import CountedMarks
from hood.classroom.rules.class_list import passed_over_sentence
from hood.classroom.rules.reading import read_course_file
from hood.grader.course import open_course
from hood.grader.outline import read_outline
from hood.phase_paths import ROOT, lab_named

PAGE, LEARNERS, EXERCISES = "index.html", "learners.csv", "exercises.csv"
COUNTS = "counts.csv"  # if the course has a course.yml that names the lab


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``python -m hood report``."""
    parser.add_argument("lab", help="a graded lab, such as 02_autograd, 02 or autograd")
    parser.add_argument(
        "--out", type=Path, help="the folder for the report (default: reports/LAB/)"
    )
    parser.add_argument(
        "--hide-names",
        action="store_true",
        help="write pseudonyms instead of names, and leave out student ids and links to learners' "
        "work",
    )


def run(args: argparse.Namespace, root: Path = ROOT, console: Console | None = None) -> int:
    """Write the report. Return 1 if some submissions have no scores yet, otherwise 0.

    Raises:
        UserError: when the lab has not been graded.
    """
    console = console or Console()
    lab = lab_named(root, args.lab)
    course = open_course(root)
    results = Results(course, lab)
    out = (args.out or root / "reports" / lab).resolve()
    who = pseudonyms(root) if args.hide_names else LearnerNames()
    not_entered = len(results.not_entered)
    file = read_course_file(root)
    ruled = file is not None and lab in file.labs
    counts = ClassCounts(CountedMarks(course, file), lab, who) if file and ruled else None
    outline = read_outline(root, lab, results.notebooks)
    tally = Tally(results.cells, outline, who, not_entered)
    alike = Alike(stubs_of(results), outline.titles, who)

    def counted() -> Iterator[Graded]:
        submissions, total = results.read(order=who.order), len(results.students)
        for one in track(submissions, f"{lab}: reading", total, console=console, transient=True):
            tally.add(one)
            alike.add(one)
            if counts:
                counts.add(one)
            yield one

    cells = [exercise.cell for exercise in tally.exercises]
    write_table(out / LEARNERS, learner_rows(counted(), cells, who))
    write_table(out / EXERCISES, exercise_rows(tally))
    if counts:
        write_table(out / COUNTS, counts.table())
    links = Links(course, out, lab, results.notebooks)
    write_whole(out / PAGE, render(tally, links, datetime.now(), alike, counts).encode())
    written = [out / name for name in (LEARNERS, EXERCISES, PAGE, *([COUNTS] if counts else []))]
    course.share(*written, *([out.parent, out] if args.out is None else []))
    every = tally.submissions + not_entered
    marked = f"{tally.graded} of {every} submissions have all their automatic marks"
    if tally.unread:
        marked += (
            f"; {tally.unread} {_has(tally.unread)} no mark because a notebook could not be read"
        )
    if not_entered:
        marked += (
            f"; {not_entered} {_has(not_entered)} no row in the gradebook: "
            f"`python -m hood grade {shlex.quote(lab)}` grades the submissions on disk"
        )
    console.print(f"{lab}: {marked}.", soft_wrap=True)
    if passed_over := passed_over_sentence(results.passed_over):
        console.print(passed_over, markup=False, highlight=False, soft_wrap=True)
    for name, what in (
        (PAGE, "the page"),
        (LEARNERS, "each learner's exercises"),
        (EXERCISES, "each exercise"),
        *([(COUNTS, "each learner's points that count")] if counts else []),
    ):
        console.print(f"  {out / name}   {what}", markup=False, soft_wrap=True, highlight=False)
    return 0 if tally.graded + tally.unread == every else 1


def _has(count: int) -> str:
    return "has" if count == 1 else "have"
