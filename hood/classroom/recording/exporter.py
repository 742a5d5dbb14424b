"""Make ``nbgrader autograde`` and formgrader's button run the batch grader."""

from __future__ import annotations

import argparse
import io
import os
from copy import deepcopy
from pathlib import Path
from typing import Any

from nbconvert.exporters import NotebookExporter
from nbgrader.converters import Autograde
from nbgrader.converters.base import NbGraderException
from rich.console import Console

from hood import UserError
from hood.classroom.recording.command import grade_labs
from hood.grader.course import Course


class BatchAutograde(Autograde):
    """Changes nbgrader's Autograde: it calls :func:`hood.classroom.recording.command.grade_labs`.

    nbgrader's own code would delete a submission's folder and marks before it grades the
    submission.
    """

    def convert_notebooks(self) -> None:
        """Grade new and changed submissions; with ``force``, grade recorded submissions again too.

        Raises NbGraderException if a learner has no verdict. The exception's message says what to
        do. Recorded grades stay.
        """
        if self.coursedir.notebook_id != "*":
            self._end("a submission is always graded as a whole: leave out --notebook")
        config = deepcopy(self.config)
        config.Autograde.create_student = self.create_student
        course = Course(Path(self.coursedir.root), config, self.coursedir)
        args = argparse.Namespace(
            accept_older_book=False,
            lab=[self.coursedir.assignment_id],
            students=[self.coursedir.student_id],
            workers=os.cpu_count() or 1,
            scheduler=None,
            regrade=self.force,
            only_new=not self.force,
            preview=False,
            seed=None,
            unsafe_no_sandbox=bool(config.Execute.get("unsafe_no_sandbox", False)),
            keep_workers=True,
        )
        self.run_pre_convert_hook()
        said = io.StringIO()
        try:
            outcomes, stopped = grade_labs(course, args, Console(file=said, width=1000))
        except UserError as error:
            self._end(str(error))
        finally:
            for line in said.getvalue().splitlines():
                self.log.warning(line)
        self.run_post_convert_hook()
        [outcome] = outcomes.values()
        for student, why in outcome.people.items():
            self.log.warning("%s needs a person: %s", student, why)
        for student, why in outcome.failures.items():
            self.log.error("%s has no verdict: %s", student, why)
        self.log.info("%s graded; %s not graded again", outcome.graded, outcome.skipped)
        if stopped:
            self._end("Interrupted. Finished grades are recorded")
        if outcome.failures:
            self._end(f"without a verdict: {len(outcome.failures)}")

    def _end(self, why: str) -> None:
        self.log.error(why)
        raise NbGraderException(why) from None


class SubmissionExporter(NotebookExporter):
    """Changes the class of nbgrader's Autograde object to :class:`BatchAutograde`.

    nbgrader has no setting for this class. But each converter makes its exporter before it touches
    any submission, so the exporter can change the converter's class.
    """

    def __init__(self, config: Any = None, **kwargs: Any):
        super().__init__(config=config, **kwargs)
        if type(self.parent) not in (Autograde, BatchAutograde):
            raise TypeError(f"expected nbgrader's Autograde, got {type(self.parent).__name__}")
        self.parent.__class__ = BatchAutograde
