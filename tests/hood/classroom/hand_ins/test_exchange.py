"""`nbgrader collect` and `release_feedback`, with an exchange that learners can write to.

No link is followed, and no submission stops the command.
"""

import os
import shutil
from datetime import datetime
from pathlib import Path

import pytest
from nbgrader.api import Gradebook
from nbgrader.coursedir import CourseDirectory
from nbgrader.utils import notebook_hash

from hood.classroom.hand_ins.exchange import Collect
from tests.hood.tiny import LAB, make_course, nbgrader, released, solved, source_notebook, write

pytestmark = pytest.mark.slow(25)

SECRET = b"canary-of-the-grading-machine"
TIME = "2026-01-02 10:00:00.000000 UTC"


SCRIPT = "<img src=x onerror=alert(1)>"


def inbound(course, student, name=None):
    """Return where `nbgrader submit` would put a learner's submission in the exchange."""
    name = name or f"{student}+{LAB}+{TIME}"
    folder = course / "exchange" / "open-the-hood" / "inbound" / name
    folder.parent.mkdir(parents=True, exist_ok=True)
    return folder


def hand_in(course, student, nb, name=None):
    folder = inbound(course, student, name)
    folder.mkdir()
    if nb is not None:
        write(nb, folder / f"{LAB}.ipynb")
    write(TIME.encode(), folder / "timestamp.txt")
    return folder


def hostile_exchange(course):
    source = course / "source" / LAB / f"{LAB}.ipynb"
    secret = write(SECRET, course / "secret.txt")
    right = solved(released(source_notebook()))
    folder = hand_in(course, "honest", right)
    write(b"1,2", folder / "data" / "numbers.csv")
    write(b"", folder / "__pycache__" / "x.pyc")
    hand_in(course, "Zoe\u0308", right)
    os.symlink(source, hand_in(course, "link", None) / f"{LAB}.ipynb")
    os.link(source, hand_in(course, "hard-link", None) / f"{LAB}.ipynb")
    folder = hand_in(course, "beside", right)
    os.symlink(secret, folder / "secret.txt")
    os.symlink(source.parent, folder / "data")
    os.link(secret, folder / "hard.txt")
    os.mkfifo(folder / "pipe.csv")
    os.symlink("/dev/zero", folder / "zero.bin")
    os.symlink(source.parent, inbound(course, "linked-folder"))
    os.symlink("nowhere", inbound(course, "broken"))
    os.mkfifo(inbound(course, "pipe"))
    write(b"{}", inbound(course, "file"))
    for name in (f"..+{LAB}+{TIME}", f".+{LAB}+{TIME}", f"when+{LAB}+yesterday", f"x+{LAB}+9e9"):
        hand_in(course, "", right, name)
    hand_in(course, "", right, f"{SCRIPT}+{LAB}+{TIME}")
    deep(hand_in(course, "deep", right))
    folder = hand_in(course, "odd-time", right)
    (folder / "timestamp.txt").unlink()
    write(b"x", folder / "timestamp.txt" / "x")
    with (hand_in(course, "sparse", right) / "weights.pt").open("wb") as file:
        file.truncate(1 << 40)


def deep(folder):
    """Make a file with an absolute path that is too long for the system."""
    inside = os.open(folder, os.O_RDONLY)
    for _ in range(20):
        os.mkdir("d" * 250, dir_fd=inside)
        below = os.open("d" * 250, os.O_RDONLY, dir_fd=inside)
        os.close(inside)
        inside = below
    os.close(os.open("x.txt", os.O_CREAT | os.O_WRONLY, dir_fd=inside))
    os.close(inside)


@pytest.fixture(scope="module")
def collected(tmp_path_factory):
    """A course, and the output of `nbgrader collect` in it."""
    course = make_course(tmp_path_factory.mktemp("collect") / "course [x]")
    write(source_notebook(), course / "source" / LAB / f"{LAB}.ipynb")
    Gradebook(f"sqlite:///{course / 'gradebook.db'}").close()
    hostile_exchange(course)
    return course, nbgrader(course, "collect", LAB)


