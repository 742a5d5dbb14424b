"""Worker processes on this machine. Each worker grades one job at a time, in its main thread."""

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
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path

from hood import UserError
from hood.course import course_folder
from hood.grader.batch.job import Job, Result, failed, given_up
from hood.grader.batch.turns import Turn, Turns
from hood.grader.inside import cgroup
from hood.grader.sandbox.warm_process import NO_GPU
from hood.grader.submission.bounds import ENDS, TOO_MUCH
from hood.phase_paths import environment_with

TRIES = 3
# Jobs per worker: while one job is graded, the next job is already read.
AHEAD = 2
TICK = 0.5
# A sandbox ends a notebook long before this time. A worker that takes longer is killed.
STUCK_SECONDS = 3600.0
SECONDS_TO_START = 60.0
SECONDS_TO_END = 2.0


class Worker:
    """A process that grades the jobs sent to it. The worker ends when its parent process ends.

    A worker is a separate program, because a daemonic process, such as a Dask worker, may not start
    ``multiprocessing`` children. A worker runs in its own session, so that Ctrl-C does not end it.
    """

    def __init__(self, sandbox: bool = True, nice: int = 0) -> None:
        self._socket, theirs = socket.socketpair()
        self.folder = Path(tempfile.mkdtemp(prefix="open-the-hood-worker-"))
        self.ready = False
        program = [sys.executable, "-m", "hood.grader.batch.worker", str(theirs.fileno())]
        program = ["nice", "-n", str(nice), *program] if nice else program
        warm = ["warm"] if sandbox else []
        try:
            with theirs, (self.folder / "log").open("wb") as log:
                self.process = subprocess.Popen(
                    [*program, str(self.folder), *warm],
                    env=environment_with(course_folder()) | NO_GPU,
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
        except OSError:
            self._socket.close()
            shutil.rmtree(self.folder, ignore_errors=True)
            raise
        self.connection = Connection(os.dup(self._socket.fileno()))

    def grade(self, job: Job) -> Result:
        """Grade a job in the worker.

        Raises EOFError if the worker has died, or was closed.
        """
        result = None
        try:
            self.connection.send(job)
            while result is None:  # the worker's first message says that it has started
                if not self.connection.poll(STUCK_SECONDS):
                    self.process.kill()
                result = self.connection.recv()
                self.ready = True
        except OSError as error:
            raise EOFError from error
        return result

    def why_dead(self) -> str:
        """Wait for the worker's end, and return the reason in words."""
        status = self.process.wait()
        if status < 0:
            return f"its worker process was killed by {signal.Signals(-status).name}"
        log: list[str] = []
        with contextlib.suppress(FileNotFoundError):  # it was closed
            log = (self.folder / "log").read_text(errors="replace").strip().splitlines()
        return f"its worker process ended with status {status}: {log[-1] if log else 'no output'}"

    def close(self) -> None:
        """End the worker and its processes, even while another thread waits for a result."""
        # a worker that is killed while it starts leaves files behind
        end = time.monotonic() + SECONDS_TO_START
        while not (self.ready or self.connection.poll(TICK) or time.monotonic() > end):
            pass
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # the worker then cleans up and ends
        try:
            self.process.wait(SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._socket.close()
        shutil.rmtree(self.folder, ignore_errors=True)


class Workers:
    """The workers of this process. An idle worker waits for the next job.

    ``nice`` is the niceness of the workers, and of all sandboxes that they make.
    """

    def __init__(self, nice: int = 0) -> None:
        self._nice = nice
        self.idle: list[Worker] = []
        self.busy: set[Worker] = set()

    def grade(self, job: Job) -> Result:
        """Grade a job once. Several threads may call this; each thread gets its own worker.

        Raises UserError if a worker cannot be started.
        """
        try:
            worker = self.idle.pop()
        except IndexError:
            try:
                worker = Worker(job.sandbox, self._nice)
            except OSError as error:  # a full disk, no more processes
                raise _cannot_start(error) from None
        self.busy.add(worker)
        try:
            result = worker.grade(job)
            broken = result.retryable  # perhaps because of its zygote
        except EOFError:
            broken, problem = True, worker.why_dead()
            if not worker.ready:
                worker.close()
                raise _cannot_start(problem) from None
            too_much = worker.process.returncode in ENDS
            result = given_up(job, TOO_MUCH) if too_much else failed(job, problem)
        finally:
            self.busy.discard(worker)
        if broken:
            worker.close()
        else:
            self.idle.append(worker)
        return result


class Pool:
    """Grades jobs in several workers. Use it as a context manager.

    ``stopped`` is called twice a second. When it returns True, the run ends, and unfinished jobs
    have no result.
    """

    def __init__(
        self, size: int, stopped: Callable[[], bool] = lambda: False, sandbox: bool = True
    ):
        if sandbox:
            cgroup.enter()  # before its workers start, because they make their sandboxes' groups
        self._size = size
        self._stopped = stopped
        self.workers = Workers()

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self.workers.idle:
            worker.close()

    def run(self, jobs: Iterable[Job]) -> Iterator[tuple[Job, Result]]:
        """Yield results as they arrive. Jobs are taken only shortly before they are graded.

        A job that takes longer than others is graded after them (:mod:`hood.grader.batch.turns`).
        Raises UserError if a worker cannot be started.
        """
        turns, ended, known = Turns(jobs), False, 0
        at_work: dict[Future[tuple[Result, int]], Turn] = {}

        def tried(turn: Turn) -> tuple[Result, int]:
            others = turns.waiting or known > self._size
            shared = others and not turn.job.whole
            job = replace(turn.job, turn=turns.seconds(turn) if shared else 0)
            for _ in range(TRIES):
                result = self.workers.grade(job)
                if not result.retryable or ended:
                    return result, job.turn
            return failed(job, f"the grader failed {TRIES} times: {result.problem}"), job.turn

        with ThreadPoolExecutor(self._size) as threads:
            try:
                while not self._stopped():
                    fresh: list[Turn] = []
                    room = AHEAD * self._size - len(at_work)
                    while len(fresh) < room and (turn := turns.next()):
                        fresh.append(turn)
                    known = len(at_work) + len(fresh)  # counted before the first new job begins
                    at_work |= {threads.submit(tried, turn): turn for turn in fresh}
                    if not at_work:
                        return
                    for future in wait(at_work, TICK, FIRST_COMPLETED).done:
                        turn, (result, seconds) = at_work.pop(future), future.result()
                        known = len(at_work)
                        if result.turn_over:
                            turns.put_off(turn, seconds)
                        else:
                            turns.ended(sum(one.seconds for one in result.notebooks))
                            yield turn.job, result
            finally:
                ended = True
                for future in at_work:
                    future.cancel()
                while wait(at_work, 0).not_done:
                    for worker in list(self.workers.busy):
                        worker.close()
                    wait(at_work, TICK)


_kept: dict[bool, Pool] = {}


@contextlib.contextmanager
def lasting_pool(size: int, stopped: Callable[[], bool], sandbox: bool) -> Iterator[Pool]:
    """Yield a pool that keeps idle workers for later calls in this process. Formgrader uses it."""
    pool = _kept.setdefault(sandbox, Pool(size, sandbox=sandbox))
    pool._size, pool._stopped = size, stopped
    yield pool


def _cannot_start(why: object) -> UserError:
    return UserError(
        f"no grading worker could be started: {why}. Fix this, and run the same command again"
    )
