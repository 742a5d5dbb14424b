"""``python -m hood check LAB``: run a lab's whole notebook, and print its verdicts.

All cells run from top to bottom in a fresh kernel, with the rights of the current user. The
notebook's file does not change. The verdicts come from ``check(...)`` in the graded cells.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import nbformat
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import DeadKernelError
from nbformat import NotebookNode

from hood import UserError
from hood.learner.lab_file import UNREADABLE, Exercise, cells_of, exercises, groups, verdicts
from hood.phase_paths import choose, environment_with, opened, phases
from hood.verdict import FULL, VERDICT_MIME, Status

WORDS = 40  # columns of an exercise's title
CELL_SECONDS = 300  # seconds for a cell in `python -m hood check`; after that, the next cell runs


def add_arguments(parser: argparse.ArgumentParser) -> None:
    words = (
        "a lab, such as 01_tensors or 01 (its notebook in work/ runs), or the path of a notebook"
    )
    parser.add_argument("notebook", help=words)


def run(args: argparse.Namespace, root: Path) -> int:
    """Run the notebook, and print a table and each verdict without full points.

    Return the exit status: 1 when a graded cell of the lab is missing or gave no verdict. Raises
    UserError when the file is not a notebook, or not one of the course's labs.
    """
    path = _find(args.notebook, root)
    lab = _lab_of(path, root)
    notebook = run_notebook(path, root)
    found = {exercise.name: exercise for exercise in exercises(notebook.cells)}
    missing = []
    for released in lab:
        exercise = found.get(released.name)
        if exercise is None or (exercise.earned is None and not released.words):
            missing.append(released.name)
    print("\n".join(_table([found.get(one.name, one) for one in lab], missing)))
    for text in _mistakes(notebook):
        print(f"\n{text}")
    if missing:
        print(
            f"\nNo verdict on {', '.join(missing)}: the graded cell is missing, or `check(...)` in "
            "it did not run. Compare the notebook with the lab in release/."
        )
    return 1 if missing else 0


def run_notebook(path: Path, root: Path) -> NotebookNode:
    """Run all cells of a notebook in a fresh kernel, in its own folder; return the notebook.

    A cell that raises an error, or is interrupted after CELL_SECONDS, does not stop the other
    cells. Raises UserError when the kernel dies.
    """
    notebook = nbformat.read(path, as_version=4)
    code = [number for number, cell in enumerate(notebook.cells) if cell.cell_type == "code"]

    def say(cell: NotebookNode, cell_index: int) -> None:
        if sys.stderr.isatty() and cell_index in code:
            done = f"running cell {code.index(cell_index) + 1} of {len(code)} ..."
            print(f"\r{done}", end="\r", file=sys.stderr, flush=True)

    with tempfile.TemporaryDirectory(prefix="lab-kernel-") as private:
        client = NotebookClient(
            notebook,
            km=this_python(private),
            timeout=CELL_SECONDS,
            interrupt_on_timeout=True,
            allow_errors=True,
            record_timing=False,
            shutdown_kernel="immediate",
            on_cell_start=say,
            resources={"metadata": {"path": str(path.resolve().parent)}},
        )
        try:
            client.execute(env=environment_with(root), cleanup_kc=True)
        except DeadKernelError:
            raise UserError(
                f"the kernel died while {path.name} ran. Run the cells one by one in JupyterLab to "
                "find the cell that ends the kernel"
            ) from None
        except AssertionError:
            # at Ctrl-C, nbclient removes this attribute, and then asserts that the attribute exists
            if client.km is None:
                raise KeyboardInterrupt from None
            raise
    return notebook


def this_python(folder: str) -> AsyncKernelManager:
    """Return a manager of a kernel with this process's Python.

    The kernel has sockets in ``folder``, because other users could open TCP ports.
    """
    manager = AsyncKernelManager(
        kernel_name="python3", transport="ipc", connection_file=str(Path(folder, "kernel.json"))
    )
    assert manager.kernel_spec is not None
    manager.kernel_spec.argv = [
        *(sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}")
    ]
    return manager


def _find(word: str | Path, root: Path) -> Path:
    """Return the notebook that an argument names: a file, or a lab in work/ or release/."""
    path = Path(word)
    if path.exists() or path.suffix:
        return path
    return opened(choose(root, [str(word)])[0].release, root)


def _lab_of(path: Path, root: Path) -> list[Exercise]:
    """Return the exercises of the released lab that has most of a notebook's exercises.

    Raises UserError when the file cannot be read, or no lab has any of the notebook's exercises.
    """
    try:
        mine = {group.name for group in groups(cells_of(path))}
    except OSError as error:
        raise UserError(f"{path} could not be opened: {error.strerror}") from None
    except UNREADABLE:
        raise UserError(f"{path} is not a readable notebook") from None
    releases = [phase.release for phase in phases(root) if phase.release.is_file()]
    labs = [list(exercises(cells_of(release))) for release in releases]
    lab = max(labs, key=lambda each: sum(one.name in mine for one in each), default=[])
    if not any(exercise.name in mine for exercise in lab):
        raise UserError(
            "this notebook is not one of the course's labs: no lab has any of its graded cells. "
            "`make lab` puts the labs into work/"
        )
    return lab


def _table(lab: list[Exercise], missing: list[str]) -> Iterator[str]:
    """Yield a line for each exercise, and a line for the sum."""
    for exercise in lab:
        title = exercise.title or exercise.name
        title = title if len(title) <= WORDS else f"{title[: WORDS - 1]}…"
        if exercise.words:
            share = f"  – of {exercise.points:g}, marked by a person"
        elif exercise.name in missing:
            share = f"  – of {exercise.points:g}, no verdict"
        else:
            share = f"{exercise.earned or 0:3g} of {exercise.points:g}"
            share += "" if exercise.begun else ", not attempted"
        yield f"{title:{WORDS}} {exercise.name:24} {share}"
    judged = [exercise for exercise in lab if not exercise.words]
    earned = sum(exercise.earned or 0 for exercise in judged)
    yield f"{'':{WORDS}} {'all':24} {earned:3g} of {sum(one.points for one in judged):g}"


def _mistakes(notebook: NotebookNode) -> Iterator[str]:
    """Yield the text of each verdict that does not give all points."""
    for cell in notebook.cells:
        for output in verdicts(cell):
            status = output["data"][VERDICT_MIME].get("status")
            if status not in FULL and status != Status.NOT_ATTEMPTED:
                yield output["data"].get("text/plain", "")
