"""The command of a course's wheel: put or update the course in a folder, and open the course.

The course is beside this module as the learner's archive, ``course.zip``. This module writes the
folder's files. ``hood.learner.launch``, which the archive contains, does everything else.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Sequence
from pathlib import Path

ARCHIVE = Path(__file__).with_name("course.zip")


def main(arguments: Sequence[str] | None = None) -> int:
    files, about = read(ARCHIVE)
    parser = argparse.ArgumentParser(
        prog=about["id"],
        description=f"{about['title']}: put the course into a folder, and open it in JupyterLab.",
        epilog="All other options go to `python3 -m hood.learner.launch` in that folder.",
    )
    parser.add_argument(
        "--folder", type=Path, default=Path(about["id"]), help="default: %(default)s"
    )
    args, options = parser.parse_known_args(arguments)
    folder = args.folder.resolve()
    if problem := not_ours(folder, about["id"]):
        sys.exit(f"{problem}. Name another folder: {about['id']} --folder FOLDER")
    python = folder / ".venv" / "bin" / "python"
    if python.exists():  # answers in the course's own notebooks go into the copies
        subprocess.run([python, "-m", "hood.learner.copies"], cwd=folder, check=False)
    written, kept = lay_down(files, folder)
    print(f"{about['title']} is in {folder}: {written} of {len(files)} files are new.", flush=True)
    if kept:
        print(f"Changed notebooks: {kept}. The old versions are beside them, as .previous-NAME.")
    try:
        call = [sys.executable, "-m", "hood.learner.launch", *options]
        return subprocess.run(call, cwd=folder, check=False).returncode
    except KeyboardInterrupt:
        return 130


def read(archive: Path) -> tuple[dict[str, bytes], dict[str, str]]:
    """Return the archive's files (path in the course's folder -> content), and course.toml."""
    with zipfile.ZipFile(archive) as bundle:
        files = {name.partition("/")[2]: bundle.read(name) for name in bundle.namelist()}
    return files, tomllib.loads(files["course.toml"].decode())


def not_ours(folder: Path, name: str) -> str:
    """Return why the course can't be put into a folder; empty if the folder is usable."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return ""
    try:
        there = tomllib.loads((folder / "course.toml").read_text("utf-8")).get("id")
    except (OSError, ValueError):
        there = None
    if (folder / ".git").exists():
        return f"{folder} is a clone of the course: `make lab` opens it"
    return "" if there == name else f"{folder} exists, and is not this course"


def lay_down(files: dict[str, bytes], folder: Path) -> tuple[int, int]:
    """Write missing and different files; return their number and the number of changed notebooks.

    An old notebook may have answers, so it is kept beside the new notebook.
    """
    written = kept = 0
    for name, content in files.items():
        path = folder / name
        if path.is_file() and path.read_bytes() == content:
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        half = path.with_name(f".{path.name}.new")
        half.write_bytes(content)
        if path.suffix == ".ipynb" and path.exists():
            os.replace(path, path.with_name(f".previous-{path.name}"))
            kept += 1
        os.replace(half, path)  # an interrupted call leaves no half of a file
        written += 1
    return written, kept


if __name__ == "__main__":
    sys.exit(main())
