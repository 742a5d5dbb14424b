"""The learner's archive: complete, without answers, and the same bytes every time."""

import io
import json
import os
import re
import subprocess
import sys
import tomllib
import zipfile

import pytest
import yaml

from hood import UserError
from hood.audience import NBGRADER
from hood.authoring.bundle import COPIES, archive, learner_course, learner_files
from hood.authoring.notebooks.notebook import to_notebook
from hood.authoring.notebooks.release import generate
from hood.authoring.notebooks.text import Refused
from hood.learner.check import ABSENT, UNSOLVED
from hood.notebook_file import to_bytes
from hood.phase_paths import ROOT
from tests.hood.authoring.example import CHECKS, COURSE, PYPROJECT, lab, readable

RELEASE = "release/01_rows/01_rows.ipynb"


@pytest.fixture
def released(project):
    """The example with its release, and with files that must not be in the archive."""
    source = to_bytes(to_notebook(lab()))
    project.write("source/01_rows/01_rows.ipynb", source.decode())
    project.write(RELEASE, generate({"01_rows": source}, project.root)["01_rows"].decode())
    project.write("notebooks/01_rows.ipynb", "{}")
    project.write("release/01_rows/.ipynb_checkpoints/01_rows-checkpoint.ipynb", "{}")
    project.write("utils/__pycache__/x.pyc", "")
    project.write("benchmarks/gpu.py", "")
    project.write("benchmarks/records/nvidia-h200/clocks.json", "{}")
    project.write("gradebook.db", "")
    for name in COPIES:
        project.write(name, "")
    return project


def test_the_archive_has_the_listed_files(released):
    assert sorted(learner_files(released.root)) == sorted(
        [
            "AGENTS.md",
            "CLAUDE.md",
            "LICENSE",
            "README.md",
            "benchmarks/records/nvidia-h200/clocks.json",
            "environment.yml",
            *COPIES,
            "course.toml",
            "lock/packages.txt",
            "notebooks/01_rows.ipynb",
            "pyproject.toml",
            RELEASE,
            "utils/__init__.py",
        ]
    )


def test_the_archive_has_no_answer(released):
    files = learner_files(released.root)
    everything = "\n".join(readable(path, content) for path, content in files.items())
    secret = ["count = math.prod(shape)", 'verify("tensor_bytes"', "3 points: because the dtype"]
    for line in [*secret, *filter(None, CHECKS.split("\n"))]:
        assert line not in everything
    assert "hood.judge.verify" not in everything


def test_a_release_that_shows_hidden_text_is_not_packed(released):
    source = (released.root / "source/01_rows/01_rows.ipynb").read_text()
    released.write(RELEASE, source)
    with pytest.raises(Refused, match=f"{RELEASE}: has '"):
        learner_files(released.root)


def test_without_a_release_there_is_nothing_to_pack(project):
    with pytest.raises(UserError, match="no release yet"):
        learner_files(project.root)


def test_the_set_up_fits_the_packed_labs(released):
    files = learner_files(released.root)
    project = tomllib.loads(files["pyproject.toml"].decode())
    assert project["tool"]["setuptools"]["packages"]["find"] == {"namespaces": False}
    pinned = tomllib.loads(PYPROJECT)["project"]["dependencies"]
    assert project["project"]["dependencies"] == pinned
    (pip,) = yaml.safe_load(files["environment.yml"])["dependencies"]
    assert pip == {"pip": ["-r lock/packages.txt"]}
    assert "(Python >=3.11,<3.15)" in files["README.md"].decode()


def test_links_lead_to_the_classs_site_in_the_archive_and_release_stays_as_it_is(released):
    before = (released.root / RELEASE).read_bytes()
    assert learner_files(released.root)[RELEASE] == before
    assert b"../../notebooks/01_rows.ipynb" in before
    released.write("course.yml", "course: {lesson_url: 'https://a.org'}\nlabs: {01_rows: {}}\n")
    files = learner_files(released.root)
    assert b"https://a.org/lessons/01_rows.html" in files[RELEASE]
    assert b"../../notebooks" not in files[RELEASE]
    learners = tomllib.loads(files["course.toml"].decode())
    assert learners == tomllib.loads(COURSE) | {"lesson_url": "https://a.org/"}
    ours = (ROOT / "course.toml").read_text(encoding="utf-8")
    theirs = tomllib.loads(learner_course(ours, "https://a.org/"))
    assert theirs == tomllib.loads(ours) | {"lesson_url": "https://a.org/"}
    assert (released.root / RELEASE).read_bytes() == before


def test_only_the_named_labs_are_packed(released):
    released.write("notebooks/02_other.ipynb", "{}")
    released.write("phases/02_other/lesson.py", "# %% [markdown]\n# # Other\n")
    assert "notebooks/02_other.ipynb" in learner_files(released.root)
    files = learner_files(released.root, ["01"], name="rows.zip")
    assert {RELEASE, "notebooks/01_rows.ipynb"} <= set(files)
    assert "notebooks/02_other.ipynb" not in files
    assert "zipfile -e rows.zip" in files["README.md"].decode()
    with pytest.raises(UserError, match="there is no phase '03'"):
        learner_files(released.root, ["03"])


def test_checks_are_packed_only_if_asked_for(released):
    released.write("hood/judge/verify.py", "")
    files = learner_files(released.root, with_checks=True)
    own = {"phases/01_rows/lab.py", "phases/01_rows/checks.py"}
    assert own | {"hood/judge/verify.py"} <= set(files)
    assert "The checks and the right answers are in `phases/`" in files["README.md"].decode()
    assert "hood/judge/verify.py" not in learner_files(released.root)


