"""Worker processes: results, back-pressure, killed workers, an early end.

Grading is simulated. Workers have no zygote, except in tests of how a worker with a zygote ends.
"""

import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hood import UserError
from hood.grader.batch import pool as module
from hood.grader.batch.pool import AHEAD, Pool
from hood.grader.submission.bounds import bounded
from hood.phase_paths import ROOT
from tests.hood.classroom.recording.small import answers, make_small
from tests.patience import PATIENCE, eventually

pytestmark = pytest.mark.slow(25)


@pytest.fixture
def course(tmp_path):
    return make_small(tmp_path / "course")


def test_each_job_gets_its_own_result_even_if_other_workers_die(course, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "TRIES", 2)
    flag = tmp_path / "killed"
    jobs = answers(course, "score 1", f"kill once {flag}", "kill", "score 2", "raise", "score 0")
    with Pool(2, sandbox=False) as pool:
        found = {job.student: result for job, result in pool.run(jobs)}
    outcome = {
        student: (result.notebooks[0].scores["test"], result.retryable)
        for student, result in found.items()
    }
    assert outcome == {
        "s0": (1.0, False),
        "s1": (2.0, False),  # the second try
        "s2": (None, True),
        "s3": (2.0, False),
        "s4": (None, True),
        "s5": (0.0, False),
    }
    assert "failed 2 times" in found["s2"].problem
    assert "SIGKILL" in found["s2"].problem
    assert b"A person will look at it" in found["s2"].notebooks[0].data


def test_a_worker_sees_no_gpu_that_a_sandbox_lacks():
    """Otherwise the check would refuse sandboxed answers, which can't use this machine's GPU."""
    worker = module.Worker(sandbox=False)
    path = Path(f"/proc/{worker.process.pid}/environ")
    try:  # at its start, the process has no zygote yet
        found = eventually(lambda: path.read_bytes().strip(b"\0")).split(b"\0")
    finally:
        worker.close()
    assert b"CUDA_VISIBLE_DEVICES=" in found


def test_jobs_are_made_only_when_a_worker_is_free(course):
    made = []

    def jobs():
        for job in answers(course, *["score 1"] * 12):
            made.append(job.student)
            yield job

    with Pool(1, sandbox=False) as pool:
        for done, _ in enumerate(pool.run(jobs()), 1):
            assert len(made) <= done + AHEAD
        [worker] = pool.workers.idle
        # These submissions have no check, and importing torch takes longer than everything else.
        assert "libtorch" not in Path(f"/proc/{worker.process.pid}/maps").read_text()
    assert len(made) == 12


def test_a_worker_that_cannot_start_is_an_error_and_not_a_verdict(course, monkeypatch, tmp_path):
    monkeypatch.setattr(module.sys, "executable", "/bin/false")
    monkeypatch.setattr(module.tempfile, "tempdir", str(tmp_path / "aside"))
    (tmp_path / "aside").mkdir()
    with Pool(1) as pool, pytest.raises(UserError, match="could be started"):
        list(pool.run(answers(course, "score 1")))
    assert list((tmp_path / "aside").iterdir()) == []


def test_a_failure_to_start_workers_is_reported(course, monkeypatch):
    def full(**_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module.tempfile, "mkdtemp", full)
    with Pool(1) as pool, pytest.raises(UserError, match="could be started: .*No space left"):
        list(pool.run(answers(course, "score 1")))


def test_a_stuck_worker_is_killed(course, monkeypatch):
    monkeypatch.setattr(module, "STUCK_SECONDS", PATIENCE)
    monkeypatch.setattr(module, "TRIES", 1)
    with Pool(1, sandbox=False) as pool:
        outcome = {}
        jobs = answers(course, "score 1", "sleep 3600", "score 2")
        for job, seconds in zip(jobs, (PATIENCE, 1.0, PATIENCE), strict=True):
            monkeypatch.setattr(module, "STUCK_SECONDS", seconds)
            [(_, result)] = pool.run([job])
            outcome[job.student] = result.notebooks[0].scores["test"]
    assert outcome == {"s0": 1.0, "s1": None, "s2": 2.0}


