"""`python -m grader bundle`: write the learner's archive, without anything that shows an answer.

It contains `release/`, `notebooks/`, `utils/`, the records of GPUs that lessons read, what makes a
learner's copies (`grader.work`), the licence, the lock of what they need, and the setup files,
rewritten for that; all labs, or those that are named. The same project gives the same bytes.

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
from collections.abc import Mapping, Sequence
from pathlib import Path

from jinja2 import Environment, FileSystemLoader

from grader import UserError
from grader.authoring.release import holds_work
from grader.authoring.text import Problem, refuse_if_any
from grader.lesson_links import SETTING, TABLE
from grader.phase_paths import START, choose, find_root, pages
from grader.whole_file import write_whole

ARCHIVE = Path("dist") / "open-the-hood.zip"
TOP = "open-the-hood"
EXTRAS = "extras.txt"  # of the lock: what developers need
# What `python -m grader.work` needs.
COPIES = tuple(f"grader/{name}.py" for name in ("__init__", "metadata", "whole_file", "work"))
TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    trim_blocks=True,
    keep_trailing_newline=True,
    autoescape=False,
)
SECRET = re.compile(r"BEGIN SOLUTION|BEGIN HIDDEN TESTS|BEGIN MARK SCHEME|grader\.verify")


def add_arguments(parser: argparse.ArgumentParser) -> None:
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

    `labs` are words as :func:`choose` reads them, all if there are none; `with_checks` adds what
    judges the labs and so the answers; `name` is the archive's own.

    Raises UserError when there is no release or no such lab, and Refused when a notebook shows
    hidden parts or holds somebody's answers.
    """
    named = choose(root, list(labs))
    chosen = [page for page in pages(root) if page in named or page.name == START]
    if not any(page.release.exists() for page in chosen):
        raise UserError("there is no release yet: run `python -m grader build`")
    folders = [root / "utils", root / "benchmarks" / "records"]
    if with_checks:
        folders += [root / "grader", *(page.folder for page in chosen)]
    shared = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    shared += [root / copied for copied in COPIES]
    shared += [path for path in (root / "lock").glob("*.txt") if path.name != EXTRAS]
    for phase in chosen:
        shared += [path for path in (phase.page, phase.release) if path.exists()]
    names = {path.relative_to(root) for path in shared}
    files = {path.as_posix(): (root / path).read_bytes() for path in names if is_shared(path)}
    problems = [
        Problem(path, 0, f"holds {match[0]!r}, which learners must not see: build it again")
        for path, content in files.items()
        if path.endswith(".ipynb") and (match := SECRET.search(content.decode()))
    ]
    answered = "holds somebody's answers: move it away, or replace it with `build --force`"
    held = [phase.relative(phase.release) for phase in chosen if holds_work(phase.release)]
    refuse_if_any([*problems, *(Problem(path, 0, answered) for path in held)])
    pyproject = (root / "pyproject.toml").read_text(encoding="utf-8")
    files["pyproject.toml"] = learner_pyproject(pyproject).encode()
    # without the developers' packages, and without comments
    environment = (root / "environment.yml").read_text(encoding="utf-8").splitlines(keepends=True)
    kept = [line for line in environment if line.lstrip()[:1] != "#" and EXTRAS not in line]
    files["environment.yml"] = "".join(kept).encode()
    pythons = tomllib.loads(pyproject)["project"]["requires-python"]
    said = {"archive": name, "top": TOP, "pythons": pythons, "with_checks": with_checks}
    files["README.md"] = TEMPLATES.get_template("README.md.j2").render(said).encode()
    files["LICENSE"] = (root / "LICENSE").read_bytes()
    return files


def is_shared(path: Path) -> bool:
    return path.suffix != ".pyc" and not any(
        part.startswith(".") or part == "__pycache__" for part in path.parts
    )


def learner_pyproject(text: str) -> str:
    """Return a pyproject.toml for what the archive has, with the same pinned dependencies."""
    whole = tomllib.loads(text)
    address = json.dumps(whole.get("tool", {}).get(TABLE, {}).get(SETTING, ""))
    settings = {"table": TABLE, "setting": SETTING, "address": address}
    return TEMPLATES.get_template("pyproject.toml.j2").render(project=whole["project"], **settings)


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
