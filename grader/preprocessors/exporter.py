"""Where ``nbgrader autograde`` reads a submission: it gets the rebuilt notebook, never the file."""

from __future__ import annotations

import json
import secrets
from pathlib import Path
from typing import Any

import nbformat
from nbconvert.exporters import NotebookExporter
from nbformat.notebooknode import NotebookNode

from grader.notes import Note, renamed
from grader.rebuild import rebuild
from grader.submission import MAX_BYTES, Unreadable


class SubmissionExporter(NotebookExporter):
    """nbgrader's way of reading notebooks, with :func:`grader.rebuild.rebuild` in front.

    ``nbgrader autograde`` makes one before it touches a submission, and reads each submission
    twice: as it was handed in, and as it was written into ``autograded/``. Only the first is
    rebuilt. The seed of the last grading goes along when the same bytes are graded again.
    """

    def __init__(self, config: Any = None, **kwargs: Any):
        super().__init__(config=config, **kwargs)
        self._graded: dict[str, NotebookNode] = {}
        if self.parent is not None:
            self._expect_every_notebook()
            self._remember_seeds()

    def from_filename(
        self, filename: str, resources: dict[str, Any] | None = None, **kwargs: Any
    ) -> tuple[NotebookNode, dict[str, Any]]:
        """The preprocessed notebook of a file, rebuilt first when it is a submission."""
        if self.parent is None or not self.parent._sanitizing:
            return super().from_filename(filename, resources=resources, **kwargs)
        source = self._source_folder(resources["nbgrader"]["assignment"]) / Path(filename).name
        source_nb = nbformat.read(source, as_version=4)
        submitted, notes = _read(Path(filename), self._names(source.parent))
        nb = rebuild(submitted, source_nb, self.config, notes).nb
        ours = nb.metadata.open_the_hood
        before = self._graded.get(self._destination(filename), {})
        again = before.get("submission") == ours.submission
        ours.seed = before["seed"] if again and before.get("seed") else secrets.token_hex(16)
        resources["open_the_hood"] = {"again": again}
        resources["metadata"] = {"name": source.stem, "path": str(Path(filename).parent)}
        return self.from_notebook_node(nb, resources=resources, **kwargs)

    def _source_folder(self, assignment: str) -> Path:
        course = self.parent.coursedir
        return Path(course.format_path(course.source_directory, ".", assignment))

    def _names(self, source_folder: Path) -> list[str]:
        return sorted(path.name for path in source_folder.glob("*.ipynb"))

    def _expect_every_notebook(self) -> None:
        """Make nbgrader look at submissions with no notebook of the right name, too.

        It would leave them out and their old marks in place.
        """
        course, assignments = self.parent.coursedir, self.parent.assignments
        expected = self._names(self._source_folder(course.assignment_id))
        if course.notebook_id != "*" or not expected:
            return
        pattern = Path(self.parent._format_source(course.assignment_id, course.student_id))
        for folder in Path(pattern.anchor).glob(str(pattern.relative_to(pattern.anchor))):
            found = [Path(path).name for path in assignments.get(str(folder), [])]
            if folder.is_dir() and not set(found) & set(expected):
                assignments[str(folder)] = [str(folder / name) for name in expected]

    def _remember_seeds(self) -> None:
        """Read what was graded before, because nbgrader removes it before it grades again."""
        for notebooks in self.parent.assignments.values():
            for filename in notebooks:
                destination = self._destination(filename)
                try:
                    metadata = json.loads(Path(destination).read_bytes())["metadata"]
                    self._graded[destination] = metadata["open_the_hood"]
                except (OSError, ValueError, KeyError):
                    continue

    def _destination(self, filename: str) -> str:
        course, path = self.parent.coursedir, Path(filename)
        student = self.parent.init_single_notebook_resources(filename)["nbgrader"]["student"]
        folder = course.format_path(course.autograded_directory, student, path.parent.name)
        return str(Path(folder) / path.name)


def _read(path: Path, expected: list[str]) -> tuple[bytes | Unreadable, list[Note]]:
    """The bytes of a submitted notebook, or of the only one beside it, or why there are none."""
    notes = []
    if not path.exists():
        others = [p for p in sorted(path.parent.glob("*.ipynb")) if p.name not in expected]
        if len(others) != 1:
            return Unreadable(f"No notebook named `{path.name}` was handed in."), notes
        path = others[0]
        notes.append(renamed(expected[0]))
    if path.is_dir():
        return Unreadable(f"`{path.name}` is a folder, not a notebook."), notes
    try:
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1), notes
    except OSError as error:
        return Unreadable(f"The file could not be opened: {error.strerror}."), notes
