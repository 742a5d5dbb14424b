"""Reading a course folder: the students, their submissions, and when two count as the same."""

import os

import nbformat
import pytest
from nbformat.notebooknode import NotebookNode
from nbgrader.preprocessors import NbGraderPreprocessor

from hood import UserError
from hood.grader.batch.grading import grade
from hood.grader.batch.intake import read_lab, read_submission_of
from hood.grader.batch.job import Job, changes
from hood.grader.course import Course, submissions
from hood.grader.submission.companions import place
from hood.grader.submission.notebook import Unreadable
from tests.hood.classroom.recording.small import HW, folders, hand_in, job_of, make_small, source
from tests.hood.grader.submission.test_files import special
from tests.hood.tiny import write
from utils.instruments.toolchain import Lack


@pytest.fixture
def course(tmp_path):
    course = make_small(tmp_path / "course")
    for name in ("ann", "bob", "abe"):
        hand_in(course, name, "score 1")
    return course


def job_id(course, sandbox=True):
    lab = read_lab(course, HW)
    return read_submission_of(course, lab, folders(course, "ann")).job_id(lab, sandbox)


def test_learners_are_found_by_pattern_each_once(course):
    (course.root / "submitted" / "cleo" / "another").mkdir(parents=True)
    (course.root / "submitted" / "dan").mkdir()
    write(b"", course.root / "submitted" / "dan" / HW)
    assert course.students("submitted", HW) == ["abe", "ann", "bob", "dan"]
    assert [*submissions(course.directory, HW, ["a*", "ann", "zoe"])] == ["abe", "ann"]
    course.directory.student_id_exclude = "bob,abe"
    assert course.students("submitted", HW) == ["ann", "dan"]


def test_a_missing_lab_is_reported_with_the_existing_ones(course):
    with pytest.raises(UserError, match="the course has hw"):
        read_lab(course, "hw2")


def test_the_key_does_not_depend_on_the_place(course, tmp_path):
    other = make_small(tmp_path / "elsewhere")
    hand_in(other, "ann", "score 1")
    assert job_id(course) == job_id(course) == job_id(other)


@pytest.mark.parametrize(
    "what", ["answer", "beside", "time", "source", "given", "config", "sandbox"]
)
def test_everything_that_may_change_a_verdict_changes_the_job(course, what):
    before = job_id(course)
    root, folder = course.root, course.root / "submitted" / "ann" / HW
    if what == "answer":
        hand_in(course, "ann", "score 2")
    elif what == "beside":
        write(b"1", folder / "data.csv")
    elif what == "time":
        write(b"2026-01-02 10:00:00 UTC", folder / "timestamp.txt")
    elif what == "source":
        path = root / "source" / HW / f"{HW}.ipynb"
        path.write_text(path.read_text().replace("test()", "test(1)"))
    elif what == "given":
        write(b"1", root / "source" / HW / "data.csv")
    elif what == "config":
        course.config.Execute.timeout = 99
    assert job_id(course, sandbox=what != "sandbox") != before


def test_text_and_messages_do_not_change_the_job(course):
    def change(of, **values):
        path = course.root / "source" / HW / f"{HW}.ipynb"
        nb = nbformat.read(path, as_version=4)
        of(nb).update(values)
        write(nb, path)

    change(lambda nb: nb.metadata, language_info={"name": "python"})
    change(lambda nb: nb.metadata.setdefault("open_the_hood", NotebookNode()), title="A")
    before = job_id(course)
    change(lambda nb: nb.metadata, language_info={"name": "python", "version": "3.12"})
    change(lambda nb: nb.metadata.open_the_hood, title="B", cells="0f", judged={"a": "1c"})
    change(lambda nb: nb.cells[0], source="### BEGIN SOLUTION\nscore 1 + 1\n### END SOLUTION")
    change(lambda nb: nb.cells[1].metadata, collapsed=True)
    course.config.Application.log_level = 10
    course.config.LateSubmissionPlugin.penalty_method = "zero"
    course.config.Execute.unsafe_no_sandbox = False
    course.config.Autograde.autograde_preprocessors.pop()  # AssignLatePenalties
    course.config.Autograde.create_student = False
    assert job_id(open_course_again(course)) == before
    change(lambda nb: nb.metadata.open_the_hood, cell_seconds=5)
    assert job_id(course) != before


def open_course_again(course):
    """Return the course with its settings read again."""
    return Course(course.root, course.config, course.directory)


