"""Grade jobs on a Dask cluster. Each job runs in a child process of a Dask worker."""

from __future__ import annotations

import contextlib
import itertools
import logging
import queue
import secrets
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError

from grader import UserError
from grader.batch.job import Job, Result, failed, given_up
from grader.batch.pool import AHEAD, STUCK_SECONDS, TICK, Task, Worker
from grader.submission.bounds import TOO_MUCH

try:
    from distributed import Client, Future
    from distributed import wait as wait_for
except ModuleNotFoundError:
    raise UserError(
        "--scheduler needs Dask: `pip install 'open-the-hood[cluster]'`, here and on the workers"
    ) from None

# In a Dask worker: idle processes that wait for a job. Dask runs a task in a thread, but a sandbox
# must be started by a main thread. So each thread takes a process from here and is its only user.
_idle: queue.LifoQueue[Worker] = queue.LifoQueue()


def grade_in_child(job: Job) -> Result:
    """Grade a job in a child process of this Dask worker, which is reused for later jobs."""
    try:
        worker = _idle.get_nowait()
    except queue.Empty:
        worker = Worker(job.sandbox)
    worker.give(Task(job))
    try:
        result = None  # the worker's first message only says that it has started
        while result is None:
            if not worker.connection.poll(STUCK_SECONDS):
                worker.process.kill()
            result = worker.receive()
    except EOFError:
        too_much, problem = worker.took_too_much(), worker.why_dead()
        worker.close()
        return given_up(job, TOO_MUCH) if too_much else failed(job, problem)
    worker.tasks.clear()
    if result.retryable:
        worker.close()
    else:
        _idle.put(worker)
    return result


class Cluster:
    """Grades jobs on a Dask cluster. Use it as a context manager.

    Args:
        address: address of the scheduler, such as ``tcp://host:8786``.
        stopped: called twice a second; when it returns True, the run ends with the finished jobs.

    Raises:
        UserError: when the scheduler cannot be reached, or the connection is lost.
    """

    def __init__(
        self, address: str, stopped: Callable[[], bool] = lambda: False, timeout: float = 10.0
    ):
        self._address = address
        self._stopped = stopped
        # Dask would print a traceback when the scheduler is lost; this class raises a UserError.
        logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
        try:
            self._client = Client(address, timeout=timeout)
            self._client.wait_for_workers(1, timeout=timeout)
        except (OSError, ValueError) as error:
            raise UserError(
                f"no Dask scheduler with workers answers at {address}: {error}"
            ) from None
        self._run = secrets.token_hex(4)
        self._number = itertools.count()

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(Exception):  # the scheduler may be gone
            self._client.close(timeout=2)

    def run(self, jobs: Iterable[Job]) -> Iterator[tuple[Job, Result]]:
        """Yield results as they arrive. Jobs are sent only when the cluster has capacity."""
        new = (Task(job) for job in jobs)
        waiting: deque[Task] = deque()
        at_work: dict[Future, Task] = {}
        try:
            while not self._stopped():
                self._fill(at_work, waiting, new)
                if not at_work:
                    return
                for future in self._done(at_work):
                    task = at_work.pop(future)
                    result = self._result(future, task.job)
                    last = task.again(result.problem) if result.retryable else result
                    if last is None:
                        waiting.append(task)
                    else:
                        yield task.job, last
        finally:
            with contextlib.suppress(Exception):
                self._client.cancel(list(at_work))

    def _fill(self, at_work: dict[Future, Task], waiting: deque[Task], new: Iterator[Task]) -> None:
        with self._reached():
            capacity = max(AHEAD * sum(self._client.nthreads().values()), 1)
        while len(at_work) < capacity:
            task = waiting.popleft() if waiting else next(new, None)
            if task is None:
                return
            if task.job.lab.gpu:
                self._expect_gpu()
            with self._reached():
                future = self._client.submit(
                    grade_in_child,
                    task.job,
                    # A new key each time, because Dask would return the old result of a job that is
                    # sent again, by --regrade or another try.
                    key=f"grade-{task.job.id}-{self._run}-{next(self._number)}",
                    resources={"GPU": 1} if task.job.lab.gpu else None,
                    pure=False,
                )
            at_work[future] = task

    def _expect_gpu(self) -> None:
        with self._reached():
            workers = self._client.scheduler_info(n_workers=-1)["workers"].values()
        if not any(worker["resources"].get("GPU") for worker in workers):
            raise UserError(
                "the lab needs a GPU, and no worker of the cluster offers the resource GPU: start "
                "one with `dask worker ADDRESS --resources GPU=1`"
            )

    def _done(self, at_work: dict[Future, Task]) -> list[Future]:
        with self._reached(), contextlib.suppress(TimeoutError):
            wait_for(list(at_work), timeout=TICK, return_when="FIRST_COMPLETED")
        return [future for future in at_work if future.done()]

    def _result(self, future: Future, job: Job) -> Result:
        try:
            return future.result(timeout=TICK * 20)
        except Exception as error:  # KilledWorker, a worker that lacks a package, ...
            with self._reached():
                return failed(job, f"the cluster lost the job: {type(error).__name__}: {error}")

    @contextlib.contextmanager
    def _reached(self) -> Iterator[None]:
        """Run enclosed code that needs the scheduler, and say where that is lost."""
        try:
            yield
            lost = self._client.status != "running"
        except (OSError, CancelledError):  # the scheduler is gone; the status is not updated yet
            lost = True
        if lost:
            raise UserError(
                f"the connection to the Dask scheduler at {self._address} is lost. Start it and "
                "run the same command again; recorded grades are kept"
            )
