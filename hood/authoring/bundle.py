"""`python -m hood bundle`: write the learner's archive, which has nothing that shows an answer.

The archive contains `release/` (all labs, or only the named labs), `notebooks/`, `utils/`, the GPU
records that lessons read, the licence, the lock, and rewritten setup files. It also contains the
module that makes a learner's copies (`hood.learner.copies`), and the module that looks for answers
in an install (`hood.learner.exposed_answers`). The same project gives the same bytes.

If the class has a ``course.yml``, the archive leaves out labs that are not released yet, and labs
that are not in the class. `class.json` then has the rules for the start page: the dates, and which
exercises count. It has no names and no extensions.

With `--with-checks` the archive contains all of `hood/` and the phases' texts, so that `check(...)`
in a lab judges at once. The archive then contains the answers, so it is for learners who study by
themselves.

With `--wheel` the archive is in a wheel. The wheel's command puts the course into a folder and
opens it (`templates/wheel/`): `uvx --from THE.whl open-the-hood`.

With `--engine` the command writes another wheel. This wheel has only the engine, and can grade any
course.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import io
import json
import re
import shlex
import tempfile
import tomllib
import zipfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path, PurePath

from jinja2 import Environment, FileSystemLoader

from hood import UserError
from hood.addresses import lesson_url
from hood.atomic_files import write_whole
from hood.authoring.command import SETTINGS
from hood.authoring.notebooks.release import holds_work
from hood.authoring.notebooks.text import Problem, refuse_if_any
from hood.classroom.lesson_links import settled_file
from hood.classroom.rules.for_learners import rules_for_learners
from hood.classroom.rules.reading import FILE, read_course_file
from hood.classroom.rules.sentences import why_not_out
from hood.course import ENGINE, Course, course
from hood.course import FILE as COURSE
from hood.grader.course import open_course
from hood.grader.submission.released import remember_release
from hood.learner.agents import AGENTS, CLAUDE, POINTER, agents_text
from hood.learner.contents import CLASS, contents_html, contents_text
from hood.learner.launch import NEWEST, OLDEST
from hood.phase_paths import START, PhasePaths, choose, pages

START_PAGE = f"notebooks/{START}.ipynb"
PYTHONS = f">={'.'.join(map(str, OLDEST))},<{NEWEST[0]}.{NEWEST[1] + 1}"
ENGINES_NAME = "hood-grader"  # of the engine's wheel
ENGINES_PARTS = ("grader", "classroom", "authoring", "service", "site", "cluster", "postgres")
EXTRAS = "extras.txt"  # the part of the lock for developers
# The modules that `hood.learner` needs.
COPIES = (
    "hood/__init__.py",
    # the course's drivers need the next two modules
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
WHEEL = Path(__file__).parent / "templates" / "wheel"
SECRET = re.compile(r"BEGIN SOLUTION|BEGIN HIDDEN TESTS|BEGIN MARK SCHEME|hood\.judge\.verify")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "lab",
        nargs="*",
        help="the labs in the archive, by name or number, such as 01 (default: all)",
    )
    parser.add_argument(
        "--with-checks",
        action="store_true",
        help="let check(...) judge answers in the learner's notebook; the archive then contains "
        "the right answers",
    )
    parser.add_argument(
        "--wheel",
        action="store_true",
        help="write a wheel with a command that puts the course into a folder and opens the course",
    )
    parser.add_argument(
        "--engine",
        action="store_true",
        help="write the wheel of the engine, for courses in other folders, instead of the archive",
    )
    parser.add_argument(
        "-o", "--output", type=Path, help="the path of the archive (default: in dist/)"
    )


def run(args: argparse.Namespace, root: Path) -> int:
    if args.engine:
        name, content = engine_wheel()
        path = args.output or root / "dist" / name
        write_whole(path, content)
        print(f"{path}: {len(content) / 1e6:.1f} MB")
        return 0
    top = course(root).id
    path = args.output or root / "dist" / (wheel_name(root) if args.wheel else f"{top}.zip")
    now = datetime.now(UTC)
    files = learner_files(root, args.lab, args.with_checks, path.name, now)
    content, folder = archive(files, top), open_course(root)
    if args.wheel:
        content = wheel(root, content)
    for lab in sorted({PurePath(name).parts[1] for name in files if name.startswith("release/")}):
        remember_release(folder, lab)
    write_whole(path, content)
    print(f"{path}: {len(content) / 1e6:.1f} MB")
    left, file = left_out(root, choose(root, args.lab), now), read_course_file(root)
    for why in [why for lab, why in left.items() if file and lab in file.labs]:
        print(f"  left out: {why}")
    if others := [lab for lab in left if file and lab not in file.labs]:
        print(f"  left out, because {FILE} does not name them: {', '.join(others)}")
    return 0


def learner_files(
    root: Path,
    labs: Sequence[str] = (),
    with_checks: bool = False,
    name: str = "",
    now: datetime | None = None,
) -> dict[str, bytes]:
    """Return everything that a learner gets: the content for each path in the archive.

    `labs` are names or numbers for :func:`choose`; if empty, all labs. `with_checks` adds the
    checks, and so the answers. `name` is the archive's file name, by default from the course's id.
    `now`, with a time zone, decides which labs of a class are released.

    Raises UserError when a lab does not exist or has no release, or when ``course.yml`` has an
    error. Raises Refused when a notebook shows hidden parts or has somebody's answers.
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
    shared += [root / name for name in installed_from(about)]
    shared += [root / name for name in ("LICENSE",) if (root / name).is_file()]
    shared += [page.page for page in chosen if page.page.exists()]
    shared += [page.release for page in out if page.release.exists()]
    places = {p.relative_to(root if p.is_relative_to(root) else engine): p for p in shared}
    files = {name.as_posix(): p.read_bytes() for name, p in places.items() if is_shared(name)}
    problems = [
        Problem(path, 0, f"has {match[0]!r}, which learners must not see: build it again")
        for path, content in files.items()
        if path.endswith(".ipynb") and (match := SECRET.search(content.decode()))
    ]
    answered = "has somebody's answers: move it away, or replace it with `build --force`"
    held = [phase.relative(phase.release) for phase in out if holds_work(phase.release)]
    refuse_if_any([*problems, *(Problem(path, 0, answered) for path in held)])
    url = lesson_url(root)
    for lab in [phase.relative(phase.release) for phase in out if url]:
        files |= {lab: settled_file(files[lab], url)} if lab in files else {}
    files["pyproject.toml"] = learner_pyproject(root).encode()
    settings = root / COURSE
    toml = settings.read_text(encoding="utf-8") if settings.exists() else ""
    files[COURSE] = learner_course(toml, url).encode()
    if (conda := root / "environment.yml").is_file():
        # without the developers' packages, and without comments
        lines = conda.read_text(encoding="utf-8").splitlines(keepends=True)
        kept = [line for line in lines if line.lstrip()[:1] != "#" and EXTRAS not in line]
        files["environment.yml"] = "".join(kept).encode()
    rules = read_course_file(root)
    said = {"archive": name or f"{about.id}.zip", "course": about, "pythons": PYTHONS}
    said |= {"with_checks": with_checks, "in_class": rules is not None}
    said |= {"conda": conda.is_file()}
    files["README.md"] = TEMPLATES.get_template("README.md.j2").render(said).encode()
    files[AGENTS] = agents_text(root, "this folder", with_checks).encode()
    files[CLAUDE] = POINTER.encode()
    if rules:
        files[CLASS] = rules_for_learners(root, rules)
    if START_PAGE in files:
        files[START_PAGE] = with_contents(files)
    return files