@pytest.mark.parametrize("with_checks", [False, True])
def test_the_file_for_assistants_names_only_packed_files(with_checks):
    files = learner_files(ROOT, ["00"], with_checks=with_checks)
    text = files["AGENTS.md"].decode()
    assert files["CLAUDE.md"] == b"@AGENTS.md\n"
    modules = re.findall(r"python -m (\S+)", text)
    folders = re.findall(r"`([\w/]+/)`", text)
    assert modules
    assert all(f"{module.replace('.', '/')}.py" in files for module in modules)
    assert all(any(path.startswith(folder) for path in files) for folder in folders)
    assert ("phases/" in folders, "solution(" in text) == (with_checks, with_checks)


def unpack(files, folder):
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


@pytest.mark.slow(5)
def test_a_new_archive_over_an_old_one_keeps_answers_in_both_folders(tmp_path):
    files = learner_files(ROOT, ["00"])
    mine = tmp_path / "work" / "00_hello" / "00_hello.ipynb"
    released = tmp_path / "release" / "00_hello" / "00_hello.ipynb"
    unpack(files, tmp_path)

    def refresh():
        return subprocess.run(
            [sys.executable, "-m", "hood.learner.copies"],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": str(tmp_path), "HOME": str(tmp_path)},
            capture_output=True,
            text=True,
        )

    assert "3 copies made" in (done := refresh()).stdout, done.stderr
    for path, name in ((mine, "grid_size"), (released, "masked_block")):
        nb = json.loads(path.read_text())
        stubs = [cell for cell in nb["cells"] if cell["cell_type"] == "code"]
        [stub] = [
            cell
            for cell in stubs
            if cell["metadata"].get("nbgrader", {}).get("grade_id") == f"{name}_solution"
        ]
        stub["source"] = f"{name} = 'mine'"
        path.write_text(json.dumps(nb))
    refresh()
    unpack(files, tmp_path)
    done = refresh()
    assert done.returncode == 0, done.stderr
    sources = ["".join(cell["source"]) for cell in json.loads(mine.read_text())["cells"]]
    assert {"grid_size = 'mine'", "masked_block = 'mine'"} <= set(sources)


@pytest.mark.slow(5)
def test_a_learner_gets_verdicts_in_an_unpacked_archive(tmp_path):
    unpack(learner_files(ROOT, ["00"], with_checks=True), tmp_path)
    # in a run by nbgrader, check() is silent
    quiet = {name: value for name, value in os.environ.items() if name != NBGRADER}
    code = (
        "from hood.learner.check import check\n"
        "def grid_size(n, block): return n // block\n"
        "check('grid_size')\n"
        "import utils, hood\n"
        "print(utils.__file__, hood.__file__)"
    )
    done = subprocess.run(
        [sys.executable, "-m", "IPython", "-c", code],
        cwd=tmp_path / "release" / "00_hello",
        env=quiet | {"PYTHONPATH": str(tmp_path), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert "grid_size: 2 of 3 points" in done.stdout, done.stdout + done.stderr
    assert "“rounded down”" in done.stdout
    assert str(ROOT) not in done.stdout  # only the archive's code was used


def test_visible_checks_and_drivers_need_only_packed_files(tmp_path):
    unpack(learner_files(ROOT, ["00"]), tmp_path)
    code = (
        "import torch, hood, utils.instruments.world, utils.drivers.functions\n"
        "from utils.notebook.expect import expect_close\n"
        "expect_close('x', torch.ones(2), [1.0, 1.0])\n"
        "from hood.learner.check import check, solution\n"
        "check('grid_size')\n"
        "solution('grid_size')\n"
        "print(hood.__file__)"
    )
    quiet = {name: value for name, value in os.environ.items() if name != NBGRADER}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=quiet | {"PYTHONPATH": str(tmp_path), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert str(tmp_path) in done.stdout, done.stdout + done.stderr
    assert ABSENT in done.stdout
    assert UNSOLVED in done.stdout


def test_the_archive_is_the_same_every_time():
    files = {"b": b"2", "a/c": b"1"}
    content = archive(files, "rows")
    assert content == archive(dict(reversed(files.items())), "rows")
    with zipfile.ZipFile(io.BytesIO(content)) as bundle:
        assert bundle.namelist() == ["rows/a/c", "rows/b"]
        assert bundle.read("rows/b") == b"2"


def test_files_of_a_learner_beside_a_lab_are_not_packed(released):
    released.write("release/01_rows/my_solution.py", "count = math.prod(shape)")
    assert "release/01_rows/my_solution.py" not in learner_files(released.root)


def test_a_release_with_answers_in_it_is_refused(released):
    path = released.root / RELEASE
    stub = 'raise NotImplementedError(\\"write your answer here\\")'
    path.write_text(path.read_text().replace(stub, "return 24"))
    with pytest.raises(Refused, match="has somebody's answers"):
        learner_files(released.root)


def test_answers_in_a_lab_that_is_not_packed_do_not_matter(released):
    answered = json.loads((released.root / RELEASE).read_text())
    for cell in answered["cells"]:
        if cell["metadata"].get("nbgrader", {}).get("solution"):
            cell["source"] = "mine"
    for name in ("lab", "lesson"):
        released.write(f"phases/02_other/{name}.py", "# %% [markdown]\n# # Other\n")
    released.write("notebooks/02_other.ipynb", "{}")
    released.write("release/02_other/02_other.ipynb", json.dumps(answered))
    assert RELEASE in learner_files(released.root, ["01"])
    with pytest.raises(Refused, match="02_other"):
        learner_files(released.root, [])
