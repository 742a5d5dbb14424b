"""`python -m hood new FOLDER`: write a course that works at once, for its author to change."""

from __future__ import annotations

import argparse
import re
import tomllib
from importlib import metadata
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from hood import UserError
from hood.atomic_files import write_whole
from hood.authoring.bundle import ENGINES_NAME
from hood.authoring.command import SETTINGS
from hood.course import ENGINE
from hood.phase_paths import slug

TEMPLATES = Path(__file__).parent / "templates" / "course"
PHASE = "01_words"  # the phase in the templates


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, help="the folder to write, which must be new or empty")
    parser.add_argument("--title", help="the course's title (default: made from the folder's name)")


def run(args: argparse.Namespace, root: Path) -> int:
    """Write the course and say what to type next."""
    folder = Path.cwd() / args.folder
    files = new_course(folder, args.title)
    for name, content in files.items():
        write_whole(folder / name, content.encode())
    print(f"{folder}: {len(files)} files")
    print("It has one lesson and a lab with two exercises. Look at it, and change it:")
    print(f"  cd {args.folder}")
    print("  make demo grades a sample class: then open reports/ and feedback/")
    print("  make lab     opens the course as a learner does")
    print("  make test    tries the stored right and wrong answers")
    return 0


def new_course(folder: Path, title: str | None = None) -> dict[str, str]:
    """Return the files of a new course, by path.

    Raises UserError when the folder is not empty, or when its name has no letters or digits.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"expected a new or empty folder, but {folder} is not empty")
    name = slug(folder.name.replace("_", "-"))
    if not name:
        raise UserError(f"expected a name with letters or digits, got {folder.name!r}")
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    said = {
        "id": name,
        "title": (title or name.replace("-", " ").capitalize()).replace('"', "'"),
        "phase": PHASE,
        "engine": ENGINES_NAME,
        "packages": learner_packages(),
    }
    found = {}
    for template in sorted(environment.list_templates()):
        path = re.sub(r"(^|/)dot_", r"\1.", template.removesuffix(".j2"))
        found[path] = environment.get_template(template).render(said)
    return found | {SETTINGS: (ENGINE / SETTINGS).read_text(encoding="utf-8")}


def learner_packages() -> list[str]:
    """Return the engine's packages for a learner's notebooks, each with its version."""
    project = ENGINE / "pyproject.toml"
    if project.is_file():
        return list(tomllib.loads(project.read_text("utf-8"))["project"]["dependencies"])
    return [one for one in metadata.requires(ENGINES_NAME) or [] if "extra ==" not in one]
