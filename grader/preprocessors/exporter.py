"""Where ``nbgrader autograde`` reads a submission: it gets the rebuilt notebook, never the file."""

from __future__ import annotations

import json
import secrets
from pathlib import Path
from typing import Any

import nbformat
from nbconvert.exporters import NotebookExporter
from nbformat.notebooknode import NotebookNode
from traitlets import Bool, Float

from grader.bounds import SECONDS, TOO_MUCH, TooMuchWork, alarmed
from grader.folder import read_beside, read_notebook
from grader.preprocessors.compiled import cache_of
from grader.rebuild import rebuild
from grader.same import digest
from grader.submission import Unreadable


class SubmissionExporter(NotebookExporter):
    """nbgrader's way of reading notebooks, with :func:`grader.rebuild.rebuild` in front.

    ``nbgrader autograde`` makes one before it touches a submission, and reads each submission
    twice: as it was handed in, and as it was written into ``autograded/``. Only the first is
    rebuilt. Each grading draws its cases anew, also with ``--force`` and by formgrader's button,
    unless ``same_cases`` says otherwise.
    """

    same_cases = Bool(
        False,
        help="Where the same submission is graded again (`--force`), ask the same hidden cases.",
    ).tag(config=True)

    work_seconds = Float(
        SECONDS,
        help="Processor seconds that one notebook's data may cost this process; then it earns 0.",
    ).tag(config=True)

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
        if self.parent is None:
            return super().from_filename(filename, resources=resources, **kwargs)
        source = self._source_folder(resources["nbgrader"]["assignment"]) / Path(filename).name
        source_nb = nbformat.read(source, as_version=4)
        cache = {} if self.parent._sanitizing else {"cache": cache_of(source_nb)}
        try:
            with alarmed(self.work_seconds):
                if self.parent._sanitizing:
                    return self._rebuilt(Path(filename), source.name, source_nb, resources)
                resources["open_the_hood"] = cache
                return super().from_filename(filename, resources=resources, **kwargs)
        except TooMuchWork:
            self.log.warning("%s: %s", filename, TOO_MUCH)
        nb = rebuild(Unreadable(f"{TOO_MUCH.capitalize()}."), source_nb, self.config).nb
        resources["open_the_hood"] = cache
        return self._processed(nb, Path(filename), resources)

    def _rebuilt(
        self, path: Path, name: str, source_nb: NotebookNode, resources: dict[str, Any]
    ) -> tuple[NotebookNode, dict[str, Any]]:
        names = self._names(self._source_folder(resources["nbgrader"]["assignment"]))
        submitted, note = read_notebook(path.parent, name, names)
        nb = rebuild(submitted, source_nb, self.config, [note] if note else []).nb
        ours = nb.metadata.open_the_hood
        files, left = read_beside(path.parent, [*self.parent.coursedir.ignore, "*.ipynb"])
        ours.submission = digest({path.stem: submitted}, files)
        before = self._graded.get(self._destination(str(path)), {})
        again = not left and before.get("submission") == ours.submission
        stored = before.get("seed") if again and self.same_cases else None
        ours.seed = stored or secrets.token_hex(16)
        resources["open_the_hood"] = {"again": again}
        return self._processed(nb, path, resources)

    def _processed(
        self, nb: NotebookNode, path: Path, resources: dict[str, Any]
    ) -> tuple[NotebookNode, dict[str, Any]]:
        resources["metadata"] = {"name": path.stem, "path": str(path.parent)}
        return self.from_notebook_node(nb, resources=resources)

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
