"""The program of a worker process: it receives jobs over a socket and sends results back.

``python -m hood.grader.batch.worker DESCRIPTOR FOLDER [warm]``; ``warm`` means that jobs run in
sandboxes. A sandbox dies with the *thread* that started it, so jobs run in the main thread.
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

from hood.grader.inside.long_lived import long_lived
from hood.grader.sandbox.warm_process import shut_down, warm_up
from hood.grader.submission.bounds import bounded

if TYPE_CHECKING:
    from hood.grader.batch.job import Job, Result


def main(descriptor: int, folder: Path, warm: bool) -> None:
    """Grade jobs until the other end closes the connection or the grader fails."""
    if warm:
        warm_up()  # takes seconds, while this process imports the next module
    with long_lived():
        from hood.grader.batch.grading import grade, prepare

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
        shut_down()  # the job is tried again in another worker; this worker ends
        connection.send(result)
    except OSError:
        pass  # the other end has closed the connection
    leave(folder)


def listen(connection: Connection, jobs: queue.SimpleQueue[Job], folder: Path) -> None:
    """Receive jobs as they come, so that the sender never waits.

    When the connection ends, end this process.
    """
    try:
        while True:
            jobs.put(connection.recv())
    except (EOFError, OSError):
        leave(folder)


def leave(folder: Path) -> None:
    """Delete the folder (the main thread may still write into it), and end this process."""
    while folder.exists():
        shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]), "warm" in sys.argv[3:])
