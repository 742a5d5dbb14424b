"""`python -m hood bundle`: write the learner's archive, without anything that shows an answer.

It contains `release/`, `notebooks/`, `utils/`, the records of GPUs that lessons read, what makes a
learner's copies (`hood.learner.copies`), what looks for answers in an install
(`hood.learner.exposed_answers`), the licence, the lock of what they need, and the setup files,
rewritten for that; all labs, or those that are named. The same project gives the same bytes.

Where the class has a ``course.yml``, labs that are not out yet, or not in the class, stay here, and
`class.json` tells the start page what holds: dates and what counts, no names and no extensions.

With `--with-checks` it contains all of `hood/` and the phases' texts, so that `check(...)` in a
lab judges at once. These hold the answers, so such an archive is for learners who study by
themselves.
"""

from __future__ import annotations

import argparse
import io
import json
import re
import tempfile
import tomllib
import zipfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path, PurePath

from jinja2 import Environment, FileSystemLoader

from hood import UserError
from hood.addresses import lesson_url
from hood.atomic_files import write_whole
from hood.authoring.notebooks.release import holds_work
from hood.authoring.notebooks.text import Problem, refuse_if_any
from hood.classroom.lesson_links import settled_file
from hood.classroom.rules.for_learners import rules_for_learners
from hood.classroom.rules.reading import FILE, read_course_file
from hood.classroom.rules.sentences import why_not_out
from hood.course import ENGINE, course
from hood.course import FILE as COURSE
from hood.grader.course import open_course
from hood.grader.submission.released import remember_release
from hood.learner.agents import AGENTS, CLAUDE, POINTER, agents_text
from hood.learner.contents import CLASS, contents_html, contents_text
from hood.phase_paths import START, PhasePaths, choose, pages

START_PAGE = f"notebooks/{START}.ipynb"
SET_UP = ("pyproject.toml", "environment.yml", "LICENSE")
EXTRAS = "extras.txt"  # of the lock: what developers need
# What `hood.learner` needs beside itself.
COPIES = (
    "hood/__init__.py",
    # what declares the course's drivers
    "hood/judge/connection/__init__.py",
    "hood/judge/connection/drivers.py",
    "hood/atomic_files.py",
    "hood/audience.py",
    "hood/course.py",
    "hood/judge/__init__.py",
    "hood/judge/history.py",
    "hood/lab_words.py",
    "hood/metadata.py",
    "hood/notebook_file.py",
    "hood/palette.py",
    "hood/phase_paths.py",
    "hood/untrusted.py",
    "hood/verdict.py",
)
TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    trim_blocks=True,
    keep_trailing_newline=True,
    autoescape=False,
)
SECRET = re.compile(r"BEGIN SOLUTION|BEGIN HIDDEN TESTS|BEGIN MARK SCHEME|hood\.judge\.verify")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "lab", nargs="*", help="only these, by name or number, such as 01 (default: all)"
    )
    parser.add_argument(
        "--with-checks",
        action="store_true",
        help="let check(...) judge in the learner's notebook; the archive then holds the answers",
    )
    parser.add_argument("-o", "--output", type=Path, help="the archive (default: in dist/)")


def run(args: argparse.Namespace, root: Path) -> int:
    top = course(root).id
    path = args.output or root / "dist" / f"{top}.zip"
    now = datetime.now(UTC)
    files = learner_files(root, args.lab, args.with_checks, path.name, now)
    content, folder = archive(files, top), open_course(root)
    for lab in sorted({PurePath(name).parts[1] for name in files if name.startswith("release/")}):
        remember_release(folder, lab)
    write_whole(path, content)
    print(f"{path}: {len(content) / 1e6:.1f} MB")
    left, file = left_out(root, choose(root, args.lab), now), read_course_file(root)
    for why in [why for lab, why in left.items() if file and lab in file.labs]:
        print(f"  left out: {why}")
    if others := [lab for lab in left if file and lab not in file.labs]:
        print(f"  left out, as {FILE} does not name them: {', '.join(others)}")
    return 0


