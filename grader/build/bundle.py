"""`python -m grader bundle`: write the learner's archive, without anything that shows an answer.

It contains `release/`, `notebooks/`, `utils/`, what makes a learner's copies (`grader.work`), the
licence, the lock of what they need, and the setup files, rewritten for that; all labs, or those
that are named. The same project gives the same bytes.

With `--with-checks` it contains all of `grader/` and the phases' texts, so that `check(...)` in a
lab judges at once. These hold the answers, so such an archive is for learners who study by
themselves.
"""

from __future__ import annotations

import argparse
import io
import json
import re
import tomllib
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from grader import UserError
from grader.build.problems import Problem, Refused
from grader.build.release import holds_work
from grader.lesson_links import SETTING, TABLE
from grader.phase_paths import START, PhasePaths, choose, find_root, pages
from grader.whole_file import write_whole

ARCHIVE = Path("dist") / "open-the-hood.zip"
TOP = "open-the-hood"
EXTRAS = "extras.txt"  # of the lock: what developers need
# What `python -m grader.work` needs.
COPIES = ("grader/__init__.py", "grader/metadata.py", "grader/whole_file.py", "grader/work.py")
SECRET = re.compile(r"BEGIN SOLUTION|BEGIN HIDDEN TESTS|BEGIN MARK SCHEME|grader\.verify")

README = """# Open the Hood

A course that takes PyTorch apart: lessons to read and play with, labs to solve.

    python3 -m venv .venv
    .venv/bin/pip install -r lock/torch-cuda.txt -r lock/packages.txt
    .venv/bin/pip install --no-deps --editable .
    .venv/bin/python -m grader.work
    .venv/bin/jupyter lab --LabApp.default_url=/lab/tree/work/start.ipynb

or, with conda:

    conda env create -f environment.yml
    conda activate open-the-hood
    pip install --no-deps --editable .
    python -m grader.work
    jupyter lab --LabApp.default_url=/lab/tree/work/start.ipynb

`torch-cpu.txt` in place of `torch-cuda.txt` (in `environment.yml`, too) takes half the space on
Linux, and is enough: no GPU is needed.

In a Jupyter that runs elsewhere and is reached by a browser, upload the archive and run this once
in a cell of a new notebook; then restart its kernel:

    !python -m zipfile -e {archive} .
    %pip install --quiet --editable ./{top}
    !cd {top} && python -m grader.work

`grader.work` makes your copies of all lessons and labs, in `work/`: read and solve in those, and
hand a lab's notebook in from there, its cells run from top to bottom. `work/start.ipynb` shows the
road. To bring the course up to date, unpack a new archive over this one and run `grader.work`
again: what is new comes into your copies, and your answers stay. `utils/` is what the notebooks
import; look inside. Python {pythons}. On Windows, work in WSL (`wsl --install`, then as on Ubuntu).
"""
CHECKED = """
Each graded cell of a lab begins with `check(...)`, which judges your answer on new cases and says
what is wrong with it. Once all of it is right, a worked solution stands below, folded. What this
needs lies in `phases/` and `grader/`, the answers among it: look there when you are done.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `python -m grader bundle`."""
    parser.add_argument(
        "lab", nargs="*", help="only these, by name or number, such as 01 (default: all)"
    )
    parser.add_argument(
        "--with-checks",
        action="store_true",
        help="let check(...) judge in the learner's notebook; the archive then holds the answers",
    )
    parser.add_argument("-o", "--output", type=Path, help=f"the archive (default: {ARCHIVE})")


def run(args: argparse.Namespace) -> int:
    """Write the archive and return 0.

    Raises:
        UserError: when there is no release or no such lab.
        Refused: when a notebook must not go to learners.
    """
    root = find_root()
    path = args.output or root / ARCHIVE
    content = archive(learner_files(root, args.lab, args.with_checks, path.name))
    write_whole(path, content)
    print(f"{path}: {len(content) / 1e6:.1f} MB")
    return 0


