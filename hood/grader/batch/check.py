"""``python -m hood check LAB``: grade one notebook, and print a table and what went wrong.

It is rebuilt and run as in grading, but without a sandbox, with the rights of the current user: use
it only for notebooks that you would run yourself. Nothing is recorded.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbformat.notebooknode import NotebookNode
from nbgrader.utils import is_grade, is_task
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from hood import UserError
from hood.grader.course import nbgrader_config
from hood.grader.execution.execute import Execute
from hood.grader.execution.graded_cell import read_verdicts
from hood.grader.outline import Outline, read_outline
from hood.grader.run_record import typed_seed
from hood.grader.submission.notebook import MAX_BYTES, SubmittedCell, Unreadable, read_submission
from hood.grader.submission.notes import Note
from hood.grader.submission.rebuild import is_owned, rebuild
from hood.judge.report import VerdictReport
from hood.metadata import KEY
from hood.phase_paths import choose, opened
from hood.verdict import Status, Verdict


def add_arguments(parser: argparse.ArgumentParser) -> None:
    words = "a lab, such as 01_tensors or 01, for the notebook in work/; or a notebook's path"
    parser.add_argument("notebook", help=words)
    parser.add_argument("--seed", type=typed_seed, help="the same seed gives the same cases")


def run(args: argparse.Namespace, root: Path, console: Console | None = None) -> int:
    """Grade the notebook and print the table; return 1 when it had to be repaired before grading.

    Raises UserError when the file is not a notebook, or not one of the course's labs.
    """
    console = console or Console()
    with console.status("running the notebook"):
        graded = graded_here(_find(args.notebook, root), root, args.seed)
    nb, outline = graded.nb, read_outline(root, graded.lab, (graded.lab,))
    for note in graded.notes:
        console.print(f"[yellow]note[/yellow] {escape(note.message)}")
    found = read_verdicts(nb)
    console.print(_table(outline, nb, found))
    for verdict in found.values():
        if verdict.status not in (Status.RIGHT, Status.NOT_ATTEMPTED):
            report = f"{VerdictReport(verdict, verdict.lesson)}\n"
            console.print(report, markup=False, highlight=False, soft_wrap=True)
    seed = nb.metadata[KEY].seed
    console.print(f"seed {seed}: pass it as `--seed` to get the same cases again", style="dim")
    return 1 if graded.notes else 0


@dataclass(frozen=True)
class GradedHere:
    """A graded notebook, the lab that it belongs to, and what was repaired."""

    nb: NotebookNode
    lab: str
    notes: list[Note]


def graded_here(notebook: Path, root: Path, seed: str = "") -> GradedHere:
    """Rebuild and grade a notebook in an ordinary kernel of the current user.

    ``seed`` draws the cases; a fresh one if it is empty. Raises UserError as :func:`run`.
    """
    try:
        with notebook.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
        lab, source_nb = find_lab(read_submission(data), root)
    except OSError as error:
        raise UserError(f"{notebook} could not be opened: {error.strerror}") from None
    except Unreadable as reason:
        raise UserError(f"{notebook}: {reason}") from None
    config = nbgrader_config(root)
    rebuilt = rebuild(data, source_nb, config)
    if seed:
        rebuilt.nb.metadata[KEY].seed = seed
    resources = {"metadata": {"path": str(notebook.resolve().parent)}}
    nb, _ = Execute(config=config, unsafe_no_sandbox=True).preprocess(rebuilt.nb, resources)
    return GradedHere(nb, lab, rebuilt.notes)


def _find(word: str | Path, root: Path) -> Path:
    """Return the notebook that a word names: a file, or a lab's copy in work/, or in release/."""
    path = Path(word)
    if path.exists() or path.suffix:
        return path
    return opened(choose(root, [str(word)])[0].release, root)


def find_lab(cells: list[SubmittedCell], root: Path) -> tuple[str, NotebookNode]:
    """Return the lab that shares the most cells with a notebook, by their ids, and its source.

    Raises UserError when no cell of the notebook belongs to a lab.
    """
    claimed = {cell.grade_id for cell in cells}
    found: list[tuple[int, str, NotebookNode]] = []
    for path in sorted(root.glob("source/*/*.ipynb")):
        source_nb = nbformat.read(path, as_version=4)
        owned = {cell.metadata.nbgrader.grade_id for cell in source_nb.cells if is_owned(cell)}
        found.append((len(owned & claimed), path.stem, source_nb))
    shared, name, source_nb = max(found, key=lambda lab: lab[0], default=(0, "", NotebookNode()))
    if not shared:
        raise UserError(
            "this notebook is not one of the course's labs: none of its cells belongs to one. "
            "`make lab` puts the labs into work/"
        )
    return name, source_nb


def _table(outline: Outline, nb: NotebookNode, found: Mapping[str, Verdict]) -> Table:
    cells = [cell for cell in nb.cells if is_grade(cell) or is_task(cell)]
    untouched = sum(v.status is Status.NOT_ATTEMPTED for v in found.values())
    earned, most = sum(v.earned for v in found.values()), sum(v.most for v in found.values())
    by_hand = [cell for cell in cells if cell.metadata.nbgrader.grade_id not in found]
    manual = sum(float(cell.metadata.nbgrader.points) for cell in by_hand)
    more = f"\nand {manual:g} by a person" if manual else ""
    table = Table(title=outline.title, box=box.SIMPLE_HEAD, title_justify="left", show_footer=True)
    table.add_column("exercise", f"{untouched} not attempted" if untouched else "")
    table.add_column("points", f"{earned:g} of {most:g}{more}", justify="right", no_wrap=True)
    for cell in cells:
        name, points = cell.metadata.nbgrader.grade_id, float(cell.metadata.nbgrader.points)
        share = "marked by a person, –"
        if verdict := found.get(name):
            points, share = verdict.most, f"{verdict.earned:g}"
        title = escape(outline.titles.get(name) or name)
        table.add_row(f"{title} [dim]{escape(name)}[/dim]", f"{share} of {points:g}")
    return table