def learner_files(
    root: Path,
    labs: Sequence[str] = (),
    with_checks: bool = False,
    name: str = "",
    now: datetime | None = None,
) -> dict[str, bytes]:
    """Return everything that a learner gets: content by path in the archive.

    `labs` are words as :func:`choose` reads them, all if there are none; `with_checks` adds what
    judges the labs and so the answers; `name` is the archive's own, by default the course's id;
    `now`, with a time zone, is the moment that decides which labs of a class are out.

    Raises UserError when there is no release or no such lab, or something is wrong in
    ``course.yml``, and Refused when a notebook shows hidden parts or holds somebody's answers.
    """
    named = choose(root, list(labs))
    chosen = [page for page in pages(root) if page in named or page.name == START]
    if not any(page.release.exists() for page in chosen):
        raise UserError("there is no release yet: run `python -m hood build`")
    kept_here = left_out(root, chosen, now or datetime.now(UTC))
    out = [page for page in chosen if page.name not in kept_here]
    about = course(root)
    folders = [root / one for one in (*about.packages, *about.records)]
    folders += [root / "hood" / one for one in ("learner", "judge/checks", "judge/values")]
    if with_checks:
        folders += [root / "hood", *(page.folder for page in out)]
    engine = root if (root / "hood").is_dir() else ENGINE
    ours = root / "hood"
    folders = [engine / f.relative_to(root) if f.is_relative_to(ours) else f for f in folders]
    shared = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    shared += [root / one if (root / one).exists() else engine / one for one in COPIES]
    shared += [path for path in (root / "lock").glob("*.txt") if path.name != EXTRAS]
    shared += [page.page for page in chosen if page.page.exists()]
    shared += [page.release for page in out if page.release.exists()]
    places = {p.relative_to(root if p.is_relative_to(root) else engine): p for p in shared}
    files = {name.as_posix(): p.read_bytes() for name, p in places.items() if is_shared(name)}
    problems = [
        Problem(path, 0, f"holds {match[0]!r}, which learners must not see: build it again")
        for path, content in files.items()
        if path.endswith(".ipynb") and (match := SECRET.search(content.decode()))
    ]
    answered = "holds somebody's answers: move it away, or replace it with `build --force`"
    held = [phase.relative(phase.release) for phase in out if holds_work(phase.release)]
    refuse_if_any([*problems, *(Problem(path, 0, answered) for path in held)])
    url = lesson_url(root)
    for lab in [phase.relative(phase.release) for phase in out if url]:
        files |= {lab: settled_file(files[lab], url)} if lab in files else {}
    if lacking := [one for one in SET_UP if not (root / one).is_file()]:
        raise UserError(
            f"an archive says what to install and what is allowed, and {root} has no "
            f"{' and no '.join(lacking)}: write what is missing, as this project's folder has it"
        )
    pyproject = (root / "pyproject.toml").read_text(encoding="utf-8")
    files["pyproject.toml"] = learner_pyproject(pyproject).encode()
    settings = root / COURSE
    toml = settings.read_text(encoding="utf-8") if settings.exists() else ""
    files[COURSE] = learner_course(toml, url).encode()
    # without the developers' packages, and without comments
    environment = (root / "environment.yml").read_text(encoding="utf-8").splitlines(keepends=True)
    kept = [line for line in environment if line.lstrip()[:1] != "#" and EXTRAS not in line]
    files["environment.yml"] = "".join(kept).encode()
    pythons = tomllib.loads(pyproject)["project"]["requires-python"]
    rules = read_course_file(root)
    said = {"archive": name or f"{about.id}.zip", "course": about, "pythons": pythons}
    said |= {"with_checks": with_checks, "in_class": rules is not None}
    files["README.md"] = TEMPLATES.get_template("README.md.j2").render(said).encode()
    files[AGENTS] = agents_text(root, "this folder", with_checks).encode()
    files[CLAUDE] = POINTER.encode()
    files["LICENSE"] = (root / "LICENSE").read_bytes()
    if rules:
        files[CLASS] = rules_for_learners(root, rules)
    if START_PAGE in files:
        files[START_PAGE] = with_contents(files)
    return files


def left_out(root: Path, chosen: Sequence[PhasePaths], now: datetime) -> dict[str, str]:
    """Return why labs of a class are not for its learners yet, by name."""
    file = read_course_file(root)
    labs = dict.fromkeys(page.name for page in chosen if page.name != START and page.lab.exists())
    return {lab: why for lab in labs if (why := why_not_out(file, lab, now))}


def with_contents(files: Mapping[str, bytes]) -> bytes:
    """Return the start page with the table of what the archive has, in place of the project's."""
    notebook = json.loads(files[START_PAGE])
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name, content in files.items():
            if name == CLASS or name.endswith(".ipynb"):
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_bytes(content if name == CLASS else b"")
        page, text = contents_html(root), contents_text(root)
    for cell in notebook["cells"]:
        if "show_contents(" in "".join(cell["source"]):
            for output in cell.get("outputs", []):
                if "text/html" in output.get("data", {}):
                    shown = {"text/html": page, "text/plain": text}
                    output["data"] |= {k: v.splitlines(keepends=True) for k, v in shown.items()}
    return json.dumps(notebook, ensure_ascii=False, indent=1).encode() + b"\n"


def is_shared(path: Path) -> bool:
    return path.suffix != ".pyc" and not any(
        part.startswith(".") or part == "__pycache__" for part in path.parts
    )


def learner_pyproject(text: str) -> str:
    """Return a pyproject.toml for what the archive has, with the same pinned dependencies."""
    project = tomllib.loads(text)["project"]
    return TEMPLATES.get_template("pyproject.toml.j2").render(project=project)


def learner_course(text: str, address: str) -> str:
    """Return a course.toml whose links to lessons lead to the class's own site.

    ``address`` is that site's, as :func:`lesson_url` gives it.
    """
    rest = re.sub(r"(?m)^lesson_url *=.*\n", "", text)
    return f"lesson_url = {json.dumps(address)}\n{rest}"


def archive(files: Mapping[str, bytes], top: str) -> bytes:
    """Return a zip of the files in one folder, ``top``, sorted and without dates."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as bundle:
        for name in sorted(files):
            entry = zipfile.ZipInfo(f"{top}/{name}", date_time=(1980, 1, 1, 0, 0, 0))
            entry.external_attr = 0o644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            bundle.writestr(entry, files[name])
    return buffer.getvalue()
