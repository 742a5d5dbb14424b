"""Find out whether the grading machine is broken, by grading the lab's own source.

Learners can make their own submissions fail, and many may do so. If the lab's source with its
solutions gets a verdict between them, the machine works; if it fails, too, nobody can be graded.
"""

from __future__ import annotations

import secrets

from grader import UserError
from grader.batch.job import Job, LabFiles, Result, Submission

# So many failures in a row make the canary necessary.
DOUBT = 10
# A student id that no folder in ``submitted/`` can have, because it contains a slash.
NAME = "the lab's own source / "


class Canary:
    """Decides when the lab's source has to be graded, and what its result means."""

    def __init__(self, lab: LabFiles, sandbox: bool, seed: str = ""):
        own = Submission(lab.notebooks)
        self._job = Job(lab, NAME, own, secrets.token_hex(32), seed, sandbox=sandbox)
        self._failures = 0
        self._wanted = self._sent = False

    def note(self, result: Result) -> None:
        """Count a learner's result: failures in a row raise doubt, a success resets the count."""
        if not (result.retryable or result.hopeless):
            self._failures = 0
            return
        self._failures += 1
        self._wanted = self._wanted or result.hopeless or self._failures >= DOUBT

    def job(self) -> Job | None:
        """Return the job that grades the lab's source, if it is needed now and not yet sent."""
        if not self._wanted or self._sent:
            return None
        self._sent = True
        return self._job

    def is_mine(self, job: Job) -> bool:
        """Return whether the job is that of the lab's source."""
        return job.student == NAME

    def judge(self, result: Result) -> None:
        """Take the result of the lab's source.

        Raises:
            UserError: when the machine cannot grade anybody.
        """
        if result.hopeless:
            raise UserError(result.problem)
        if result.retryable:
            raise UserError(
                f"the lab's own source could not be graded either: {result.problem}. Fix "
                "that and run the same command again; recorded grades are kept"
            )
        self._failures, self._wanted, self._sent = 0, False, False
