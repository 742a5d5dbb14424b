"""Take jobs from the queue, grade them in sandboxes, and wake the requests that wait for them."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

from hood import UserError
from hood.classroom.marking.routes import RefusedError as RefusedError  # callers catch it here
from hood.classroom.rules.reading import read_course_file
from hood.classroom.service.lab_state import is_out
from hood.classroom.service.people import Person, service_key
from hood.classroom.service.queue import SHORT_TURN, JobProgress, Queue, QueuedJob
from hood.classroom.service.single_exercise import (
    NO_VERDICT,
    Labs,
    card_of,
    exercise_alone,
    handed_in,
    lab_exercises,
    left_out_cells,
    seed_of,
    verdict_of,
)
from hood.grader.batch.job import Job, Result
from hood.grader.batch.pool import Workers
from hood.grader.course import Course
from hood.grader.submission.notebook import MAX_TEXT
from hood.verdict import FULL, Cause

LOG = logging.getLogger(__name__)
TRIES = 2
NICE = 13  # the niceness of long turns: they get a twentieth of a short turn's share of a processor
CUT_SHORT = {Cause.TIMEOUT, Cause.TOO_MUCH_OUTPUT, Cause.NO_REPLY}
CUT_SHORT |= {Cause.KERNEL_DIED, Cause.KERNEL_STOPPED}
IDLE = 1.0  # seconds between two checks of an empty queue


class Dispatcher:
    """The service of one course. Use it as a context manager: its workers run inside the block.

    Args:
        workers: how many short turns run at once (see :mod:`.queue`). The number of long turns that
            run at once is less than half of ``workers``.
        sandbox: whether learners' code runs in sandboxes. If not, this code has the rights of this
            process.
    """

    def __init__(self, course: Course, workers: int, sandbox: bool = True):
        self.course = course
        self.queue = Queue(course.directory.db_url, workers)
        self.labs = Labs(course)
        self._key = service_key(course.root)
        self._sandbox = sandbox
        self.size = workers
        self._workers = {False: Workers(), True: Workers(NICE)}  # key: whether a turn is long
        self._more = threading.Condition()  # a job arrived or ended
        self._stopped = threading.Event()
        # by default there are two more workers than cores: long turns get half of the cores
        turns = [False] * workers + [True] * (max(1, workers // 2 - 1) if workers else 0)
        # the first worker has started already, and workers of long turns start when they are needed
        warms = [0 < number < workers for number in range(len(turns))]
        self._threads = [
            threading.Thread(target=self._serve, args=one, daemon=True)
            for one in zip(turns, warms, strict=True)
        ]
        self._listeners: list[Callable[[str], None]] = []

    def prepare(self) -> None:
        """Start the first worker and judge one submission, so that problems appear at the start.

        Raises UserError if a lab can't be used, or if this machine can't run sandboxes.
        """
        for name in self.labs.names():
            self.labs.lab(name)
        result = self._warm_up()
        if result and (result.hopeless or result.retryable):
            raise UserError(f"nothing can be judged here: {result.problem}")

    def __enter__(self) -> Dispatcher:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._more:
            self._stopped.set()
            self._more.notify_all()
        for workers in self._workers.values():
            for worker in list(workers.busy):
                worker.close()  # its job stays in the queue for the next start
        for thread in self._threads:
            thread.join()
        for workers in self._workers.values():
            for worker in workers.idle:
                worker.close()

    def when_ended(self, tell: Callable[[str], None]) -> None:
        """From now on, when a job ends, call ``tell`` with the job's id, in a worker's thread."""
        self._listeners.append(tell)

    def ask(self, person: Person, exercise: str, cells: Sequence[tuple[str, str]]) -> str:
        """Queue a check as a job, and return the job's id.

        Raises RefusedError if there is nothing to check, or if this person may not ask now.
        """
        lab = self.labs.lab_of(exercise)
        rules = read_course_file(self.course.root)
        now = datetime.now(rules.zone if rules else ZoneInfo("UTC"))
        if lab is None or not (person.teaches or is_out(rules, lab.name, now)):
            raise RefusedError(404, f"there is no exercise {exercise!r} in the released labs")
        alone = exercise_alone(lab, exercise)
        if not alone.asks & {name for name, _ in cells}:
            raise RefusedError(422, "first run the cell with your answer, then ask for a verdict")
        if (size := sum(len(source) for _, source in cells)) > MAX_TEXT:
            raise RefusedError(
                422,
                f"the cells that you have run have {size:,} characters; the limit is {MAX_TEXT:,}: "
                "shorten the largest cell, restart the kernel, and run your cells again",
            )
        most = rules.labs[lab.name].feedback.attempts if rules and lab.name in rules.labs else None
        if most is not None and not person.teaches:
            midnight = now.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
            if self.queue.since(person.name, exercise, midnight.timestamp()) >= most:
                raise RefusedError(
                    403,
                    f"you have had {most} verdicts on {exercise} today, and this class allows no "
                    "more in a day; try again tomorrow",
                )
        new = self.queue.put(person.name, lab.name, exercise, cells, person.teaches)
        self._wake()
        return new

    def progress(self, person: Person, job_id: str) -> JobProgress | None:
        """Return the progress of a person's job; None if they have no job with this id."""
        return self.queue.progress(job_id, person.name)

    def _wake(self) -> None:
        with self._more:
            self._more.notify_all()

    def _serve(self, long: bool, warms: bool) -> None:
        try:
            if warms:
                self._warm_up()
        except Exception:  # the first job will report this problem
            if not self._stopped.is_set():
                LOG.exception("a worker could not be warmed up")
        while not self._stopped.is_set():
            job = self.queue.take(long)
            if job is None:
                with self._more:
                    if not self._stopped.is_set():
                        self._more.wait(IDLE)
                continue
            try:
                self._make(job)
            except Exception:  # after any error the next job must run
                if self._stopped.is_set():  # its worker was ended with the service
                    return
                LOG.exception("the job %s of %s failed", job.id, job.exercise)
                with contextlib.suppress(Exception):
                    self.queue.failed(job, {"text/plain": NO_VERDICT})
            for tell in self._listeners if not self._stopped.is_set() else ():
                tell(job.id)

    def _warm_up(self) -> Result | None:
        """Make a worker import the judge's modules, so that no learner has to wait for the imports.

        Return the worker's result on an empty submission; None if the course has no exercises.
        """
        for lab in map(self.labs.lab, self.labs.names()):
            for exercise in lab_exercises(lab):
                alone = exercise_alone(lab, exercise).lab
                nothing = handed_in(alone, next(iter(alone.notebooks.values())), ())
                work = Job(alone, "", nothing, "warm-up", sandbox=self._sandbox)
                return self._workers[False].grade(work)
        return None

    def _make(self, job: QueuedJob) -> None:
        """Grade a queued job, and store its verdict."""
        whole = self.labs.lab(job.lab)
        lab = exercise_alone(whole, job.exercise, None if job.long else SHORT_TURN).lab
        [name] = lab.notebooks
        submission = handed_in(lab, whole.notebooks[name], job.cells)
        rules = read_course_file(self.course.root)
        now = datetime.now(rules.zone if rules else ZoneInfo("UTC"))
        seed = seed_of(self._key, job.learner, job.exercise, now.date())
        work = Job(lab, job.learner, submission, job.id, seed=seed, sandbox=self._sandbox)
        for _ in range(TRIES):
            began = time.monotonic()
            result = self._workers[job.long].grade(work)
            if not result.retryable or self._stopped.is_set():
                break
        if self._stopped.is_set() and result.retryable:
            return  # the worker ended with the service; the next service runs the job again
        if result.hopeless:
            raise UserError(result.problem)
        verdict = verdict_of(result, job.exercise)
        if verdict is None:
            LOG.error("no verdict on %s: %s", job.exercise, result.problem)
            self.queue.failed(job, {"text/plain": NO_VERDICT})
            return
        seconds = time.monotonic() - began
        cut_short = bool(CUT_SHORT & verdict.causes) or (
            verdict.status not in FULL and left_out_cells(result)
        )
        if not job.long and seconds > SHORT_TURN and cut_short:
            self.queue.again(job)
            self._wake()
            return
        shows = {
            what: not rules
            or job.lab not in rules.labs
            or rules.shows(what, job.lab, job.learner, now)
            for what in ("misconceptions", "examples")
        }
        card = card_of(verdict, self.course.root, shows)
        self.queue.done(job, verdict.to_json() | {"most": verdict.most}, card)
