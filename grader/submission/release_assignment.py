"""``nbgrader release_assignment``, whose copy in the exchange has no link that leads nowhere."""

from __future__ import annotations

from pathlib import Path

from nbgrader.exchange.default import ExchangeReleaseAssignment

from grader import UserError
from grader.authoring.notebook import read, to_bytes
from grader.lesson_links import lesson_url, settle


class ReleaseAssignment(ExchangeReleaseAssignment):
    """nbgrader's step. A learner fetches the lab without the lessons that ``release/`` links."""

    def copy_files(self) -> None:
        """Replace what the exchange has, unless the setting is none; nbgrader calls this."""
        try:
            lesson_url()
        except UserError as error:
            self.fail(str(error))
        super().copy_files()

    def do_copy(self, src: str, dest: str, log: bool = True) -> None:
        """Copy the lab's folder; nbgrader calls this."""
        super().do_copy(src, dest, log)
        url = lesson_url()
        for path in sorted(Path(dest).rglob("*.ipynb")):
            try:
                notebook = read(path)
            except ValueError as error:
                self.log.warning("%s: its links stay as they are: %s", path, error)
                continue
            if notebook and sum(settle(cell, url) for cell in notebook.cells):
                path.write_bytes(to_bytes(notebook))
