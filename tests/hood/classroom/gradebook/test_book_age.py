"""A gradebook that is older than graded files is noticed before anything is graded with it."""

import shutil

import pytest
from nbgrader.api import Gradebook

from hood import UserError
from hood.classroom.gradebook.book_age import FILE
from tests.hood.classroom.recording.running import marks, run
from tests.hood.classroom.recording.small import HW, enter, hand_in, make_small


@pytest.fixture
def course(tmp_path, here):
    """A course with one graded learner, and a copy of its gradebook from before the second."""
    course = make_small(tmp_path / "course")
    hand_in(course, "ann", "score 1")
    run(course)
    shutil.copy(course.root / "gradebook.db", course.root / "copy.db")
    hand_in(course, "bob", "score 2")
    return course


def put_back(course):
    shutil.copy(course.root / "copy.db", course.root / "gradebook.db")


def test_an_older_gradebook_is_refused_until_somebody_accepts_it(course, here):
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
    put_back(course)  # once more: the book has another name since
    with pytest.raises(UserError, match="older"):
        run(course)


def test_another_gradebook_is_noticed_too(course, here):
    run(course)
    (course.root / "gradebook.db").unlink()
    enter(course)
    with pytest.raises(UserError, match=r"2 learners' files there \(ann in hw, bob in hw\)"):
        run(course)


def test_nothing_speaks_against_a_gradebook_where_there_are_no_graded_files(course, here):
    run(course)
    (course.root / "gradebook.db").unlink()
    enter(course)
    for name in ("ann", "bob"):
        shutil.rmtree(course.root / "autograded" / name)
    assert (course.root / "autograded" / FILE).exists()
    assert run(course)[0] == 0


def test_what_nbgrader_removes_from_the_gradebook_makes_it_no_older_one(course, here):
    run(course)
    with Gradebook(course.directory.db_url) as gradebook:
        gradebook.remove_submission(HW, "bob")
        gradebook.remove_student("bob")
    assert run(course)[0] == 0
    assert marks(course.root, "bob", HW)["test"] == 2


def test_a_run_that_is_killed_after_it_has_replaced_files_accuses_nobody(course, here, monkeypatch):
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


def test_a_class_that_was_graded_before_there_was_a_count_goes_on(course, here):
    run(course)
    (course.root / "autograded" / FILE).unlink()
    put_back(course)
    assert run(course)[0] == 0
