"""Grading one job: every outcome becomes a result."""

import gc
import json
import pickle
import sys
from dataclasses import replace

import pytest

from hood.classroom.gradebook.graded import Graded, GradedNotebook, ReasonKind
from hood.grader.batch import grading as module
from hood.grader.batch.grading import grade
from hood.grader.batch.job import Job, LabFiles, Submission
from hood.grader.run_record import RunRecord
from hood.manifest import Manifest
from tests.hood.classroom.recording.small import hand_in, job_of, make_small

NOTHING = Manifest({}, "", "")


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    course = make_small(tmp_path_factory.mktemp("small"))
    for name, answer in [
        ("right", "score 2"),
        ("partly", "score 0.5"),
        ("too-much", "score 5"),
        ("broken", "raise"),
        ("full", "full"),
        ("empty", b""),
    ]:
        hand_in(course, name, answer, why="because")
    hand_in(course, "mute", "score 1")
    return course


def scores(result):
    return {name: score for nb in result.notebooks for name, score in nb.scores.items()}


def test_marks_are_nbgraders(course):
    assert scores(grade(job_of(course, "right"))) == {"test": 2.0, "why": None}
    assert scores(grade(job_of(course, "partly"))) == {"test": 0.5, "why": None}
    assert scores(grade(job_of(course, "mute"))) == {"test": 1.0, "why": 0.0}
    assert grade(job_of(course, "mute")).notebooks[0].unanswered == {"answer": False, "why": True}


def test_a_job_and_its_result_are_plain_data(course):
    job = job_of(course, "right")
    result = grade(pickle.loads(pickle.dumps(job)))
    assert pickle.loads(pickle.dumps(result)) == result


def test_a_mark_above_the_maximum_is_left_to_a_person(course):
    result = grade(job_of(course, "too-much"))
    assert scores(result)["test"] is None
    run = RunRecord.of(json.loads(result.notebooks[0].data)["metadata"])
    found = Graded("s", "s", {}, {}, run=GradedNotebook(notes=run.notes))
    [reason] = found.reasons()
    assert reason.kind is ReasonKind.UNGRADED
    assert "`test` is not a score" in reason.text
    assert not result.retryable


@pytest.mark.parametrize(("who", "why"), [("broken", "no kernel today"), ("full", "No space")])
def test_a_failure_of_the_grader_may_be_retried(course, who, why):
    result = grade(job_of(course, who))
    assert result.retryable
    assert why in result.problem
    assert scores(result) == {"test": None, "why": None}
    assert b"could not be graded" in result.notebooks[0].data


def test_a_failure_on_a_learners_outputs_is_not_retried(course, monkeypatch):
    monkeypatch.setattr(module, "_scores", lambda nb: 1 / 0)
    result = grade(job_of(course, "right"))
    assert not result.retryable
    assert "ZeroDivisionError" in result.problem
    assert scores(result) == {"test": None, "why": None}


def test_an_unreadable_submission_has_no_mark_and_a_note(course):
    result = grade(job_of(course, "empty"))
    assert scores(result) == {"test": None, "why": None}
    assert not result.problem
    assert b"The file is empty" in result.notebooks[0].data


def test_another_version_of_the_grader_does_not_grade(course):
    job = job_of(course, "right")
    lab = replace(job.lab, manifest=replace(job.lab.manifest, grader="another"))
    result = grade(replace(job, lab=lab))
    assert result.retryable
    assert "the worker has another version of the grader. Install the same" in result.problem


def test_a_worker_with_another_torch_says_both_versions_and_does_not_grade(course):
    job = job_of(course, "right")
    mine = job.lab.manifest.versions
    lab = replace(job.lab, manifest=replace(job.lab.manifest, versions={**mine, "torch": "1.2.3"}))
    result = grade(replace(job, lab=lab))
    assert result.retryable
    assert f"the worker has torch {mine['torch']} instead of torch 1.2.3." in result.problem


def test_a_grade_records_the_versions(course):
    job = job_of(course, "right")
    [notebook] = grade(job).notebooks
    found = RunRecord.of(json.loads(notebook.data)["metadata"])
    assert found.versions == job.lab.manifest.versions
    assert found.versions.keys() > {"Python", "torch", "nbgrader"}


@pytest.mark.parametrize(
    ("sender", "who"),
    [(True, "this worker's machine"), (False, "the machine that sent the submission")],
)
def test_worker_and_sender_must_both_be_able_to_compile_or_both_not(
    course, monkeypatch, sender, who
):
    monkeypatch.setattr(module, "can_compile", lambda notebooks: not sender)
    job = job_of(course, "right")
    result = grade(replace(job, lab=replace(job.lab, can_compile=sender)))
    assert result.retryable
    assert result.problem.endswith(f"Run `python -m hood doctor --install` on {who}")


def test_a_given_seed_is_used_and_otherwise_each_run_draws_one(course):
    given = grade(job_of(course, "right", seeds={"hw": "ab12"}))
    assert given.notebooks[0].seed == "ab12"
    drawn = {grade(job_of(course, "right")).notebooks[0].seed for _ in range(2)}
    assert len(drawn) == 2


def test_a_run_without_sandbox_is_noted_with_the_grade(course):
    assert b'"sandbox": false' in grade(job_of(course, "right", sandbox=False)).notebooks[0].data
    assert b'"sandbox": true' in grade(job_of(course, "right")).notebooks[0].data


def beside(given, theirs, kept=()):
    lab = LabFiles("hw", {}, dict.fromkeys(given, b"lab"), kept, None, NOTHING, "")
    job = Job(lab, "s", Submission({}, dict.fromkeys(theirs, b"own")), id="")
    return {name: data.decode() for name, data in job.beside().items()}


def test_the_labs_files_replace_the_learners():
    assert beside(["a.csv"], ["a.csv", "b.csv"]) == {"a.csv": "lab", "b.csv": "own"}
    assert beside(["a.csv"], ["a.csv"], kept=("a.csv",)) == {"a.csv": "own"}
    assert beside(["a.csv"], [], kept=("a.csv",)) == {"a.csv": "lab"}


def test_the_labs_file_or_folder_replaces_a_learners():
    assert beside(["data/a.csv"], ["data"]) == {"data/a.csv": "lab"}
    assert beside(["data"], ["data/a.csv"]) == {"data": "lab"}


def test_the_judge_is_imported_before_the_bounds_and_only_if_needed(course, monkeypatch):
    monkeypatch.setitem(sys.modules, "hood.grader.execution.examiner", None)
    job = job_of(course, "right")
    module.prepare(job)
    judged = replace(job, lab=replace(job.lab, notebooks={"hw": b'verify("twice", twice)'}))
    with pytest.raises(ImportError):
        module.prepare(judged)


def test_garbage_of_earlier_submissions_is_collected(course):
    job = job_of(course, "right")
    judged = replace(job, lab=replace(job.lab, notebooks={"hw": b'verify("twice", twice)'}))
    module.prepare(judged)
    before = gc.get_freeze_count()
    module.prepare(judged)
    assert gc.get_freeze_count() == before
