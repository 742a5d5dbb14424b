"""Files of a course that other accounts can read, and answers in a learner's installation."""

import io
import os
import shlex
import subprocess
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from hood import __main__ as command
from hood.authoring.bundle import archive, learner_files
from hood.classroom import doctor
from hood.classroom.results.exports import PLACES
from hood.grader.sandbox import doctor as machine
from hood.learner.exposed_answers import first_read, i_read, open_to_others
from hood.phase_paths import ROOT

CONFIG = """
c = get_config()
c.CourseDirectory.course_id = "made-up"
c.CourseDirectory.root = {root!r}
c.Exchange.root = {exchange!r}
"""
NAMES = ["phases", "source", "gradebook.db", "submitted", "autograded", "feedback", "inbound"]


@pytest.fixture
def course(tmp_path):
    """A course with files in every place, below folders that everybody can enter."""
    root = tmp_path / "course"
    for name in ("phases/01_rows/lab.py", "source/01/01.ipynb", "submitted/ana/01/01.ipynb"):
        write(root / name)
    for name in ("autograded/ana/01/01.ipynb", "feedback/ana/01/01.html", "gradebook.db"):
        write(root / name)
    write(root / "README.md")
    exchange = tmp_path / "exchange"
    write(exchange / "made-up" / "inbound" / "ana+01+now" / "01.ipynb")
    config = CONFIG.format(root=str(root), exchange=str(exchange))
    (root / "nbgrader_config.py").write_text(config)
    for folder in (tmp_path, *tmp_path.rglob("*")):
        folder.chmod(0o755 if folder.is_dir() else 0o644)
    above = [one for one in tmp_path.parents if one.stat().st_uid == os.getuid()]
    before = {one: one.stat().st_mode for one in above}
    for one in above:
        one.chmod(before[one] | 0o001)
    yield root
    for one, mode in before.items():
        one.chmod(mode)


def write(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{}")


def found(root: Path) -> list[str]:
    return [place.name for place, _, _ in doctor.open_places(root)]


def test_each_open_place_is_named_with_a_file_and_the_command_to_close_it(course):
    assert sorted(found(course)) == sorted(NAMES)
    places = {place.name: (file, how) for place, file, how in doctor.open_places(course)}
    assert places["phases"] == (course / "phases/01_rows/lab.py", f"chmod o-rwx {course}")
    inbound = course.parent / "exchange/made-up/inbound"
    assert places["inbound"] == (inbound, f"chmod o-r {inbound}")


@pytest.mark.parametrize(
    ("place", "mode", "left"),
    [
        ("", 0o750, ["inbound"]),
        ("..", 0o700, []),
        ("phases", 0o700, [name for name in NAMES if name != "phases"]),
        ("phases", 0o711, NAMES),  # a user who knows the names can read the files
        ("phases/01_rows/lab.py", 0o640, [name for name in NAMES if name != "phases"]),
        ("submitted/ana", 0o770, [name for name in NAMES if name != "submitted"]),
        ("gradebook.db", 0o660, [name for name in NAMES if name != "gradebook.db"]),
        ("../exchange/made-up/inbound", 0o733, [name for name in NAMES if name != "inbound"]),
    ],
)
def test_a_place_below_a_closed_folder_is_not_named(course, place, mode, left):
    (course / place).resolve().chmod(mode)
    assert sorted(found(course)) == sorted(left)


def test_the_rules_and_the_list_of_a_class_are_private(course):
    rules = course / "course.yml"
    rules.write_text("roster: {file: lists/autumn.csv, id: Username}\nlabs: {}\n")
    private = [rules, course / "lists/autumn.csv", course / "received/01/ana/x.ipynb"]
    for path in private[1:]:
        write(path)
    for path in (*private, *(path.parent for path in private[1:])):
        path.chmod(0o755 if path.is_dir() else 0o644)
    (course / "received/01").chmod(0o755)
    (course / "received").chmod(0o755)
    assert sorted(found(course)) == sorted([*NAMES, "course.yml", "autumn.csv", "received"])
    private[1].chmod(0o600)
    rules.chmod(0o600)
    assert sorted(found(course)) == sorted([*NAMES, "received"])


def test_git_ignores_a_classs_personal_data():
    kept = ["course.yml", "class.csv", "gradebook.db", "received/01/ana/x", "grades.csv"]
    kept += [".service-key", ".pseudonyms", "submitted/ana/01/01.ipynb", "downloaded/x"]
    kept += [place if place.endswith(".csv") else f"{place}/x" for place in PLACES.values()]
    done = subprocess.run(["git", "check-ignore", *kept], cwd=ROOT, capture_output=True, text=True)
    if done.returncode == 128:
        pytest.skip("not run: this copy of the project has no git")
    assert done.stdout.splitlines() == kept


def test_links_are_followed_to_a_place_and_not_inside_it(course):
    moved = course.parent / "private"
    (course / "phases").rename(moved)
    (course / "phases").symlink_to(moved)
    assert open_to_others(course / "phases") == moved / "01_rows" / "lab.py"
    moved.chmod(0o700)
    assert open_to_others(course / "phases") is None
    (course / "source" / "01" / "01.ipynb").unlink()
    (course / "source" / "01" / "01.ipynb").symlink_to(course / "README.md")
    assert open_to_others(course / "source") is None


@pytest.mark.parametrize(
    ("people", "mode", "status", "said"),
    [
        (
            ["ana", "ben", "cy", "di"],
            0o755,
            1,
            "answers: accounts ana, ben, cy and 1 more can read ",
        ),
        ([], 0o755, 0, "answers: warning: this machine lists no other account now, "),
        (["ana"], 0o700, 0, "answers: safe, because no other account"),
    ],
)
def test_doctor_names_open_places_and_sets_its_status(
    course, people, mode, status, said, monkeypatch, capsys
):
    (course.parent / "ML 'x' $1").mkdir()
    course = course.rename(course.parent / "ML 'x' $1" / "course")
    course.chmod(mode)
    (course.parent.parent / "exchange/made-up/inbound").chmod(0o733)
    monkeypatch.setattr(doctor, "learners_and_others", lambda root: people)
    monkeypatch.setattr(machine, "problems", list)
    assert doctor.run(SimpleNamespace(install=False), course) == status
    printed = capsys.readouterr().out
    assert said in printed
    command = printed.partition("what to do: ")[2].split("; ")[0]
    assert ("chmod" in printed) == (mode == 0o755)
    if mode == 0o755:
        assert shlex.split(command.splitlines()[0]) == ["chmod", "o-rwx", str(course)]


def test_other_users_accounts_are_counted(course, monkeypatch):
    def entry(name, uid, shell="/bin/bash"):
        return SimpleNamespace(pw_name=name, pw_uid=uid, pw_shell=shell)

    listed = [
        entry("root", 0),
        entry("daemon", 2, "/usr/sbin/nologin"),
        entry("nobody", 65534, "/usr/sbin/nologin"),
        entry("me", os.getuid()),
        entry("ben", 70_001),
        entry("ana", 1001),
    ]
    monkeypatch.setattr(doctor.pwd, "getpwall", lambda: listed)
    own = {one.pw_name for one in listed if one.pw_uid == os.getuid()}
    assert doctor.learners_and_others(course) == sorted({"ana", "ben"} - own)


def ask(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "hood.learner.exposed_answers", *words],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
    )


