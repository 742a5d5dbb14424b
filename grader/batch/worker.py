"""The program that a worker process runs: jobs come in over a socket, results go out.

``python -m grader.batch.worker DESCRIPTOR FOLDER [warm]``, started by
:class:`grader.batch.pool.Worker`; ``warm`` where jobs are to run in sandboxes.
Jobs run in the main thread, because a sandbox dies with the *thread* that started it.
"""

from __future__ import annotations

import os
import queue
import shutil
import sys
import threading
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING

from grader.sandbox.warm_process import cool, warm_up
from grader.submission.bounds import bounded

if TYPE_CHECKING:
    from grader.batch.job import Job, Result


def main(descriptor: int, folder: Path, warm: bool) -> None:
    """Grade until the other end closes, or something breaks that is not the learner's."""
    if warm:
        warm_up()  # it imports for seconds, and so does the next line
    from grader.batch.grading import grade, prepare

    def one(job: Job) -> Result:
        prepare(job)
        with bounded():
            return grade(job, folder, in_bounds=True)

    connection = Connection(descriptor)
    jobs: queue.SimpleQueue[Job] = queue.SimpleQueue()
    threading.Thread(target=listen, args=(connection, jobs, folder), daemon=True).start()
    try:
        connection.send(None)
        while not (result := one(jobs.get())).retryable:
            connection.send(result)
        cool()  # another process will try again; this one does nothing more
        connection.send(result)
    except OSError:
        pass  # nobody is there
    leave(folder)


def listen(connection: Connection, jobs: queue.SimpleQueue[Job], folder: Path) -> None:
    """Take jobs as they come, so that sending one never blocks; end when nobody is there."""
    try:
        while True:
            jobs.put(connection.recv())
    except (EOFError, OSError):
        leave(folder)


def leave(folder: Path) -> None:
    """End this process. Its main thread may still be writing into the folder."""
    while folder.exists():
        shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]), "warm" in sys.argv[3:])