def test_a_submission_with_too_much_work_is_given_up_and_is_no_failure(course, strict):
    """The time is spent in C code, where no Python signal handler runs. The job is not retried."""
    given = ("score 1", "toil", "score 2", "hoard 1000", "hoard 10")
    with Pool(1, sandbox=False) as pool:
        found = {job.student: result for job, result in pool.run(answers(course, *given))}
    marks = {student: result.notebooks[0].scores for student, result in found.items()}
    assert [marks[s]["test"] for s in ("s0", "s2", "s4")] == [1.0, 2.0, 2.0]
    assert not any(result.retryable for result in found.values())
    for dear in ("s1", "s3"):
        assert marks[dear] == {"test": None, "why": None}
        assert "took too much work" in found[dear].problem
        assert b"took too much work" in found[dear].notebooks[0].data


def test_the_bounds_hold_for_one_submission():
    before = resource.getrlimit(resource.RLIMIT_DATA)
    with bounded(3600.0):
        assert resource.getrlimit(resource.RLIMIT_DATA)[0] < 2**40
        assert signal.getitimer(signal.ITIMER_PROF)[0] > 0
        code = "import resource, signal; print(signal.getitimer(signal.ITIMER_PROF)[0])"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert float(done.stdout) == 0
    assert resource.getrlimit(resource.RLIMIT_DATA) == before
    assert signal.getitimer(signal.ITIMER_PROF)[0] == 0


def test_a_stopped_pool_ends_soon_and_leaves_no_process_or_folder(course):
    done = []
    with Pool(1, stopped=lambda: bool(done)) as pool:
        for job, _ in pool.run(answers(course, "score 1", "sleep 3600")):
            done.append(job.student)
            [worker] = pool.workers.busy
            assert worker.folder.exists()
    assert done == ["s0"]
    assert is_gone(worker.process.pid)
    assert not worker.folder.exists()


def test_an_idle_worker_waits_for_the_next_job_and_a_busy_one_does_not(course, monkeypatch):
    monkeypatch.setattr(module, "_kept", {})
    stop, used = [], []
    for answer in ("score 1", "score 2", "sleep 3600"):
        [job] = answers(course, answer)
        with module.lasting_pool(1, lambda: bool(stop), False) as pool:
            for _ in pool.run([job] if answer.startswith("score") else slow_to_end(job, stop)):
                used += [worker.process.pid for worker in pool.workers.idle]
    assert used[0] == used[1]
    assert not pool.workers.idle
    assert is_gone(used[0])


def slow_to_end(job, stop):
    """Yield a job, and stop the pool as soon as a worker has it."""
    yield job
    stop.append(True)


@pytest.mark.parametrize("ready", [True, False])
def test_workers_end_when_their_parent_is_gone(ready):
    code = (
        "import os, signal\n"
        "from hood.grader.batch.pool import Worker\n"
        "worker = Worker()\n"
        f"{ready} and worker.connection.recv()\n"
        "print(worker.process.pid, worker.folder, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    pid, folder = done.stdout.split()
    eventually(lambda: is_gone(int(pid)), "the worker's end")
    eventually(lambda: not os.path.exists(folder), "the end of its folder")


def is_gone(pid):
    """Return whether the process has ended; a zombie counts as ended."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_a_worker_that_cannot_be_made_leaves_no_folder(monkeypatch, tmp_path):
    def refuses(*args, **options):
        raise OSError(11, "no more processes")

    monkeypatch.setattr(module.tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(module.subprocess, "Popen", refuses)
    with pytest.raises(OSError, match="no more processes"):
        module.Worker()
    assert list(tmp_path.iterdir()) == []
