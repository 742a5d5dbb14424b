"""Grade jobs on a Dask cluster. Each job runs in a child process of a Dask worker."""

from __future__ import annotations

import contextlib
import itertools
import logging
import secrets
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError

from hood import UserError, not_installed
from hood.grader.batch.job import Job, Result, failed
from hood.grader.batch.pool import AHEAD, TICK, TRIES, Workers
from hood.manifest import GRADERS, differing, versions

try:
    from distributed import Client, Future
    from distributed import wait as wait_for
except ModuleNotFoundError as error:
    raise not_installed("--scheduler", error) from None

# A Dask worker's child processes. Dask runs a task in a thread, but only a main thread can start a
# sandbox.
_workers = Workers()


def grade_in_child(job: Job) -> Result:
    """Grade a job in a child process of this Dask worker.

    Raises RuntimeError if the grader failed, so that Dask tries the job again.
    """
    result = _workers.grade(job)
    if result.retryable:
        raise RuntimeError(result.problem)
    return result


class Cluster:
    """Grades jobs on a Dask cluster. Use it as a context manager.

    ``address`` is the address of the scheduler, such as ``tcp://host:8786``. ``stopped`` is called
    twice a second. When ``stopped`` returns True, the run ends, and unfinished jobs have no result.
    Raises UserError if the scheduler cannot be reached, the connection is lost, or a worker has
    other versions of the packages that decide a grade.
    """

    def __init__(
        self, address: str, stopped: Callable[[], bool] = lambda: False, timeout: float = 10.0
    ):
        self._address = address
        self._stopped = stopped
        # When the scheduler is lost, Dask would print a traceback. This class raises a UserError
        # instead.
        logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
        try:
            self._client = Client(address, timeout=timeout)
            self._client.wait_for_workers(1, timeout=timeout)
        except (OSError, ValueError) as error:
            raise UserError(
                f"no Dask scheduler with workers answered at {address}: {error}"
            ) from None
        self._require_same_versions()
        self._run = secrets.token_hex(4)
        self._number = itertools.count()

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(Exception):  # the scheduler may be gone
            self._client.close(timeout=2)

    def run(self, jobs: Iterable[Job]) -> Iterator[tuple[Job, Result]]:
        """Yield results as they arrive. Jobs are sent only when the cluster has capacity."""
        left = iter(jobs)
        at_work: dict[Future, Job] = {}
        try:
            while not self._stopped():
                with self._reached():
                    capacity = max(AHEAD * sum(self._client.nthreads().values()), 1)
                for job in itertools.islice(left, max(capacity - len(at_work), 0)):
                    at_work[self._submit(job)] = job
                if not at_work:
                    return
                with self._reached(), contextlib.suppress(TimeoutError):
                    wait_for(list(at_work), timeout=TICK, return_when="FIRST_COMPLETED")
                for future in [one for one in at_work if one.done()]:
                    job = at_work.pop(future)
                    yield job, self._result(future, job)
        finally:
            with contextlib.suppress(Exception):
                self._client.cancel(list(at_work))

    def _require_same_versions(self) -> None:
        """Refuse a worker with other versions of the packages that decide a grade.

        If a worker with other versions joins later, it refuses every submission.
        """
        mine = versions(more=GRADERS)
        with self._reached():
            every = self._client.run(versions, more=GRADERS, on_error="return")
        unlike = [
            f"{address} has {' and '.join(now for _, now in others)}, but this command has "
            f"{' and '.join(was for was, _ in others)}"
            for address, theirs in sorted(every.items())
            if isinstance(theirs, dict) and (others := differing(mine, theirs))
        ]
        if unlike:
            self._client.close(timeout=2)
            raise UserError(
                f"{'; '.join(unlike)}. A grade must not depend on the grading machine, so nothing "
                "was graded. Install the same versions on all machines of the cluster"
            )

    def _submit(self, job: Job) -> Future:
        with self._reached():
            return self._client.submit(
                grade_in_child,
                job,
                # Use a new key each time. If a job were sent again (--regrade) with the old key,
                # Dask would return the old result.
                key=f"grade-{job.id}-{self._run}-{next(self._number)}",
                retries=TRIES - 1,
                pure=False,
            )

    def _result(self, future: Future, job: Job) -> Result:
        try:
            return future.result(timeout=TICK * 20)
        except Exception as error:  # KilledWorker, a worker that lacks a package, ...
            with self._reached():
                why = f"the cluster could not run the job: {type(error).__name__}: {error}"
                return failed(job, why)

    @contextlib.contextmanager
    def _reached(self) -> Iterator[None]:
        """Run code that needs the scheduler; raise UserError if the connection is lost."""
        self._lost(self._client.status != "running")  # Dask would wait for the scheduler
        try:
            yield
        except (OSError, CancelledError):  # the scheduler is gone; the status is not updated yet
            self._lost(True)
        self._lost(self._client.status != "running")

    def _lost(self, lost: bool) -> None:
        if lost:
            raise UserError(
                f"the connection to the Dask scheduler at {self._address} is lost. Start "
                "the scheduler and run the same command again. Recorded grades are kept"
            ) from None
