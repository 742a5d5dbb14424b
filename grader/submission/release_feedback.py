"""``nbgrader release_feedback`` for which one learner's files decide about that learner alone."""

from __future__ import annotations

import glob
from pathlib import Path

from nbgrader.exchange.default import ExchangeReleaseFeedback


class ReleaseFeedback(ExchangeReleaseFeedback):
    """nbgrader's step, one learner at a time.

    A page's address in the exchange depends on files that the learner handed in. Where one is
    missing or cannot be read, nbgrader ends the command; this class logs it and goes on.
    """

    src_path: str

    def copy_files(self) -> None:
        """Release every learner's feedback. nbgrader calls this."""
        for folder in sorted(glob.glob(self.src_path)):
            self.src_path = glob.escape(folder)
            try:
                super().copy_files()
            except (OSError, ValueError) as error:
                student = Path(folder).parent.name
                self.log.error("%s: the feedback is not released: %s", student, error)
