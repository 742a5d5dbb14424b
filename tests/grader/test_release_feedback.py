"""`nbgrader release_feedback` for a class in which one learner's own files are damaged."""

import pytest
from nbgrader.utils import notebook_hash

from tests.grader.tiny import LAB, make_course, nbgrader, source_notebook, write

pytestmark = pytest.mark.slow(5)

TIME = "timestamp.txt"
SECRET = "submission_secret.txt"
# What each learner handed in beside the notebook, which nbgrader keeps beside their feedback.
DAMAGED = {
    "no-secret": {TIME: b"2026-01-02 10:00:00 UTC"},
    "no-time": {SECRET: b"of no-time"},
    "odd-secret": {TIME: b"2026-01-02 10:00:00 UTC", SECRET: b"\xff"},
    "folder": {TIME: b"2026-01-02 10:00:00 UTC", f"{SECRET}/x.txt": b""},
    "[a-z]*": {SECRET: b"of a pattern"},
}
HONEST = ("alice", "mallory-s-neighbour", "zoe")


def released(course, secret):
    """Return the page that the learner with a secret can fetch."""
    name = notebook_hash(secret=secret, notebook_id=LAB)
    path = course / "exchange" / "open-the-hood" / "feedback" / f"{name}.html"
    return path.read_text() if path.exists() else None


def test_each_learner_gets_their_page_whoever_gets_none(tmp_path):
    course = make_course(tmp_path / "course")
    write(source_notebook(), course / "source" / LAB / f"{LAB}.ipynb")
    honest = {name: {TIME: b"2026", SECRET: f"of {name}".encode()} for name in HONEST}
    for student, files in (DAMAGED | honest).items():
        for name, data in {f"{LAB}.html": student.encode(), **files}.items():
            write(data, course / "feedback" / student / LAB / name)
    done = nbgrader(course, "release_feedback", LAB)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert {name: released(course, f"of {name}") for name in HONEST} == {n: n for n in HONEST}
    pages = course / "exchange" / "open-the-hood" / "feedback"
    assert len(list(pages.iterdir())) == len(HONEST)
    for student in DAMAGED:
        assert f"{student}: the feedback is not released" in done.stderr
