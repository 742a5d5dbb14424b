"""``python -m grader check LAB``: grade one notebook and print a table of the results.

The notebook is rebuilt and run as ``nbgrader autograde`` does it, but with the rights of the
current user and without a sandbox. Use it only for notebooks that you would run yourself. Nothing
is recorded.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbformat.notebooknode import NotebookNode
from nbgrader.utils import is_grade, is_task
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table

from grader import UserError
from grader.course import nbgrader_config
from grader.judging.graded_cell import read_verdicts
from grader.metadata import KEY
from grader.phase_paths import ROOT, choose, opened
from grader.preprocessors.execute import Execute
from grader.results.class_report.outline import Outline, read_outline
from grader.run_record import typed_seed
from grader.submission.notebook import MAX_BYTES, SubmittedCell, Unreadable, read_submission
from grader.submission.rebuild import is_owned, rebuild
from grader.verdict import FULL, Status, Verdict


@dataclass(frozen=True)
class ExerciseRow:
    """One row of the table: an exercise, its points, the problems, and where to read.

    Attributes:
        exercise: the name of the graded cell.
        status: the verdict's status; None when a person marks the exercise.
        earned: points earned; None when a person marks the exercise.
        problems: what went wrong, one sentence each.
        reads: lesson and section to read again; empty when all points were earned.
    """

    exercise: str
    status: Status | None
    earned: float | None
    points: float
    problems: tuple[str, ...] = ()
    reads: str = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``python -m grader check``."""
    words = "a lab, such as 01_tensors or 01, for the notebook in work/; or a notebook's path"
    parser.add_argument("notebook", help=words)
    parser.add_argument("--seed", type=typed_seed, help="the same seed gives the same cases")


def run(args: argparse.Namespace, root: Path = ROOT, console: Console | None = None) -> int:
    """Grade the notebook and print the table.

    Returns:
        1 when the notebook had to be repaired before grading, otherwise 0.

    Raises:
        UserError: when the file is not a notebook, or not one of the course's labs.
    """
    console = console or Console()
    notebook = _find(args.notebook, root)
    data = _read(notebook)
    try:
        lab, source_nb = find_lab(read_submission(data), root)
    except Unreadable as reason:
        raise UserError(f"{notebook}: {reason}") from None
    config = nbgrader_config(root)
    rebuilt = rebuild(data, source_nb, config)
    if args.seed:
        rebuilt.nb.metadata[KEY].seed = args.seed
    outline = read_outline(root, lab, (lab,))
    with _Bar(console, outline, rebuilt.nb) as bar:
        nb, _ = Execute(
            config=config, unsafe_no_sandbox=True, on_cell_start=bar.begin_cell
        ).preprocess(rebuilt.nb, {"metadata": {"path": str(notebook.resolve().parent)}})
    for note in rebuilt.notes:
        console.print(f"[yellow]note[/yellow] {escape(note.message)}")
    console.print(_table(outline, rows(nb)))
    seed = nb.metadata[KEY].seed
    console.print(f"seed {seed}: pass it as `--seed` to get the same cases again", style="dim")
    return 1 if rebuilt.notes else 0


class _Bar(Progress):
    """A progress bar over the cells of a notebook, with the title of the exercise that runs."""

    def __init__(self, console: Console, outline: Outline, nb: NotebookNode):
        text = TextColumn("{task.description}")
        columns = BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), text
        super().__init__(*columns, console=console, transient=True)
        self._nb, self._titles = nb, outline.titles
        self._graded = sum(map(is_grade, nb.cells))
        self._shown = self.add_task("starting Python", total=self._graded)

    def begin_cell(self, cell: NotebookNode, cell_index: int) -> None:
        """Show which exercise begins: cells belong to the next graded one. nbclient calls this."""
        ahead = [one for one in self._nb.cells[cell_index:] if is_grade(one)]
        if ahead:
            name = ahead[0].metadata.nbgrader.grade_id
            title = escape(self._titles.get(name) or name)
            self.update(self._shown, completed=self._graded - len(ahead), description=title)


def _find(word: str | Path, root: Path) -> Path:
    """Return the notebook that a word names: a file, or a lab's copy in work/, or in release/."""
    path = Path(word)
    if path.exists() or path.suffix:
        return path
    phase = choose(root, [str(word)])[0]
    return opened(phase.release, root)


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except OSError as error:
        raise UserError(f"{path} could not be opened: {error.strerror}") from None


