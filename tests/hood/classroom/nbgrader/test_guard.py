"""Hostile submissions in nbgrader's own commands: autograde, formgrader, collect."""

import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.apps.api import NbGraderAPI
from nbgrader.converters import base

from hood import UserError
from hood.authoring.notebooks.release import course_config
from hood.classroom.nbgrader.guard import guard
from tests.hood.tiny import (
    LAB,
    ROOT,
    environment,
    make_course,
    nbgrader,
    released,
    solved,
    source_notebook,
    write,
)

pytestmark = pytest.mark.slow(40)

NFD = "Jose\u0301"
TWICE = ("Zoe\u0308", "Zo\xeb")
# Students without a verdict, with words of the reason.
WITHOUT = {
    "hard-link": "is a hard link",
    "hard-linked-notebook": "is a hard link",
    "Zo\xeb": "are the same name in different code points",
}
ALL = {"twice": 2.0, "row_sums": 3.0, "boxes": 2.0}
NONE = dict.fromkeys(ALL, 0.0)
SECRET = "canary-of-the-grading-machine"
# Code of a learner that prints every file it can read around its own notebook.
THIEF = """
import json, pathlib
for path in sorted(pathlib.Path(".").rglob("*")):
    try:
        text = path.read_text()
        print(path, text[:300])
        for cell in json.loads(text)["cells"]:
            exec("".join(cell["source"]))
    except Exception as error:
        print(path, type(error).__name__)
"""
READER = """
import pathlib
print(sorted(str(path) for path in pathlib.Path(".").rglob("*") if path.is_file()))
"""


def lazy(*code):
    """Return a notebook without answers that runs this code after the first cell."""
    nb = released(source_notebook())
    nb.cells[1:1] = [new_code_cell(text.strip()) for text in code]
    return nb


def honest(*code):
    nb = solved(released(source_notebook()))
    nb.cells += [new_code_cell(text.strip()) for text in code]
    return nb


def hand_in(course, student, nb):
    """Make a submission's folder, with this notebook unless it is None."""
    folder = course / "submitted" / student / LAB
    folder.mkdir(parents=True)
    if nb is not None:
        write(nb, folder / f"{LAB}.ipynb")
    return folder


def hostile_class(course):
    """Write one folder for each kind of attack; the student's name says which attack it is."""
    source = course / "source" / LAB / f"{LAB}.ipynb"
    secret = write(SECRET.encode(), course / "secret.txt")
    hand_in(course, "honest", honest())
    os.symlink(f"../../../source/{LAB}/{LAB}.ipynb", hand_in(course, "link", lazy(THIEF)) / "s.txt")
    os.symlink(secret, course / "submitted" / "link" / LAB / "secret.txt")
    folder = hand_in(course, "hard-link", lazy(THIEF))
    folder.chmod(0o777)  # so others can have made the links
    os.link(source, folder / "s.txt")
    os.link(secret, folder / "secret.txt")
    os.symlink(source.parent, hand_in(course, "linked-folder", lazy(THIEF)) / "data")
    os.symlink(source, hand_in(course, "linked-notebook", None) / f"{LAB}.ipynb")
    folder = hand_in(course, "hard-linked-notebook", None)
    folder.chmod(0o777)
    os.link(source, folder / f"{LAB}.ipynb")
    write(honest(), hand_in(course, "saved", None) / f"{LAB}.ipynb.txt")
    write(honest(), hand_in(course, "in-a-folder", None) / LAB / f"{LAB}.ipynb")
    write(honest(), course / "submitted" / NFD / LAB / f"{LAB}.ipynb")
    for name in TWICE:
        write(honest(), course / "submitted" / name / LAB / f"{LAB}.ipynb")
    (course / "submitted" / "linked-lab").mkdir()
    os.symlink(source.parent, course / "submitted" / "linked-lab" / LAB)
    os.symlink("honest", course / "submitted" / "linked-student")
    folder = hand_in(course, "special", honest())
    os.mkfifo(folder / "data.csv")
    os.mknod(folder / "weights.pt", stat.S_IFSOCK | 0o600)  # `bind` takes 107 bytes of a path
    os.symlink("/dev/zero", folder / "zero.txt")
    os.mkfifo(hand_in(course, "fifo-time", honest()) / "timestamp.txt")
    os.symlink("/dev/zero", hand_in(course, "device-time", honest()) / "timestamp.txt")
    write(b"yesterday", hand_in(course, "bad-time", honest()) / "timestamp.txt")
    write(b"\xff\xfe", hand_in(course, "odd-time", honest()) / "timestamp.txt")
    zone = b"2026-01-02 10:00:00 CEST"
    write(zone, hand_in(course, "unknown-zone", honest()) / "timestamp.txt")
    (hand_in(course, "folder-time", honest()) / "timestamp.txt").mkdir()
    write(b"2026-01-02 10:00:00 UTC", hand_in(course, "good-time", honest()) / "timestamp.txt")
    folder = hand_in(course, "pages", honest(READER))
    folder.joinpath(f"{LAB}.ipynb").write_text(
        nbformat.writes(with_text(honest(READER), "[my derivation](proof.html)"))
    )
    for name in PAGES:
        write(b"<script>alert(1)</script>", folder / name)
    for name in HARMLESS:
        write(b"x = 1\n", folder / name)


