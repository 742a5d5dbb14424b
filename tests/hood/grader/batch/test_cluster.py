"""The batch on a Dask cluster of two real worker processes."""

import os

import pytest

pytest.importorskip("distributed", reason="the extra `cluster` is not installed")

from distributed import LocalCluster

from hood import UserError
from hood.grader.batch import cluster, pool
from hood.grader.batch.cluster import Cluster
from hood.manifest import versions
from hood.phase_paths import ROOT
from tests.hood.classroom.recording.running import OPEN, count, marks, run
from tests.hood.classroom.recording.small import answers, hand_in, make_small
from tests.hood.other_versions import pretend

pytestmark = pytest.mark.slow(20)


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    return make_small(tmp_path_factory.mktemp("small"))


@pytest.fixture(scope="module")
def scheduler():
    """A cluster of two workers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
        with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as made:
            yield made


def test_every_job_gets_its_result_even_if_a_worker_dies(course, scheduler, tmp_path):
    flag = tmp_path / "killed"
    given = ("score 1", f"kill once {flag}", "score 2", "score 0")
    with Cluster(scheduler.scheduler_address) as executor:
        outcome = {
            job.student: (result.notebooks[0].scores["test"], result.retryable)
            for job, result in executor.run(answers(course, *given))
        }
    assert outcome == {
        "s0": (1.0, False),
        "s1": (2.0, False),
        "s2": (2.0, False),
        "s3": (0.0, False),
    }


def test_the_command_grades_on_the_cluster(course, scheduler):
    for student in ("ann", "bob"):
        hand_in(course, student, "score 1.5")
    words = ("--scheduler", scheduler.scheduler_address, OPEN, "--students", "ann", "bob")
    status, text = run(course, *words)
    assert (status, count(text, "graded")) == (0, 2)
    assert marks(course.root, "ann", "hw")["test"] == 1.5


def test_a_stuck_child_is_killed(course, monkeypatch):
    """A stuck child is killed as in the local pool, and the job is tried again."""
    monkeypatch.setattr(pool, "STUCK_SECONDS", 30.0)
    [job] = answers(course, "score 1")
    assert cluster.grade_in_child(job)  # the now idle child has started
    monkeypatch.setattr(pool, "STUCK_SECONDS", 0.5)
    [job] = answers(course, "sleep 3600")
    with pytest.raises(RuntimeError, match="SIGKILL"):
        cluster.grade_in_child(job)
    assert not cluster._workers.idle


def test_a_submission_with_too_much_work_is_given_up_on_the_cluster_too(course, strict):
    [job] = answers(course, "toil")
    result = cluster.grade_in_child(job)
    assert not result.retryable
    assert "took too much work" in result.problem
    assert result.notebooks[0].scores["test"] is None
    for worker in cluster._workers.idle:
        worker.close()
    cluster._workers.idle.clear()


def test_a_worker_with_another_torch_is_refused_before_anything_is_graded(tmp_path, monkeypatch):
    had = versions()["torch"]
    pretend(tmp_path, "torch", "9.9.9")
    options = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": None}
    monkeypatch.syspath_prepend(tmp_path)  # the worker reads it at its start
    with LocalCluster(**options) as other:
        monkeypatch.undo()
        both = rf"tcp://\S+ has torch 9\.9\.9, but this command has torch {had}\. A grade must not"
        with pytest.raises(UserError, match=both):
            Cluster(other.scheduler_address)


def test_a_missing_scheduler_is_reported():
    with pytest.raises(UserError, match="no Dask scheduler"):
        Cluster("tcp://127.0.0.1:1", timeout=1)


def test_a_lost_scheduler_ends_the_run_with_a_message(course):
    options = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(**options) as lost, Cluster(lost.scheduler_address) as executor:
        found = executor.run(answers(course, "score 1", "sleep 3600"))
        assert next(found)[0].student == "s0"
        lost.close()
        with pytest.raises(UserError, match="is lost"):
            list(found)