@pytest.mark.parametrize("step", ["tests.no_module.Step", "a class that no other process has"])
def test_a_step_that_workers_cannot_import_is_reported(course, step):
    if step.startswith("a class"):
        step = type("Local", (NbGraderPreprocessor,), {})
    course.config.Autograde.autograde_preprocessors.append(step)
    with pytest.raises(UserError, match="nbgrader_config.py"):
        read_lab(course, HW)


def test_nbgraders_own_files_do_not_change_a_submission(course):
    lab = read_lab(course, HW)
    before = read_submission_of(course, lab, folders(course, "ann"))
    path = course.root / "submitted" / "ann" / HW / "timestamp.txt"
    write(b"2026-01-02 10:00:00 UTC", path)
    write(b"1f", path.with_name("submission_secret.txt"))
    after = read_submission_of(course, lab, folders(course, "ann"))
    assert after.digest == before.digest
    assert after.timestamp == "2026-01-02T10:00:00"
    assert after.files == {}, "no sandbox shows it"


@pytest.mark.parametrize("kind", ["text", "folder", "fifo", "link"])
def test_an_unreadable_time_is_reported_and_counts_as_missing(course, kind):
    path = course.root / "submitted" / "ann" / HW / "timestamp.txt"
    if kind == "text":
        write(b"yesterday", path)
    else:
        special(kind, path)
    found = read_submission_of(course, read_lab(course, HW), folders(course, "ann"))
    assert found.timestamp is None
    assert found.files == {}
    assert "timestamp" in [note.kind for note in found.notes]


def test_a_page_beside_the_notebook_is_only_for_its_code_and_a_note_says_so(course):
    write(b"x", course.root / "submitted" / "ann" / HW / "proof.html")
    write(b"x", course.root / "submitted" / "ann" / HW / "logo.svg")
    write(b"y", course.root / "source" / HW / "logo.svg")
    lab = read_lab(course, HW)
    found = read_submission_of(course, lab, folders(course, "ann"))
    [note] = found.notes
    assert note.kind == "not shown"
    assert note.message.startswith("Your code can read `proof.html`.")
    job = Job(lab, "ann", found, id="")
    assert job.beside() == {"proof.html": b"x", "logo.svg": b"y"}
    assert job.shown() == {"logo.svg": b"y"}


def test_every_submission_can_be_graded(course):
    submitted = course.root / "submitted"
    (submitted / "folder" / HW / f"{HW}.ipynb").mkdir(parents=True)
    (submitted / "none" / HW).mkdir(parents=True)
    write(b"", submitted / "file" / HW)
    (submitted / "link").mkdir()
    (submitted / "link" / HW).symlink_to(submitted / "ann" / HW)
    lab = read_lab(course, HW)
    for student in ("folder", "none", "file", "link"):
        assert student in course.students("submitted", HW)
        found = read_submission_of(course, lab, folders(course, student))
        assert isinstance(found.notebooks[HW], Unreadable), student


def say(course, told):
    """Write a lab's header with the course's own metadata."""
    path = course.root / "source" / HW / f"{HW}.ipynb"
    metadata = f'"metadata": {{"open_the_hood": {told}}}, "nbformat":'
    text = path.read_text()
    at = text.rindex('"metadata": {}')
    path.write_text(text[:at] + metadata + text[at:].partition('"nbformat":')[2])


def test_a_newly_installed_compiler_makes_a_compiled_lab_be_graded_again(course, monkeypatch):
    def ids():
        lab = read_lab(course, HW)
        found = read_submission_of(course, lab, folders(course, "ann"))
        return lab.can_compile, found.job_id(lab, True)

    lacks = Lack(("g++",), ("g++",), "sudo apt-get install g++")
    monkeypatch.setattr("hood.grader.batch.job.compiler_lacks", lambda: lacks)
    assert ids()[0], "it compiles nothing"
    say(course, '{"compile": true}')
    without, before = ids()
    monkeypatch.setattr("hood.grader.batch.job.compiler_lacks", lambda: None)
    with_it, after = ids()
    assert (without, with_it) == (False, True)
    assert changes(before, after) == ["whether the lab's code can be compiled"]
    assert changes(after.replace("-1-1-", "-1-"), after) == ["the program that gave them"]
    assert len(after) <= 64  # the field's length in the gradebook