@pytest.mark.slow(5)
def test_a_learners_installation_has_no_answers_and_the_project_has(tmp_path, course):
    with zipfile.ZipFile(
        io.BytesIO(archive(learner_files(ROOT, ["00"]), "open-the-hood"))
    ) as packed:
        packed.extractall(tmp_path)
    install = tmp_path / "open-the-hood"
    # run inside the course's folder, so that this project and its packages are not on the path
    done = ask(install)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"answers: this account cannot read any answers in {install}" in done.stdout
    done = ask(install, str(course))
    assert done.returncode == 1
    assert f"can read {course}/phases/01_rows/lab.py\n" in done.stdout
    assert "what to do: give learners the archive of `python -m hood bundle`" in done.stdout
    write(tmp_path / "elsewhere" / "phases" / "00_hello" / "lab.py")
    beside = os.pathsep.join([str(install), str(tmp_path / "elsewhere")])
    done = subprocess.run(
        [sys.executable, "-m", "hood.learner.exposed_answers"],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": beside},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "elsewhere/phases/00_hello/lab.py" in done.stdout


def test_the_command_looks_unless_it_installs(course, monkeypatch, capsys):
    looked = []
    monkeypatch.setattr(doctor, "answers", lambda root: looked.append(root) or False)
    monkeypatch.setattr(machine, "problems", list)
    monkeypatch.setattr(doctor, "install", lambda: None)
    assert command.main(["doctor"]) == 1
    assert looked == [ROOT]
    assert command.main(["doctor", "--install"]) == 0
    assert looked == [ROOT]


def test_readable_files_agree_with_the_system(tmp_path):
    write(tmp_path / "a" / "b")
    assert first_read(tmp_path / "a", i_read) == tmp_path / "a" / "b"
    assert first_read(tmp_path / "none", i_read) is None
    if os.geteuid():
        (tmp_path / "a" / "b").chmod(0)
        assert first_read(tmp_path / "a", i_read) is None