def left_out(root: Path, chosen: Sequence[PhasePaths], now: datetime) -> dict[str, str]:
    """Return the labs that a class's learners must not have yet, each with the reason."""
    file = read_course_file(root)
    labs = dict.fromkeys(page.name for page in chosen if page.name != START and page.lab.exists())
    return {lab: why for lab in labs if (why := why_not_out(file, lab, now))}


def with_contents(files: Mapping[str, bytes]) -> bytes:
    """Return the start page, with a table of contents that lists the archive's files."""
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


def installed_from(about: Course) -> list[str]:
    """Return the files that are named in the arguments for pip in ``course.toml``.

    Raises UserError if one of them is missing.
    """
    words = [word for one in (*about.install, *about.install_gpu) for word in shlex.split(one)]
    named = dict.fromkeys(word for before, word in pairwise(words) if before in ("-r", "-c"))
    if missing := [name for name in named if not (about.root / name).is_file()]:
        raise UserError(f"`install` in {COURSE} names missing files: {', '.join(missing)}")
    return list(named)


def learner_pyproject(root: Path) -> str:
    """Return a pyproject.toml for the archive.

    Its dependencies are the dependencies in the course's own pyproject.toml, with the extra
    "course". If the course has no pyproject.toml, the dependencies are the lines of the files that
    `install` in ``course.toml`` names.
    """
    about, own = course(root), root / "pyproject.toml"
    if own.is_file():
        project = tomllib.loads(own.read_text(encoding="utf-8"))["project"]
        more = project.get("optional-dependencies", {}).get("course", [])
        needed = [*project.get("dependencies", []), *more]
    else:
        texts = [(root / name).read_text(encoding="utf-8") for name in installed_from(about)]
        lines = [line.partition("#")[0].strip() for text in texts for line in text.splitlines()]
        needed = [line for line in lines if re.match(r"[A-Za-z0-9]", line)]
    return TEMPLATES.get_template("pyproject.toml.j2").render(
        course=about, pythons=PYTHONS, dependencies=needed
    )


