"""Worker processes on this machine: each grades one job at a time, in its main thread."""

from __future__ import annotations

import contextlib
import os
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
from enum import Enum, auto
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Final

from grader import UserError
from grader.batch.job import Job, Result, failed, given_up
from grader.phase_paths import ROOT
from grader.submission.bounds import ENDS, TOO_MUCH

TRIES = 3
# A job waits in each worker while the one before it is graded, so that no worker waits for us.
AHEAD = 2
TICK = 0.5
# A sandbox stops a notebook long before; a worker that is stuck all the same is killed.
STUCK_SECONDS = 3600.0
SECONDS_TO_START = 60.0
SECONDS_TO_END = 2.0


class New(Enum):
    """What stands for a worker that is to be started."""

    NEW = auto()


NEW: Final = New.NEW


@dataclass
class Task:
    """A job on its way, and how often it was tried."""

    job: Job
    tries: int = 0

    def again(self, problem: str) -> Result | None:
        """None when it may be tried once more, else the result that says why not."""
        self.tries += 1
        if self.tries < TRIES:
            return None
        return failed(self.job, f"the grader failed {TRIES} times: {problem}")


class Worker:
    """A process that grades what it is sent. It ends when this object's process ends.

    It is started as a program of its own, because a daemonic process (as Dask's are) may have no
    children of ``multiprocessing``. Its session is its own: Ctrl-C is not for it.
    """

    def __init__(self, sandbox: bool = True) -> None:
        ours, theirs = socket.socketpair()
        self.folder = Path(tempfile.mkdtemp(prefix="open-the-hood-worker-"))
        self.tasks: deque[Task] = deque()
        self.ready = False
        self.heard = 0.0  # when it last had something to say, or was given something to do
        path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        with theirs, (self.folder / "log").open("wb") as log:
            self.process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "grader.batch.worker",
                    str(theirs.fileno()),
                    str(self.folder),
                    *(["warm"] if sandbox else []),
                ],
                env={**os.environ, "PYTHONPATH": path},
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.connection = Connection(ours.detach())

    def give(self, task: Task) -> None:
        """Send a job; that the worker has died meanwhile shows when its answer is read."""
        if not self.tasks:
            self.heard = time.monotonic()
        self.tasks.append(task)
        with contextlib.suppress(OSError):
            self.connection.send(task.job)

    def receive(self) -> Result | None:
        """What it says next: a result, or None when it says that it has started.

        Raises:
            EOFError: when it has died.
        """
        try:
            said = self.connection.recv()
        except OSError as error:
            raise EOFError from error
        self.ready = True
        self.heard = time.monotonic()
        return said

    def took_too_much(self) -> bool:
        """Whether it ended because the submission in hand cost more than one may."""
        return bool(self.tasks) and self.ready and self.process.wait() in ENDS

    def why_dead(self) -> str:
        """How it ended."""
        status = self.process.wait()
        if status < 0:
            return f"its worker process was killed by {signal.Signals(-status).name}"
        log = (self.folder / "log").read_text(errors="replace").strip().splitlines()
        return f"its worker process ended with status {status}: {log[-1] if log else 'no word'}"

    def close(self) -> None:
        """End it, with what it started: at once, or as soon as it has started, since one that is
        killed before leaves files behind that nobody knows of.
        """
        if not self.ready:
            self.connection.poll(SECONDS_TO_START)
        self.connection.close()  # it clears up and ends, also when this process goes no further
        try:
            self.process.wait(SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


class Pool:
    """Grades jobs in a number of workers. Use it as a context manager.

    Args:
        size: number of workers.
        stopped: asked twice a second; True ends the run with what is done.
        sandbox: whether the jobs are to run in sandboxes.
    """

    def __init__(
        self, size: int, stopped: Callable[[], bool] = lambda: False, sandbox: bool = True
    ):
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
        """Results as they come. Jobs are taken only when a worker has room for one.

        Raises:
            UserError: when a worker can't start.
        """
        new = (Task(job) for job in jobs)
        waiting: deque[Task] = deque()
        while not self._stopped():
            self._fill(waiting, new)
            if not any(worker.tasks for worker in self._workers):
                return
            by_connection: dict[Any, Worker] = {
                worker.connection: worker for worker in self._workers
            }
            for connection in wait(by_connection, TICK):
                yield from self._hear(by_connection[connection], waiting)
            for worker in self._workers:
                if worker.tasks and time.monotonic() - worker.heard > STUCK_SECONDS:
                    worker.process.kill()

    def _fill(self, waiting: deque[Task], new: Iterator[Task]) -> None:
        while (worker := self._free_worker()) is not None:
            task = waiting.popleft() if waiting else next(new, None)
            if task is None:
                return
            if worker is NEW:
                try:
                    worker = Worker(self._sandbox)
                except OSError as error:  # a full disk, no more processes
                    raise _cannot_start(error) from None
                self._workers.append(worker)
            worker.give(task)

    def _free_worker(self) -> Worker | New | None:
        """The worker that has least to do, ``NEW`` for one to be started, or None."""
        least = min(self._workers, key=lambda worker: len(worker.tasks), default=None)
        if least is not None and not least.tasks:
            return least
        if len(self._workers) < self._size:
            return NEW
        assert least is not None  # there is room for one worker at least
        return least if len(least.tasks) < AHEAD else None

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
            # whatever it is that broke, such as a warm kernel's parent, is made afresh
            yield from self._replace(worker, result.problem, waiting)
        else:
            yield worker.tasks.popleft().job, result

    def _replace(
        self, worker: Worker, problem: str, waiting: deque[Task]
    ) -> Iterator[tuple[Job, Result]]:
        """Take back what it had; only the job that it was at has been tried."""
        self._workers.remove(worker)
        worker.close()
        tasks = worker.tasks
        if tasks:
            result = tasks[0].again(problem)
            if result is not None:
                yield tasks.popleft().job, result
        waiting.extend(tasks)


def _cannot_start(why: object) -> UserError:
    return UserError(
        f"no grading worker could be started: {why}. Put that right and run the same command again"
    )