def learner_files(
    root: Path, labs: Sequence[str] = (), with_checks: bool = False, name: str = ARCHIVE.name
) -> dict[str, bytes]:
    """Return everything that a learner gets: content by path in the archive.

    Args:
        labs: the labs to pack, with their lessons, by words as :func:`choose` reads them; all if
            there are none.
        with_checks: whether to pack what judges the labs, too, which holds the answers.
        name: the archive's file name, for its README.

    Raises:
        UserError: when there is no release yet, or no such lab.
        Refused: when a notebook shows hidden parts or holds somebody's answers.
    """
    named = choose(root, list(labs))
    chosen = [page for page in pages(root) if page in named or page.name == START]
    if not any(page.release.exists() for page in chosen):
        raise UserError("there is no release yet: run `python -m grader build`")
    folders = [root / "utils"]
    if with_checks:
        folders += [root / "grader", *sorted({page.folder for page in chosen})]
    shared = [path for folder in folders for path in sorted(folder.rglob("*")) if path.is_file()]
    shared += [path for path in (root / name for name in COPIES) if path not in shared]
    shared += [path for path in (root / "lock").glob("*.txt") if path.name != EXTRAS]
    for phase in chosen:
        shared += [path for path in (phase.page, phase.release) if path.exists()]
    names = [path.relative_to(root) for path in shared]
    files = {name.as_posix(): (root / name).read_bytes() for name in names if is_shared(name)}
    if shown := [*secrets_shown(files), *answers_given(chosen)]:
        raise Refused(shown)
    pyproject = (root / "pyproject.toml").read_text(encoding="utf-8")
    files["pyproject.toml"] = learner_pyproject(pyproject).encode()
    environment = (root / "environment.yml").read_text(encoding="utf-8")
    files["environment.yml"] = learner_environment(environment).encode()
    pythons = tomllib.loads(pyproject)["project"]["requires-python"]
    readme = README.format(archive=name, top=TOP, pythons=pythons) + (
        CHECKED if with_checks else ""
    )
    files["README.md"] = readme.encode()
    files["LICENSE"] = (root / "LICENSE").read_bytes()
    return files


def is_shared(path: Path) -> bool:
    """Return whether a file goes into the archive: caches, checkpoints and hidden files do not."""
    return path.suffix != ".pyc" and not any(
        part.startswith(".") or part == "__pycache__" for part in path.parts
    )


def secrets_shown(files: Mapping[str, bytes]) -> list[Problem]:
    """Return a problem for each notebook that still has a hidden or solution region."""
    return [
        Problem(name, 0, f"holds {match[0]!r}, which learners must not see: build it again")
        for name, content in files.items()
        if name.endswith(".ipynb") and (match := SECRET.search(content.decode()))
    ]


def answers_given(every: Iterable[PhasePaths]) -> list[Problem]:
    """Return a problem for each of these labs in whose release somebody has worked."""
    return [
        Problem(
            phase.relative(phase.release),
            0,
            "holds somebody's answers: move it away, or replace it with `build --force`",
        )
        for phase in every
        if holds_work(phase.release)
    ]


def learner_pyproject(text: str) -> str:
    """Return a pyproject.toml for what the archive has, with the same pinned dependencies.

    It keeps the address of the course's site.
    """
    whole = tomllib.loads(text)
    project, ours = whole["project"], whole.get("tool", {}).get(TABLE, {})
    dependencies = "\n".join(f'    "{name}",' for name in project["dependencies"])
    return f"""[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "{project["name"]}"
version = "{project["version"]}"
requires-python = "{project["requires-python"]}"
dependencies = [
{dependencies}
]

[tool.{TABLE}]
{SETTING} = {json.dumps(ours.get(SETTING, ""))}

[tool.setuptools.packages.find]
include = ["utils*", "grader*"]

[tool.setuptools.package-data]
"*" = ["*"]
"""


def learner_environment(text: str) -> str:
    """Return the conda environment without the developers' packages and without comments."""
    lines = [
        line
        for line in text.splitlines()
        if not line.lstrip().startswith("#") and EXTRAS not in line
    ]
    return "\n".join(lines) + "\n"


def archive(files: Mapping[str, bytes]) -> bytes:
    """Return a zip of the files in one folder, sorted and without dates."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as bundle:
        for name in sorted(files):
            entry = zipfile.ZipInfo(f"{TOP}/{name}", date_time=(1980, 1, 1, 0, 0, 0))
            entry.external_attr = 0o644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            bundle.writestr(entry, files[name])
    return buffer.getvalue()