def files(course: Path, student: str) -> set[str]:
    folder = course / "submitted" / student / LAB
    return {p.relative_to(folder).as_posix() for p in folder.rglob("*") if not p.is_dir()}


def test_the_command_finishes(collected):
    _, done = collected
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr


def test_honest_submissions_are_collected_unchanged(collected):
    course, _ = collected
    assert files(course, "honest") == {f"{LAB}.ipynb", "timestamp.txt", "data/numbers.csv"}
    assert files(course, "Zo\xeb") == {f"{LAB}.ipynb", "timestamp.txt"}  # as in the roster
    given = inbound(course, "honest") / f"{LAB}.ipynb"
    assert (course / "submitted/honest" / LAB / given.name).read_bytes() == given.read_bytes()


@pytest.mark.parametrize("student", ["link", "hard-link"])
def test_a_linked_notebook_is_left_out(collected, student):
    course, done = collected
    assert files(course, student) == {"timestamp.txt"}
    assert f"'{LAB}.ipynb' was left out" in done.stderr


def test_beside_a_notebook_only_files_are_collected(collected):
    course, _ = collected
    assert files(course, "beside") == {f"{LAB}.ipynb", "timestamp.txt"}
    assert files(course, "sparse") == {f"{LAB}.ipynb", "timestamp.txt"}


def test_a_path_that_is_too_long_is_left_out(collected):
    course, done = collected
    assert files(course, "deep") == {f"{LAB}.ipynb", "timestamp.txt"}
    assert "its path is too long" in done.stderr


def test_a_submission_that_cannot_be_copied_is_named_and_the_others_are_collected(
    tmp_path, monkeypatch
):
    """The test holds for any error."""
    collect = Collect(coursedir=CourseDirectory(root=str(tmp_path), assignment_id=LAB))
    collect.inbound_path = str(tmp_path / "inbound")
    collect.src_records = [
        {"username": name, "filename": name, "timestamp": datetime.min} for name in "abc"
    ]
    for name in "abc":
        (tmp_path / "inbound" / name).mkdir(parents=True)

    def copy(self, src, dest, log=None):
        if src.endswith("b"):
            raise OSError("gone")
        os.makedirs(dest)

    monkeypatch.setattr(Collect, "do_copy", copy)
    collect.copy_files()
    assert sorted(os.listdir(tmp_path / "submitted")) == ["a", "b", "c"]
    assert os.listdir(tmp_path / "submitted" / "b") == []


def test_submissions_under_another_users_name_do_not_count(tmp_path, monkeypatch):
    collect = Collect(coursedir=CourseDirectory(root=str(tmp_path), assignment_id=LAB))
    owners = {"1": "ann", "2": "eve", "3": "www", "4": "www"}
    monkeypatch.setattr(collect, "_owner", lambda record: owners[record["filename"]])

    def newest(username, *filenames):
        records = [
            {"username": username, "filename": f, "timestamp": datetime(2026, 1, int(f))}
            for f in filenames
        ]
        return collect._sort_by_timestamp(records)[0]["filename"]

    assert newest("ann", "1", "2") == "1"
    assert newest("bob", "3", "4") == "4"  # all are handed in by one service
    collect.check_owner = False
    assert newest("ann", "1", "2") == "2"


@pytest.mark.parametrize("student", ["linked-folder", "broken", "pipe", "file"])
def test_an_entry_other_than_a_folder_is_collected_as_an_empty_folder(collected, student):
    course, done = collected
    assert (course / "submitted" / student / LAB).is_dir()
    assert files(course, student) == set()
    assert f"{student}: nothing is collected" in done.stderr


def test_improper_names_are_skipped_and_nothing_is_written_elsewhere(collected):
    course, done = collected
    assert not (course / LAB).exists()
    assert not (course / "submitted" / LAB).exists()
    assert not (course / "submitted" / "when").exists()
    assert not (course / "submitted" / SCRIPT).exists()
    assert "an id can't have '<'" in done.stderr


def test_no_secret_is_collected(collected):
    course, _ = collected
    found = [p for p in (course / "submitted").rglob("*") if p.is_symlink()]
    assert found == []
    for path in (course / "submitted").rglob("*"):
        if path.is_file():
            assert SECRET not in path.read_bytes()
            assert b"BEGIN HIDDEN TESTS" not in path.read_bytes()


