"""Worker processes on this machine. Each grades one job at a time, in its main thread."""

from __future__ import annotations

import contextlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from grader import UserError
from grader.batch.job import Job, Result, failed, given_up
from grader.inside import cgroup
from grader.phase_paths import ROOT, environment_with
from grader.submission.bounds import ENDS, TOO_MUCH

TRIES = 3
# Jobs per worker: while one is graded, the next one already waits in the worker.
AHEAD = 2
TICK = 0.5
# A sandbox ends a notebook long before this time. A worker that is stuck nevertheless is killed.
STUCK_SECONDS = 3600.0
SECONDS_TO_START = 60.0
SECONDS_TO_END = 2.0


@dataclass
class Task:
    """A job with the number of times that it was tried."""

    job: Job
    tries: int = 0

    def again(self, problem: str) -> Result | None:
        """Count a failed try; return the job's final result, or None if it may be tried again."""
        self.tries += 1
        if self.tries < TRIES:
            return None
        return failed(self.job, f"the grader failed {TRIES} times: {problem}")


class Worker:
    """A process that grades the jobs sent to it, and ends with the process of this object.

    It is a program of its own, because a daemonic process, as Dask's workers are, may not start
    ``multiprocessing`` children; and in its own session, so that Ctrl-C does not reach it.
    """

    def __init__(self, sandbox: bool = True) -> None:
        ours, theirs = socket.socketpair()
        self.folder = Path(tempfile.mkdtemp(prefix="open-the-hood-worker-"))
        self.tasks: deque[Task] = deque()
        self.ready = False
        self.heard = 0.0  # time of its last message, or of a job given while it was idle
        program = [sys.executable, "-m", "grader.batch.worker", str(theirs.fileno())]
        warm = ["warm"] if sandbox else []
        try:
            with theirs, (self.folder / "log").open("wb") as log:
                self.process = subprocess.Popen(
                    [*program, str(self.folder), *warm],
                    env=environment_with(ROOT),
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
        except OSError:
            ours.close()
            shutil.rmtree(self.folder, ignore_errors=True)
            raise
        self.connection = Connection(ours.detach())

    def give(self, task: Task) -> None:
        """Send a job. Where the worker has died, :meth:`receive` says so."""
        if not self.tasks:
            self.heard = time.monotonic()
        self.tasks.append(task)
        with contextlib.suppress(OSError):
            self.connection.send(task.job)

    def receive(self) -> Result | None:
        """Return the worker's next message: a result, or None when it says that it has started.

        Raises:
            EOFError: when the worker has died.
        """
        try:
            said = self.connection.recv()
        except OSError as error:
            raise EOFError from error
        self.ready = True
        self.heard = time.monotonic()
        return said

    def took_too_much(self) -> bool:
        """Return whether the worker ended because a submission exceeded its limits."""
        return bool(self.tasks) and self.ready and self.process.wait() in ENDS

    def why_dead(self) -> str:
        """Return how the worker ended, in words; it waits for that."""
        status = self.process.wait()
        if status < 0:
            return f"its worker process was killed by {signal.Signals(-status).name}"
        log = (self.folder / "log").read_text(errors="replace").strip().splitlines()
        return f"its worker process ended with status {status}: {log[-1] if log else 'no output'}"

    def close(self) -> None:
        """End the worker and the processes that it started."""
        if not self.ready:  # one that is killed while it starts leaves files behind
            self.connection.poll(SECONDS_TO_START)
        self.connection.close()  # the worker then cleans up and ends, even if this process dies
        try:
            self.process.wait(SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


class Pool:
    """Grades jobs in a number of workers. Use it as a context manager.

    Args:
        stopped: called twice a second; when it returns True, the run ends with the finished jobs.
    """

    def __init__(
        self, size: int, stopped: Callable[[], bool] = lambda: False, sandbox: bool = True
    ):
        if sandbox:
            cgroup.enter()  # before its workers, which make the groups of their sandboxes
        self._size = size
        self._sandbox = sandbox
        self._stopped = stopped
        self._workers: list[Worker] = []

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.close()

    def run(self, jobs: Iterable[Job]) -> Iterator[tuple[Job, Result]]:
        """Yield results as they arrive. Jobs are taken only when a worker has room for one.

        Raises:
            UserError: when a worker cannot be started.
        """
        new = (Task(job) for job in jobs)
        waiting: deque[Task] = deque()
        while not self._stopped():
            self._fill(waiting, new)
            if not any(worker.tasks for worker in self._workers):
                return
            by_connection: dict[Any, Worker] = {one.connection: one for one in self._workers}
            for connection in wait(by_connection, TICK):
                yield from self._hear(by_connection[connection], waiting)
            for worker in self._workers:
                if worker.tasks and time.monotonic() - worker.heard > STUCK_SECONDS:
                    worker.process.kill()

    def _fill(self, waiting: deque[Task], new: Iterator[Task]) -> None:
        """Give tasks to idle workers, then to new ones, then to workers that have one already."""
        while True:
            worker = min(self._workers, key=lambda worker: len(worker.tasks), default=None)
            if len(self._workers) < self._size and (worker is None or worker.tasks):
                worker = None  # to be started
            elif worker is None or len(worker.tasks) >= AHEAD:
                return
            task = waiting.popleft() if waiting else next(new, None)
            if task is None:
                return
            if worker is None:
                try:
                    worker = Worker(self._sandbox)
                except OSError as error:  # a full disk, no more processes
                    raise _cannot_start(error) from None
                self._workers.append(worker)
            worker.give(task)

    def _hear(self, worker: Worker, waiting: deque[Task]) -> Iterator[tuple[Job, Result]]:
        try:
            result = worker.receive()
        except EOFError:
            if worker.took_too_much():
                job = worker.tasks.popleft().job
                yield job, given_up(job, TOO_MUCH)
                waiting.extend(worker.tasks)
                worker.tasks.clear()
            problem = worker.why_dead()
            if not worker.ready:
                raise _cannot_start(problem) from None
            yield from self._replace(worker, problem, waiting)
            return
        if result is None:
            return
        if result.retryable:
            # The worker's zygote or something else in it may be broken, so a new worker takes over.
            yield from self._replace(worker, result.problem, waiting)
        else:
            yield worker.tasks.popleft().job, result

    def _replace(
        self, worker: Worker, problem: str, waiting: deque[Task]
    ) -> Iterator[tuple[Job, Result]]:
        """Remove a worker and put its jobs back. Only the one that it graded counts as tried."""
        self._workers.remove(worker)
        worker.close()
        if worker.tasks and (result := worker.tasks[0].again(problem)) is not None:
            yield worker.tasks.popleft().job, result
        waiting.extend(worker.tasks)


_kept: dict[bool, Pool] = {}


@contextlib.contextmanager
def kept(size: int, stopped: Callable[[], bool], sandbox: bool) -> Iterator[Pool]:
    """Yield a pool whose idle workers wait for this process's next call, as by formgrader."""
    pool = _kept.setdefault(sandbox, Pool(size, sandbox=sandbox))
    pool._size, pool._stopped = size, stopped
    try:
        yield pool
    finally:
        for worker in [worker for worker in pool._workers if worker.tasks]:
            pool._workers.remove(worker)
            worker.close()


def _cannot_start(why: object) -> UserError:
    return UserError(
        f"no grading worker could be started: {why}. Fix that and run the same command again"
    )
