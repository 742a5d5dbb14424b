"""The steps that a notebook goes through when it is graded, as nbgrader runs them."""

from grader.preprocessors.execute import Execute
from grader.preprocessors.exporter import SubmissionExporter
from grader.preprocessors.feedback import CleanFeedback
from grader.preprocessors.marks import ClearMarks
from grader.preprocessors.sanitize import Sanitize

__all__ = ["CleanFeedback", "ClearMarks", "Execute", "Sanitize", "SubmissionExporter"]