@pytest.mark.parametrize(
    "name", ["timestamp.txt.", "Timestamp.txt", "a/timestamp.txt", ".timestamp"]
)
def test_every_file_that_a_sandbox_sees_changes_the_submission(course, name):
    lab = read_lab(course, HW)
    before = read_submission_of(course, lab, folders(course, "ann"))
    for data in (b"", b"1", b"2"):
        write(data, course.root / "submitted" / "ann" / HW / name)
        after = read_submission_of(course, lab, folders(course, "ann"))
        assert (after.digest != before.digest) == (after.files != before.files)
        before = after


def test_a_path_too_long_for_another_folder_is_left_out(course):
    """In a folder with a longer name, the path would exceed the system's limit."""
    inside = os.open(course.root / "submitted" / "ann" / HW, os.O_RDONLY)
    for _ in range(18):
        os.mkdir("d" * 220, dir_fd=inside)
        outside, inside = inside, os.open("d" * 220, os.O_RDONLY, dir_fd=inside)
        os.close(outside)
        os.close(os.open("file.txt", os.O_WRONLY | os.O_CREAT, dir_fd=inside))
    os.close(inside)
    found = read_submission_of(course, read_lab(course, HW), folders(course, "ann"))
    assert len(found.files) == 4
    assert {note.kind for note in found.notes} == {"left out"}
    assert grade(job_of(course, "ann")).retryable is False


def test_a_file_with_the_notebooks_name_hides_no_change_of_the_notebook(course):
    write(b"data", course.root / "source" / HW / HW)
    before = read_lab(course, HW).digest
    path = course.root / "source" / HW / f"{HW}.ipynb"
    path.write_bytes(path.read_bytes().replace(b"test()", b"test(1)"))
    assert read_lab(course, HW).digest != before


@pytest.mark.parametrize("wrong", ["a region without an end", "a test without points"])
def test_a_source_that_nbgrader_cannot_release_is_reported(course, wrong):
    nb = source()
    if wrong == "a test without points":
        del nb.cells[1].metadata.nbgrader["points"]
    else:
        nb.cells[0].source = "### BEGIN SOLUTION\nscore 2"
    write(nb, course.root / "source" / HW / f"{HW}.ipynb")
    with pytest.raises(UserError, match=rf"can't release the source {HW}\.ipynb"):
        read_lab(course, HW)


def test_a_nested_folder_is_read_as_the_submission(course):
    submitted = course.root / "submitted" / "ann" / HW
    written = (submitted / f"{HW}.ipynb").read_bytes()
    (submitted / f"{HW}.ipynb").unlink()
    write(written, submitted / "my lab" / f"{HW}.ipynb")
    write(b"1", submitted / "my lab" / "data.csv")
    write(b"\0", submitted / "__MACOSX" / f"._{HW}.ipynb")
    (submitted / "link").symlink_to(course.root / "source" / HW)
    found = read_submission_of(course, read_lab(course, HW), folders(course, "ann"))
    assert found.notebooks == {HW: written}
    assert found.files["data.csv"] == b"1"
    assert [note.kind for note in found.notes] == ["renamed", "left out"]
    assert "found in the folder `my lab`" in found.notes[0].message


def test_learners_and_labs_are_found_in_every_unicode_form(tmp_path):
    course = make_small(tmp_path / "course")
    for name in ("Jose\u0301/pra\u0301ctica", "Zo\xeb/pr\xe1ctica", "Zoe\u0308/pr\xe1ctica"):
        (course.root / "submitted" / name).mkdir(parents=True)
    found = submissions(course.directory, "pr\xe1ctica")
    assert {name: len(paths) for name, paths in found.items()} == {"Jos\xe9": 1, "Zo\xeb": 2}
    assert list(submissions(course.directory, "pr\xe1ctica", ["Jose\u0301"])) == ["Jos\xe9"]


@pytest.mark.parametrize(
    "names",
    [
        ("in/HW", "in/a.csv", "a.csv/b.csv"),
        ("in/HW", "a.csv", "in/a.csv/b.csv"),
        ("HW", "u\u0308.csv", "\xfc.csv/x.csv"),
        ("HW", "\u0958" * 80 + ".csv"),
        ("HW", "\u0958" * 80 + "/a.csv"),
    ],
)
def test_files_with_any_name_are_placed_or_named_in_a_note(course, tmp_path, names):
    """In one Unicode form, and outside of their folder, names can collide or be too long."""
    folder = tmp_path / "handed in"
    for name in names:
        write(b"x", folder / name.replace("HW", f"{HW}.ipynb"))
    came = read_submission_of(course, read_lab(course, HW), [folder])
    assert came.notebooks[HW] == b"x"
    assert any(said in note.message for note in came.notes for said in ("too long", "a folder has"))
    place(came.files, tmp_path)