def find_lab(cells: list[SubmittedCell], root: Path) -> tuple[str, NotebookNode]:
    """Find the lab that a notebook belongs to, by the ids of its cells. The file name is not used.

    Returns:
        The name of the lab that shares the most cells, and its source notebook.

    Raises:
        UserError: when no cell of the notebook belongs to a lab.
    """
    claimed = {cell.grade_id for cell in cells}
    best: tuple[int, str, NotebookNode] | None = None
    for path in sorted(root.glob("source/*/*.ipynb")):
        source_nb = nbformat.read(path, as_version=4)
        owned = {cell.metadata.nbgrader.grade_id for cell in source_nb.cells if is_owned(cell)}
        found = len(owned & claimed)
        if found and (best is None or found > best[0]):
            best = found, path.stem, source_nb
    if best is None:
        raise UserError(
            "this notebook is not one of the course's labs: none of its cells belongs to one. "
            "`make lab` puts the labs into work/"
        )
    return best[1], best[2]


def rows(nb: NotebookNode) -> list[ExerciseRow]:
    """Return one row for each graded cell of a graded notebook, in order."""
    verdicts = read_verdicts(nb)
    found = []
    for cell in nb.cells:
        if not (is_grade(cell) or is_task(cell)):
            continue
        name, points = cell.metadata.nbgrader.grade_id, float(cell.metadata.nbgrader.points)
        verdict = verdicts.get(name)
        if verdict is None:
            found.append(ExerciseRow(name, None, None, points, ("marked by a person",)))
            continue
        again = verdict.reads and verdict.status not in FULL
        reads = f"lesson {verdict.lesson}, “{verdict.reads}”" if again else ""
        said = problems(verdict)
        found.append(ExerciseRow(name, verdict.status, verdict.earned, verdict.most, said, reads))
    return found


def problems(verdict: Verdict) -> tuple[str, ...]:
    """Return what a verdict says went wrong, one sentence each."""
    if verdict.status is Status.RIGHT:
        return ()
    if verdict.status in (Status.NOT_ATTEMPTED, Status.NOT_RUN):
        return (verdict.problem or "not attempted yet",)
    explained = [f"{name}: {text}" for name, text in verdict.explanations.items()]
    others: dict[str, list[str]] = {}
    for part in verdict.parts:
        if part.problem and not part.misconception:
            missing = " (not run)" if part.status is Status.NOT_RUN else ""
            said = "\n".join(filter(None, (part.problem, part.hint)))
            others.setdefault(said, []).append(part.name + missing)
    shown = [part.example.lines() for part in verdict.parts if part.example]
    return (
        *explained,
        *(f"{', '.join(names)}: {said}" for said, names in others.items()),
        *("for example:\n" + "\n".join(example) for example in shown),
    )


def _table(outline: Outline, found: list[ExerciseRow]) -> Table:
    graded = [row for row in found if row.earned is not None]
    earned = sum(row.earned for row in found if row.earned is not None)
    points = sum(row.points for row in graded)
    untouched = sum(row.status is Status.NOT_ATTEMPTED for row in found)
    table = Table(title=outline.title, box=box.SIMPLE_HEAD, title_justify="left", show_footer=True)
    table.add_column("exercise", f"{untouched} not attempted" if untouched else "", ratio=3)
    manual = sum(row.points for row in found if row.earned is None)
    more = f"\nand {manual:g} by a person" if manual else ""
    table.add_column("points", f"{earned:g} of {points:g}{more}", justify="right", no_wrap=True)
    table.add_column("what went wrong", overflow="fold", ratio=4)
    table.add_column("where to read", overflow="fold", ratio=2)
    for row in found:
        colour = _colour(row)
        title = escape(outline.titles.get(row.exercise) or row.exercise)
        value = "–" if row.earned is None else f"{row.earned:g}"
        table.add_row(
            f"[{colour}]{title}[/{colour}]\n[dim]{escape(row.exercise)}[/dim]",
            f"{value} of {row.points:g}",
            escape("\n".join(row.problems)),
            escape(row.reads),
        )
    return table


def _colour(row: ExerciseRow) -> str:
    if row.earned is None:
        return "default"
    if row.status is Status.NOT_ATTEMPTED:
        return "bright_black"
    return "green" if row.earned == row.points else "yellow" if row.earned else "red"