PAGES = [
    *("proof.html", "proof.HTM", "proof.xhtml", "proof.svg", "proof.xml", "proof.js", "proof.mjs"),
    *("proof.pdf", "proof.mhtml", "proof.swf", "proof.xsl", "proof.md", "proof.html.gz", "proof"),
    *(
        "ipykernel_launcher.py",
        "proof.IPYNB",
        "chart.vl.json",
        ".htaccess",
        "deep/proof.html",
        "proof.html.",
    ),
]
HARMLESS = ["numbers.csv", "deep/notes.txt"]


def with_text(nb, text):
    nb.cells.append(new_markdown_cell(text))
    return nb


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """A course whose hostile class went through the real `nbgrader autograde` and feedback."""
    course = make_course(tmp_path_factory.mktemp("ways") / "#1 [x] 2%é'&")
    write(source_notebook(), course / "source" / LAB / f"{LAB}.ipynb")
    assert nbgrader(course, "generate_assignment", LAB).returncode == 0
    hostile_class(course)
    done = python(course, "-m", "nbgrader", "autograde", LAB)
    feedback = nbgrader(course, "generate_feedback", LAB)
    return SimpleNamespace(course=course, status=done.returncode, log=done.stderr, page=feedback)


def marks(course, student):
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as gradebook:
        submission = gradebook.find_submission(LAB, student)
        return {
            grade.name: grade.auto_score
            for notebook in submission.notebooks
            for grade in notebook.grades
            if grade.name != "why"
        }


def shown(course, student):
    """Return the whole text of the graded notebook."""
    return (course / "autograded" / student / LAB / f"{LAB}.ipynb").read_text()


def test_the_class_is_graded_to_its_end(graded):
    assert graded.status == 1, graded.log
    assert "Traceback" not in graded.log
    assert graded.page.returncode == 0, graded.page.stderr
    assert marks(graded.course, "honest") == ALL


@pytest.mark.parametrize(("student", "why"), WITHOUT.items())
def test_a_file_that_only_the_grader_cannot_read_means_no_verdict_and_is_reported(
    graded, student, why
):
    [line] = [line for line in graded.log.splitlines() if f"{student} has no verdict" in line]
    assert why in line
    assert not (graded.course / "autograded" / student).exists()
    with pytest.raises(MissingEntry):
        marks(graded.course, student)


@pytest.mark.parametrize("student", ["saved", "in-a-folder", "Jos\xe9"])
def test_the_notebook_is_found_under_names_changed_by_a_browser_or_a_mac(graded, student):
    assert marks(graded.course, student) == ALL
    assert not [
        line for line in graded.log.splitlines() if "No submitted" in line and "Jos" in line
    ]
    page = shown(graded.course, student)
    said = "was graded as" in page or "was found in the folder" in page
    assert said == (student != "Jos\xe9")


@pytest.mark.parametrize("student", ["link", "linked-folder"])
def test_a_link_beside_the_notebook_is_not_followed(graded, student):
    assert marks(graded.course, student) == NONE
    assert SECRET not in shown(graded.course, student)
    assert "was left out" in shown(graded.course, student)
    assert not (graded.course / "autograded" / student / LAB / "s.txt").exists()


