"""A gradebook older than the graded files is noticed before grading."""

import shutil

import pytest
from nbgrader.api import Gradebook

from hood import UserError
from hood.classroom.gradebook.book_age import FILE
from tests.hood.classroom.recording.running import marks, run
from tests.hood.classroom.recording.small import HW, enter, hand_in, make_small


@pytest.fixture
def course(tmp_path, here):
    """A course with one graded learner, and a copy of its gradebook before the second grading."""
    course = make_small(tmp_path / "course")
    hand_in(course, "ann", "score 1")
    run(course)
    shutil.copy(course.root / "gradebook.db", course.root / "copy.db")
    hand_in(course, "bob", "score 2")
    return course


def put_back(course):
    shutil.copy(course.root / "copy.db", course.root / "gradebook.db")


def test_an_older_gradebook_is_refused_until_it_is_accepted(course, here):
    run(course)
    put_back(course)
    before = (course.root / "gradebook.db").read_bytes()
    with pytest.raises(UserError, match=r"older than .* one learner's files there \(bob in hw\)"):
        run(course)
    assert "bob" not in before.decode("latin-1")
    for word in ("--preview", "--only-new", "--regrade"):
        with pytest.raises(UserError, match="--accept-older-book"):
            run(course, word)
    assert run(course, "--accept-older-book")[0] == 0
    assert marks(course.root, "bob", HW)["test"] == 2
    assert run(course)[0] == 0
    put_back(course)  # again: the gradebook has a new name now
    with pytest.raises(UserError, match="older"):
        run(course)


def test_a_new_gradebook_is_noticed_too(course, here):
    run(course)
    (course.root / "gradebook.db").unlink()
    enter(course)
    with pytest.raises(UserError, match=r"2 learners' files there \(ann in hw, bob in hw\)"):
        run(course)


def test_without_graded_files_any_gradebook_is_accepted(course, here):
    run(course)
    (course.root / "gradebook.db").unlink()
    enter(course)
    for name in ("ann", "bob"):
        shutil.rmtree(course.root / "autograded" / name)
    assert (course.root / "autograded" / FILE).exists()
    assert run(course)[0] == 0


def test_rows_removed_by_nbgrader_do_not_make_a_gradebook_older(course, here):
    run(course)
    with Gradebook(course.directory.db_url) as gradebook:
        gradebook.remove_submission(HW, "bob")
        gradebook.remove_student("bob")
    assert run(course)[0] == 0
    assert marks(course.root, "bob", HW)["test"] == 2


def test_a_run_killed_after_replacing_files_leaves_the_gradebook_accepted(
    course, here, monkeypatch
):
    def die(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("hood.classroom.recording.writer.write_count", die)
        with pytest.raises(KeyboardInterrupt):
            run(course)
    assert run(course)[0] == 0
    hand_in(course, "bob", "score 1")
    path = course.root / "autograded" / "bob" / HW / f"{HW}.ipynb"
    path.write_bytes(path.read_bytes().replace(b'"key"', b'"key": "other", "was"'))
    assert run(course)[0] == 0
    assert marks(course.root, "bob", HW)["test"] == 1


def test_a_class_graded_before_the_count_existed_goes_on(course, here):
    run(course)
    (course.root / "autograded" / FILE).unlink()
    put_back(course)
    assert run(course)[0] == 0
