"""A course's wheel: its command puts the course into a folder, brings it up to date, opens it."""

import json
import os
import subprocess
import sys
import zipfile
from email import message_from_string

import pytest

from hood.authoring.bundle import archive, learner_files, wheel, wheel_name
from hood.course import course
from hood.phase_paths import ROOT

RELEASE = "release/00_hello/00_hello.ipynb"


@pytest.fixture(scope="module")
def files():
    return learner_files(ROOT, ["00"])


@pytest.fixture(scope="module")
def built(files, tmp_path_factory):
    path = tmp_path_factory.mktemp("dist") / wheel_name(ROOT)
    path.write_bytes(wheel(ROOT, archive(files, course(ROOT).id)))
    return path


@pytest.fixture(scope="module")
def place(built, tmp_path_factory):
    """The folder that pip installed the wheel into."""
    target = tmp_path_factory.mktemp("installed")
    call = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--target", target]
    subprocess.run([*call, built], check=True)
    return target


def opened(place, folder, *options, **variables):
    """Run the wheel's command in `folder`, with a `launch` that only prints its arguments."""
    code = (
        "import sys, open_the_hood as o, subprocess\n"
        "run = subprocess.run\n"
        "def only_copies(call, **k):\n"
        "    if 'hood.learner.launch' in call: print('LAUNCH', *call[3:]); call = ['true']\n"
        "    return run(call, **k)\n"
        "subprocess.run = only_copies\n"
        "sys.exit(o.main())"
    )
    return subprocess.run(
        [sys.executable, "-c", code, *options],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(place), "HOME": str(folder)} | variables,
        capture_output=True,
        text=True,
    )


def test_pip_takes_it_and_it_needs_no_package(built, place):
    name, version = "open_the_hood", "0.1.0"
    with zipfile.ZipFile(built) as bundle:
        said = message_from_string(bundle.read(f"{name}-{version}.dist-info/METADATA").decode())
    assert (said["Name"], said["Requires-Dist"]) == ("open-the-hood", None)
    assert said["Requires-Python"] == ">=3.11,<3.15"
    assert (place / "bin" / "open-the-hood").is_file()


def test_the_same_project_gives_the_same_bytes(built, files):
    assert wheel(ROOT, archive(files, course(ROOT).id)) == built.read_bytes()


def test_the_course_is_put_into_a_folder_once(place, files, tmp_path):
    first = opened(place, tmp_path, "--no-browser")
    assert f"{len(files)} of {len(files)} files are new." in first.stdout, first.stderr
    assert "LAUNCH --no-browser" in first.stdout
    folder = tmp_path / "open-the-hood"
    written = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}
    assert written == set(files)
    again = opened(place, tmp_path)
    assert f": 0 of {len(files)} files are new." in again.stdout


def test_a_newer_course_keeps_answers_and_other_files(place, files, tmp_path):
    opened(place, tmp_path, "--folder", "mine")
    folder = tmp_path / "mine"
    answered = json.loads((folder / RELEASE).read_text())
    answered["cells"][0]["source"] = "my answer"
    (folder / RELEASE).write_text(json.dumps(answered))
    (folder / "notes.txt").write_text("mine")
    (folder / "hood" / "learner" / "check.py").write_text("old")
    said = opened(place, tmp_path, "--folder", "mine").stdout
    assert ": 2 of " in said
    assert "Changed notebooks: 1. The old versions are beside them, as .previous-NAME." in said
    assert (folder / RELEASE).read_bytes() == files[RELEASE]
    kept = folder / "release" / "00_hello" / ".previous-00_hello.ipynb"
    assert json.loads(kept.read_text())["cells"][0]["source"] == "my answer"
    assert (folder / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("there", ["something", "another course", "a clone"])
def test_a_folder_of_somebody_elses_stays_as_it_is(place, tmp_path, there):
    folder = tmp_path / "open-the-hood"
    folder.mkdir()
    if there == "a clone":
        (folder / ".git").mkdir()
    name = "file.txt" if there == "something" else "course.toml"
    (folder / name).write_text('id = "other"' if there == "another course" else "")
    before = sorted(folder.rglob("*"))
    done = opened(place, tmp_path)
    assert done.returncode == 1
    assert done.stderr.endswith("Name another folder: open-the-hood --folder FOLDER\n")
    assert ("`make lab` opens it" in done.stderr) == (there == "a clone")
    assert sorted(folder.rglob("*")) == before