def learner_course(text: str, address: str) -> str:
    """Return a course.toml in which links to lessons lead to the class's own site.

    ``address`` comes from :func:`lesson_url`.
    """
    rest = re.sub(r"(?m)^lesson_url *=.*\n", "", text)
    return f"lesson_url = {json.dumps(address)}\n{rest}"


def wheel_name(root: Path) -> str:
    """Return the file name of the course's wheel: ``open_the_hood-0.1.0-py3-none-any.whl``."""
    about = course(root)
    return f"{about.id.replace('-', '_')}-{about.version}-py3-none-any.whl"


def wheel(root: Path, course_zip: bytes) -> bytes:
    """Return a wheel that contains an archive of the course, and a command that unpacks it.

    The name of the command is the course's id. The wheel depends on no packages: the command
    installs packages into the course's folder, as ``course.toml`` says.
    """
    about = course(root)
    module = about.id.replace("-", "_")
    said = {"Summary": " ".join(about.about.split()) or about.title}
    files = {
        f"{module}/__init__.py": (WHEEL / "__init__.py").read_bytes(),
        f"{module}/course.zip": course_zip,
    }
    licence = root / "LICENSE"
    return packed(about.id, about.version, said, files, f"{about.id} = {module}:main", licence)


def packed(
    name: str,
    version: str,
    said: Mapping[str, str],
    files: Mapping[str, bytes],
    command: str,
    licence: Path,
    more: Sequence[str] = (),
) -> bytes:
    """Return a wheel with files, a command, and a licence if there is one.

    ``said`` has fields of the wheel's metadata, and ``more`` has the last lines of the metadata.
    https://packaging.python.org/specifications/binary-distribution-format describes the format.
    """
    info = f"{name.replace('-', '_')}-{version}.dist-info"
    fields = {"Name": name, "Version": version, **said, "Requires-Python": PYTHONS}
    metadata = ["Metadata-Version: 2.1", *(f"{key}: {one}" for key, one in fields.items()), *more]
    tags = "Wheel-Version: 1.0\nGenerator: hood\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    held = dict(files) | {
        f"{info}/METADATA": "\n".join([*metadata, ""]).encode(),
        f"{info}/WHEEL": tags.encode(),
        f"{info}/entry_points.txt": f"[console_scripts]\n{command}\n".encode(),
    }
    if licence.is_file():
        held[f"{info}/licenses/LICENSE"] = licence.read_bytes()
    rows = [f"{path},sha256={_record_hash(one)},{len(one)}" for path, one in sorted(held.items())]
    held[f"{info}/RECORD"] = "\n".join([*rows, f"{info}/RECORD,,", ""]).encode()
    return archive(held, "")


def engine_wheel() -> tuple[str, bytes]:
    """Return the name and content of the engine's wheel, for courses in other folders.

    The wheel's dependencies come from the engine's pyproject.toml, without the packages that only
    this course needs. Raises UserError if the engine was installed from a wheel, because it then
    has no pyproject.toml.
    """
    path = ENGINE / "pyproject.toml"
    if not path.is_file():
        raise UserError(f"the engine in {ENGINE} has no pyproject.toml: use a clone of the project")
    project = tomllib.loads(path.read_text(encoding="utf-8"))["project"]
    parts = project["optional-dependencies"]
    more = [f"Requires-Dist: {one}" for one in project["dependencies"]]
    for part in ENGINES_PARTS:
        more.append(f"Provides-Extra: {part}")
        more += [f'Requires-Dist: {one} ; extra == "{part}"' for one in parts[part]]
    inside = [p for p in sorted((ENGINE / "hood").rglob("*")) if p.is_file()]
    files = {p.relative_to(ENGINE): p.read_bytes() for p in inside}
    held = {name.as_posix(): content for name, content in files.items() if is_shared(name)}
    held[SETTINGS] = (ENGINE / SETTINGS).read_bytes()  # a new course gets a copy
    version, about = project["version"], {"Summary": "An autograder for courses of notebooks."}
    command, licence = "hood = hood.__main__:as_program", ENGINE / "LICENSE"
    content = packed(ENGINES_NAME, version, about, held, command, licence, more)
    return f"{ENGINES_NAME.replace('-', '_')}-{version}-py3-none-any.whl", content


def _record_hash(content: bytes) -> str:
    digest = hashlib.sha256(content).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def archive(files: Mapping[str, bytes], top: str) -> bytes:
    """Return a zip of the files. They are sorted, have no dates, and are in the folder ``top``."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as bundle:
        for name in sorted(files):
            inside = f"{top}/{name}" if top else name
            entry = zipfile.ZipInfo(inside, date_time=(1980, 1, 1, 0, 0, 0))
            entry.external_attr = 0o644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            bundle.writestr(entry, files[name])
    return buffer.getvalue()