@pytest.mark.parametrize(
    ("student", "says"),
    [
        ("linked-notebook", "is a symbolic link"),
        ("linked-lab", "is a symbolic link"),
        ("linked-student", "is a symbolic link"),
    ],
)
def test_a_link_in_place_of_the_work_has_no_mark(graded, student, says):
    assert marks(graded.course, student) == dict.fromkeys(ALL)
    assert says in shown(graded.course, student)


def test_entries_other_than_files_are_left_out_and_named(graded):
    assert marks(graded.course, "special") == ALL
    for name in ("data.csv", "weights.pt", "zero.txt"):
        assert f"{name} was left out" in shown(graded.course, "special")


@pytest.mark.parametrize(
    "student",
    ["fifo-time", "device-time", "bad-time", "odd-time", "folder-time", "unknown-zone"],
)
def test_a_bad_timestamp_is_reported_to_its_learner(graded, student):
    assert marks(graded.course, student) == ALL
    assert "`timestamp.txt` can't be used" in shown(graded.course, student)
    with Gradebook(f"sqlite:///{graded.course / 'gradebook.db'}") as gradebook:
        assert gradebook.find_submission(LAB, student).timestamp is None


def test_a_good_timestamp_is_recorded(graded):
    with Gradebook(f"sqlite:///{graded.course / 'gradebook.db'}") as gradebook:
        found = gradebook.find_submission(LAB, "good-time").timestamp
    assert found.isoformat() == "2026-01-02T10:00:00"
    assert "timestamp.txt" not in shown(graded.course, "good-time")


def test_files_that_a_browser_would_run_are_only_for_the_learners_code(graded):
    assert served(graded.course, "autograded") == {*HARMLESS, f"{LAB}.ipynb"}
    assert served(graded.course, "feedback") == {*HARMLESS, f"{LAB}.html"}
    text = shown(graded.course, "pages")
    for name in (*PAGES, *HARMLESS):
        assert f"'{name}'" in text, name
    # The file name of a notebook is reported only if the notebook is used.
    assert f"and {len(PAGES) - 6} more. But such files are not kept" in text
    page = graded.course / "feedback" / "pages" / LAB / f"{LAB}.html"
    assert 'href="proof.html' not in page.read_text()


def served(course, step):
    folder = course / step / "pages" / LAB
    return {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}


def test_the_command_prints_the_same_on_a_terminal_with_few_characters(
    graded, tmp_path, monkeypatch
):
    course = copied(graded, tmp_path)
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    done = python(course, "-m", "hood", "grade", LAB, "--workers=1", "--students", *WITHOUT)
    assert "Traceback" not in done.stderr
    assert done.returncode == 1, done.stdout + done.stderr
    for student, why in WITHOUT.items():
        assert f"{student}: ".encode("ascii", "backslashreplace").decode() in done.stdout
        assert why in " ".join(done.stdout.split())
        with pytest.raises(MissingEntry):
            marks(course, student)


def test_a_file_that_cannot_be_written_is_logged_in_one_sentence():
    guard()
    for error, said in (
        (PermissionError(13, "no", "/course/feedback/jane"), "/course/feedback/jane can't be used"),
        (ValueError("a mistake"), "Traceback"),
    ):
        try:
            raise error
        except Exception:
            assert base.traceback.format_exc().startswith(said)


def test_formgrader_lists_and_grades_a_hostile_class(graded, tmp_path):
    course = copied(graded, tmp_path)
    linked = course / "submitted" / "honest" / LAB
    linked.chmod(0o777)
    os.link(course / "secret.txt", linked / "secret.txt")
    write(b"", course / "submitted" / "good-time" / LAB / f"{LAB}.ipynb")
    before = seed(course, "good-time")
    script = (
        "import json\n"
        "from nbgrader.apps import NbGrader\n"
        "from nbgrader.apps.api import NbGraderAPI\n"
        "app = NbGrader()\n"
        "app.load_config_file()\n"
        "api = NbGraderAPI(config=app.config)\n"
        f"listed = api.get_submissions('{LAB}')\n"
        f"names = ('fifo-time', 'bad-time', 'link', 'Jos\xe9', 'saved', 'good-time', 'honest')\n"
        f"done = [api.autograde('{LAB}', s) for s in names]\n"
        "print(json.dumps([[one['student'] for one in listed], done]))\n"
    )
    ran = python(course, "-c", script)
    assert ran.returncode == 0, ran.stderr
    listed, [*done, without] = json.loads(ran.stdout.splitlines()[-1])
    assert len(listed) >= 15
    assert {"Jos\xe9", "Zo\xeb", "saved"} < set(listed)
    assert all(one["success"] for one in done), done
    assert not without["success"]
    assert "is a hard link" in without["error"] + without["log"]
    assert marks(course, "Jos\xe9") == ALL
    assert marks(course, "honest") == ALL  # earlier records stay
    assert SECRET not in shown(course, "honest")
    assert marks(course, "link") == NONE
    assert marks(course, "fifo-time") == ALL
    # after a changed submission, no stale file remains
    assert marks(course, "good-time") == dict.fromkeys(ALL)
    assert seed(course, "good-time") != before


