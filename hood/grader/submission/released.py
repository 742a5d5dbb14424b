"""The texts of a lab's releases, by which its own text is told from a learner's.

Learners solve copies of earlier releases, too. What a release said is remembered in
``.released/LAB.json`` in the course's folder whenever a lab is handed out or graded, and stays
there. These are texts that learners have: no solution, no hidden test. Beside them nbgrader's
checksum in a cell tells that nobody has touched it. Learners could forge one, or write a text of
ours: then what they wrote there is dropped, or counts as the lab's, and neither gains anything.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

import nbformat
from nbformat.notebooknode import NotebookNode
from nbgrader.utils import compute_checksum, is_grade, is_locked, is_solution, is_task

from hood import UserError
from hood.atomic_files import write_whole
from hood.grader.submission.notebook import SubmittedCell
from hood.learner.cell_matching import most_alike, normal
from hood.metadata import KEY
from hood.untrusted import mapping

FOLDER = ".released"
OTHERS = ""  # in place of a name: all cells that nbgrader does not keep
MOST_GRADED = 20  # graded notebooks that are read where nothing was remembered
BROKEN = (ValueError, KeyError, TypeError, AttributeError, nbformat.ValidationError)

Texts = Mapping[str, Sequence[str]]  # by a cell's ``grade_id``; all others by OTHERS


class Folders(Protocol):
    """What is needed here of a :class:`hood.grader.course.Course`."""

    @property
    def root(self) -> Path:
        """The course's folder."""

    def folder(self, step: str, student: str, lab: str) -> Path:
        """Return the folder of a student and lab."""

    def students(self, step: str, lab: str) -> list[str]:
        """Return who has a folder of the lab."""


def is_owned(cell: NotebookNode) -> bool:
    """Return whether nbgrader keeps this cell in its gradebook."""
    return bool(is_grade(cell) or is_solution(cell) or is_locked(cell) or is_task(cell))


def texts_of(released: NotebookNode) -> dict[str, list[str]]:
    """Return the texts of a learner's version; without those that somebody has answered."""
    found: dict[str, list[str]] = {}
    for cell in released.cells:
        said = cell.metadata.get("nbgrader", {}).get("checksum")
        if is_solution(cell) and said != compute_checksum(cell):
            continue
        name = cell.metadata.nbgrader.grade_id if is_owned(cell) else OTHERS
        found.setdefault(name, []).append(cell.source)
    return found


def earlier_texts(course: Folders, lab: str) -> dict[str, Texts]:
    """Return what is remembered of a lab, by notebook; the newest text of each cell comes last.

    Where nothing is, graded notebooks tell what the lab's own cells were when they were graded.
    Raises UserError when the file is damaged.
    """
    path = _file(course, lab)
    try:
        kept = json.loads(path.read_bytes())
        return {
            str(notebook): {str(name): [*map(str, texts)] for name, texts in cells.items()}
            for notebook, cells in kept.items()
        }
    except FileNotFoundError:
        return _from_graded(course, lab)
    except (ValueError, TypeError, AttributeError) as error:
        raise UserError(
            f"{path} can't be read: {error}. It holds the texts of the lab's earlier releases: "
            "take it from a backup, or remove it. Then old text of the lab may be taken for a "
            "learner's"
        ) from None


def remember(course: Folders, lab: str, released: Mapping[str, Texts]) -> None:
    """Add a release's texts, by notebook, to those that are remembered of a lab."""
    kept = {
        notebook: {name: [*texts] for name, texts in cells.items()}
        for notebook, cells in earlier_texts(course, lab).items()
    }
    for notebook, cells in released.items():
        for name, texts in cells.items():
            of_cell = kept.setdefault(notebook, {}).setdefault(name, [])
            known = set(map(normal, of_cell))
            of_cell += [text for text in dict.fromkeys(texts) if normal(text) not in known]
    data = json.dumps(kept, ensure_ascii=False, indent=1, sort_keys=True).encode() + b"\n"
    write_whole(_file(course, lab), data)


def remember_release(course: Folders, lab: str) -> None:
    """Remember the texts of a lab as it stands in ``release/``."""
    found: dict[str, Texts] = {}
    for path in sorted(course.folder("release", ".", lab).glob("*.ipynb")):
        try:
            nb = nbformat.reads(path.read_text(encoding="utf-8"), as_version=4)
            found[path.stem] = texts_of(nb)
        except BROKEN:
            continue  # a notebook that somebody tried out there: none of a lab's
    remember(course, lab, found)


def _file(course: Folders, lab: str) -> Path:
    return course.root / FOLDER / f"{lab}.json"


def _from_graded(course: Folders, lab: str) -> dict[str, Texts]:
    found: dict[str, dict[str, list[str]]] = {}
    for student in course.students("autograded", lab)[:MOST_GRADED]:
        for path in sorted(course.folder("autograded", student, lab).glob("*.ipynb")):
            try:
                nb = nbformat.reads(path.read_text(encoding="utf-8"), as_version=4)
                own = [c.source for c in nb.cells if not is_owned(c) and not _added(c)]
            except (OSError, *BROKEN):
                continue
            texts = found.setdefault(path.stem, {}).setdefault(OTHERS, [])
            texts += [text for text in own if text not in texts]
    return {notebook: dict(cells) for notebook, cells in found.items()}


def _added(cell: NotebookNode) -> bool:
    return bool(mapping(cell.metadata.get(KEY)).get("by"))


class Ours:
    """A lab's own texts: those of its release as it is now, and of earlier ones."""

    def __init__(self, now: Texts, earlier: Texts):
        names = {*now, *earlier}
        self._texts = {name: [*earlier.get(name, ()), *now.get(name, ())] for name in names}
        self._normal = {name: set(map(normal, texts)) for name, texts in self._texts.items()}
        self._of_now = set(map(normal, now.get(OTHERS, ())))

    def has(self, name: str, text: str) -> bool:
        """Return whether a cell of nbgrader's was ever released with a text."""
        return normal(text) in self._normal[name]

    def is_untouched(self, name: str, cell: SubmittedCell) -> bool:
        """Return whether a locked cell is as some release had it."""
        return self.has(name, cell.source) or _is_true(cell)

    def start_of(self, name: str, text: str) -> str:
        """Return the released text of a cell from which a learner started."""
        return most_alike(text, self._texts[name])

    def was_another(self, text: str) -> bool:
        """Return whether an earlier release had a text in a cell that nbgrader does not keep."""
        return normal(text) in self._normal.get(OTHERS, set()) - self._of_now


def _is_true(cell: SubmittedCell) -> bool:
    """Return whether nbgrader's checksum in a submitted cell is that of its text."""
    said = cell.settings.get("checksum")
    if not isinstance(said, str):
        return False
    settings = {k: v for k, v in cell.settings.items() if isinstance(v, str | int | float)}
    as_cell = NotebookNode(cell_type=cell.kind, source=cell.source)
    as_cell.metadata = NotebookNode(nbgrader=settings)
    try:
        return bool(said == compute_checksum(as_cell))
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError):
        return False  # its settings may be anything
