"""Whether the machine is broken: an honest submission tells, never a count of learners.

A learner can make their own submission fail, and many can. So when submissions fail one after the
other, the lab's own source is handed in among them, with its solutions for answers. Where it gets a
verdict, the machine is well, and those who failed are alone with it; where it gets none either,
nobody would.
"""

from __future__ import annotations

import secrets

from grader import UserError
from grader.batch.job import Job, Lab, Result

# So many failures in a row raise the question.
DOUBT = 10
# No folder in ``submitted/`` has such a name.
NAME = "the lab's own source / "


class Canary:
    """Hands the lab's source in when it is in doubt whether anything can be graded.

    Args:
        sandbox: as :class:`Job` has it.
    """

    def __init__(self, lab: Lab, sandbox: bool):
        self._lab, self._sandbox = lab, sandbox
        self._failures = 0
        self._wanted = self._sent = False

    def note(self, result: Result) -> None:
        """A learner's result."""
        if not (result.retryable or result.hopeless):
            self._failures = 0
            return
        self._failures += 1
        self._wanted = self._wanted or result.hopeless or self._failures >= DOUBT

    def job(self) -> Job | None:
        """The submission, where it is time for it."""
        if not self._wanted or self._sent:
            return None
        self._sent = True
        return Job(
            lab=self._lab,
            student=NAME,
            notebooks=self._lab.notebooks,
            files={},
            key=secrets.token_hex(32),
            digest="",
            sandbox=self._sandbox,
        )

    def is_mine(self, job: Job) -> bool:
        """Whether the job is the source's and no learner's."""
        return job.student == NAME

    def judge(self, result: Result) -> None:
        """Take what came of it.

        Raises:
            UserError: when the machine can't grade anybody.
        """
        if result.hopeless:
            raise UserError(result.problem)
        if result.retryable:
            raise UserError(
                f"the lab's own source could not be graded either: {result.problem}. Put that "
                "right and run the same command again; what was recorded stays"
            )
        self._failures, self._wanted, self._sent = 0, False, False