def test_a_newer_submission_replaces_an_older_one(collected, tmp_path):
    course = tmp_path / "course"
    shutil.copytree(collected[0], course, ignore=lambda *_: {"inbound"})
    folder = hand_in(course, "honest", b"{}", f"honest+{LAB}+2026-02-02 10:00:00.000000 UTC")
    done = nbgrader(course, "collect", LAB, "--update")
    assert done.returncode == 0, done.stderr
    assert files(course, "honest") == {f"{LAB}.ipynb", "timestamp.txt"}
    assert (course / "submitted/honest" / LAB / f"{LAB}.ipynb").read_bytes() == b"{}"
    assert folder.is_dir()


def test_if_the_newer_submission_is_too_large_the_older_one_stays(tmp_path):
    collect = Collect(
        coursedir=CourseDirectory(root=str(tmp_path), assignment_id=LAB, max_dir_size=1)
    )
    collect.update, collect.inbound_path = True, str(tmp_path / "inbound")
    old = tmp_path / "submitted" / "ann" / LAB
    write(b"old", old / f"{LAB}.ipynb")
    write(TIME.encode(), old / "timestamp.txt")
    write(b"x" * 5000, tmp_path / "inbound" / "new" / f"{LAB}.ipynb")
    newer = datetime(2100, 1, 1)
    collect.src_records = [{"username": "ann", "filename": "new", "timestamp": newer}]
    collect.copy_files()
    assert (old / f"{LAB}.ipynb").read_bytes() == b"old"
    assert (old / "timestamp.txt").read_bytes() == TIME.encode()


TIMESTAMP, OWN_SECRET = "timestamp.txt", "submission_secret.txt"
# Each learner's other files, which nbgrader keeps beside their feedback.
DAMAGED = {
    "no-secret": {TIMESTAMP: b"2026-01-02 10:00:00 UTC"},
    "no-time": {OWN_SECRET: b"of no-time"},
    "odd-secret": {TIMESTAMP: b"2026-01-02 10:00:00 UTC", OWN_SECRET: b"\xff"},
    "folder": {TIMESTAMP: b"2026-01-02 10:00:00 UTC", f"{OWN_SECRET}/x.txt": b""},
    "[a-z]*": {OWN_SECRET: b"of a pattern"},
}
HONEST = ("alice", "mallory-s-neighbour", "zoe")


def page_of(course, secret):
    """Return the page that the learner with this secret can fetch."""
    name = notebook_hash(secret=secret, notebook_id=LAB)
    path = course / "exchange" / "open-the-hood" / "feedback" / f"{name}.html"
    return path.read_text() if path.exists() else None


def test_each_learner_gets_their_page_even_if_others_get_none(tmp_path):
    course = make_course(tmp_path / "course [x]")
    write(source_notebook(), course / "source" / LAB / f"{LAB}.ipynb")
    honest = {name: {TIMESTAMP: b"2026", OWN_SECRET: f"of {name}".encode()} for name in HONEST}
    for student, files in (DAMAGED | honest).items():
        for name, data in {f"{LAB}.html": student.encode(), **files}.items():
            write(data, course / "feedback" / student / LAB / name)
    done = nbgrader(course, "release_feedback", LAB)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert {name: page_of(course, f"of {name}") for name in HONEST} == {n: n for n in HONEST}
    pages = course / "exchange" / "open-the-hood" / "feedback"
    assert len(list(pages.iterdir())) == len(HONEST)
    for student in DAMAGED:
        assert f"{student}: the feedback is not released" in done.stderr
    said = "no-secret: the feedback is not released: the submission has no submission_secret.txt."
    assert said in done.stderr
    page = course / "feedback" / "no-secret" / LAB
    assert f"Send the learner this page in another way: {page}" in done.stderr
    done = nbgrader(course, "release_feedback", "other")
    assert "No feedback was released: no folder" in done.stderr
    done = nbgrader(course, "release_feedback", "ps (1)")
    assert done.returncode != 0
    assert "'ps (1)' can't be the name of a lab: it has '('." in done.stderr