def seed(course, student):
    return json.loads(shown(course, student))["metadata"]["open_the_hood"]["seed"]


def copied(graded, tmp_path):
    """Return a copy of the course that preserves links and FIFOs."""
    course = tmp_path / "course"
    shutil.copytree(graded.course, course, symlinks=True, ignore=_special)
    os.mkfifo(course / "submitted" / "fifo-time" / LAB / "timestamp.txt")
    os.mkfifo(course / "submitted" / "special" / LAB / "data.csv")
    source = course / "source" / LAB / f"{LAB}.ipynb"
    for student, name, target in (
        ("hard-link", "s.txt", source),
        ("hard-link", "secret.txt", course / "secret.txt"),
        ("hard-linked-notebook", source.name, source),
    ):
        path = course / "submitted" / student / LAB / name
        path.unlink()
        os.link(target, path)
    return course


def python(course, *words):
    return subprocess.run(
        [sys.executable, *words],
        cwd=course,
        env=environment(course),
        capture_output=True,
        text=True,
        timeout=300,
    )


def _special(folder, names):
    return [n for n in names if not (os.path.isfile(p := f"{folder}/{n}") or os.path.isdir(p))]


@pytest.mark.parametrize("way", ["command", "button", "failure"])
def test_generate_keeps_foreign_files_and_names_them(tmp_path, way):
    course = make_course(tmp_path / "course")
    source, release = course / "source" / LAB, course / "release" / LAB
    write(source_notebook(), source / f"{LAB}.ipynb")
    write(b"1,2\n", source / "data" / "given.csv")
    write(b"an older release", release / f"{LAB}.ipynb")
    write(b"3,4\n", release / "data" / "given.csv")
    own = {"data/own.csv", "notes.txt"}
    for name in own:
        write(b"by hand", release / name)
    if way == "button":
        api = NbGraderAPI(config=course_config(ROOT, course))
        done = api.generate_assignment(LAB)
        assert done["success"], done
        log = done["log"]
    else:
        if way == "failure":
            write(b"no notebook", source / f"{LAB}.ipynb")
        ran = nbgrader(course, "generate_assignment", LAB, "--force")
        assert (ran.returncode != 0) == (way == "failure"), ran.stderr
        log = ran.stderr
    assert "kept, because they don't come from source/: data/own.csv, notes.txt" in log
    assert {(release / name).read_bytes() for name in own} == {b"by hand"}
    if way != "failure":
        assert (release / "data" / "given.csv").read_bytes() == b"1,2\n"
        assert nbformat.read(release / f"{LAB}.ipynb", 4).cells


@pytest.mark.parametrize("what", ["rules", "rights"])
def test_a_release_that_cannot_be_made_is_reported_and_the_old_one_stays(
    tmp_path, monkeypatch, what
):
    course = make_course(tmp_path / "course")
    write(source_notebook(), course / "source" / LAB / f"{LAB}.ipynb")
    old = write(b"an older release", course / "release" / LAB / f"{LAB}.ipynb")

    def refuses(*_):
        if what == "rules":
            raise UserError("course.yml:1: no")
        raise PermissionError(13, "no", str(old))

    target = "hood.classroom.nbgrader.guard.read_course_file"
    monkeypatch.setattr(*(target, refuses) if what == "rules" else (Path, "unlink", refuses))
    done = NbGraderAPI(config=course_config(ROOT, course)).generate_assignment(LAB)
    assert not done["success"]
    said = "course.yml:1: no" if what == "rules" else f"{old} can't be used: "
    assert said in done["log"]
    assert "Traceback" not in done["log"]
    assert "NbGraderException: " in done["error"].splitlines()[-1]  # which ends the command
    assert old.read_bytes() == b"an older release"
