"""Remember the texts of a lab's releases, to distinguish the lab's own text from a learner's text.

Learners also solve copies of earlier releases. Whenever a lab is handed out or graded, a release's
texts are added to ``.released/LAB.json`` in the course's folder, and stay there. Learners have
these texts, so the texts contain no solutions and no hidden tests. In addition, nbgrader's checksum
in a cell shows that the cell is untouched. A learner could forge a checksum, or write one of the
lab's texts. Then the cell's text is dropped or counts as the lab's text, so the learner gains
nothing.
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
OTHERS = ""  # used as a name for all cells that nbgrader does not keep
MOST_GRADED = 20  # graded notebooks that are read if no texts were remembered
BROKEN = (ValueError, KeyError, TypeError, AttributeError, nbformat.ValidationError)

Texts = Mapping[str, Sequence[str]]  # by a cell's ``grade_id``, or OTHERS for all other cells


class Folders(Protocol):
    """The part of :class:`hood.grader.course.Course` that is needed here."""

    @property
    def root(self) -> Path:
        """The course's folder."""

    def folder(self, step: str, student: str, lab: str) -> Path:
        """Return a student's folder for a lab in a step such as ``submitted``."""

    def students(self, step: str, lab: str) -> list[str]:
        """Return the students with a folder or file of the lab in a step such as ``submitted``."""


def is_owned(cell: NotebookNode) -> bool:
    """Return whether nbgrader keeps this cell in its gradebook."""
    return bool(is_grade(cell) or is_solution(cell) or is_locked(cell) or is_task(cell))


def texts_of(released: NotebookNode) -> dict[str, list[str]]:
    """Return the texts of a learner's version, without answered cells."""
    found: dict[str, list[str]] = {}
    for cell in released.cells:
        said = cell.metadata.get("nbgrader", {}).get("checksum")
        if is_solution(cell) and said != compute_checksum(cell):
            continue
        name = cell.metadata.nbgrader.grade_id if is_owned(cell) else OTHERS
        found.setdefault(name, []).append(cell.source)
    return found


def earlier_texts(course: Folders, lab: str) -> dict[str, Texts]:
    """Return the remembered texts of a lab's notebooks; the newest text of each cell comes last.

    If no texts are remembered, the texts of the lab's own cells in graded notebooks are used.
    Raises UserError if the file with remembered texts is damaged.
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
            f"{path} can't be read: {error}. This file has the texts of the lab's earlier "
            "releases. Restore it from a backup, or remove it (then old text of the lab may be "
            "read as a learner's text)"
        ) from None


def remember(course: Folders, lab: str, released: Mapping[str, Texts]) -> None:
    """Add the texts of a release's notebooks to the remembered texts of a lab."""
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
    """Remember the texts of a lab in ``release/``."""
    found: dict[str, Texts] = {}
    for path in sorted(course.folder("release", ".", lab).glob("*.ipynb")):
        try:
            nb = nbformat.reads(path.read_text(encoding="utf-8"), as_version=4)
            found[path.stem] = texts_of(nb)
        except BROKEN:
            continue  # somebody's experiment, which does not belong to the lab
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
    """A lab's own texts, of its current release and of earlier releases."""

    def __init__(self, now: Texts, earlier: Texts):
        names = {*now, *earlier}
        self._texts = {name: [*earlier.get(name, ()), *now.get(name, ())] for name in names}
        self._normal = {name: set(map(normal, texts)) for name, texts in self._texts.items()}
        self._of_now = set(map(normal, now.get(OTHERS, ())))

    def has(self, name: str, text: str) -> bool:
        """Return whether an nbgrader cell was ever released with this text."""
        return normal(text) in self._normal[name]

    def is_untouched(self, name: str, cell: SubmittedCell) -> bool:
        """Return whether a locked cell has the unchanged text of some release."""
        return self.has(name, cell.source) or _is_true(cell)

    def start_of(self, name: str, text: str) -> str:
        """Return the released text that a learner found in a cell."""
        return most_alike(text, self._texts[name])

    def was_another(self, text: str) -> bool:
        """Return whether only an earlier release had this text, in a cell that nbgrader ignores."""
        return normal(text) in self._normal.get(OTHERS, set()) - self._of_now


def _is_true(cell: SubmittedCell) -> bool:
    """Return whether nbgrader's checksum in a submitted cell matches the cell's text."""
    said = cell.settings.get("checksum")
    if not isinstance(said, str):
        return False
    settings = {k: v for k, v in cell.settings.items() if isinstance(v, str | int | float)}
    as_cell = NotebookNode(cell_type=cell.kind, source=cell.source)
    as_cell.metadata = NotebookNode(nbgrader=settings)
    try:
        return bool(said == compute_checksum(as_cell))
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError):
        return False  # the cell's settings may be anything
