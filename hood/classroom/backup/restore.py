"""``python -m hood restore FILE``: restore an archive that ``backup`` wrote.

Existing files are replaced only with ``--replace``. They are not deleted, but moved into a separate
folder. The whole archive is unpacked before anything is moved. If a restore is killed while it
moves files, the next restore finishes the work. Until then, no command works on the half-restored
course.
"""

from __future__ import annotations

import argparse
import errno
import gzip
import json
import os
import shutil
import stat
import tarfile
import tempfile
import zlib
from contextlib import suppress
from datetime import datetime
from itertools import chain, count
from pathlib import Path
from typing import Any

from hood import UserError
from hood.classroom.backup import (
    BOOK,
    FORMAT,
    MANIFEST,
    README,
    ROSTER,
    TABLES,
    archived_paths,
    damage,
    is_table,
    lock_folder,
)
from hood.classroom.gradebook.run_lock import lock_grades
from hood.grader.course import RESTORING, Course, is_half_restored, open_course
from hood.phase_paths import ROOT

PLAN = "plan.json"
STAGING = ".restore."
BESIDE = ("", "-journal", "-wal", "-shm")  # endings of the files of a gradebook in SQLite
MAX_MANIFEST = 1 << 20
# errors from a damaged archive, or from a manifest with unexpected content
BROKEN = (
    *(tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError),
    *(ValueError, KeyError, TypeError, AttributeError, RecursionError),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", type=Path, nargs="?", metavar="FILE", help="a file that `backup` wrote"
    )
    parser.add_argument(
        "--replace",
        action="store_true",
        help="replace existing files, and move the old files into a separate folder",
    )


def run(args: argparse.Namespace, root: Path = ROOT) -> int:
    """Restore an archive, or finish an interrupted restore; print what was replaced.

    Raises UserError if existing files would be replaced without ``--replace``, or if the archive is
    not complete. In both cases, nothing is changed.
    """
    course = open_course(root, half_restored=True)
    with lock_folder(course.root), lock_grades(course):
        if is_half_restored(course.root):
            _finish(course)
            print(
                "An earlier restore had been interrupted. It is finished now. This command did "
                "nothing else."
            )
            return 0
        for left in [*course.root.glob(f"{STAGING}*"), course.root / RESTORING]:
            # left by an earlier restore that was killed before it moved anything
            shutil.rmtree(left, ignore_errors=True)
        if args.file is None:
            raise UserError("expected the path of a file that `python -m hood backup` wrote")
        staged = Path(tempfile.mkdtemp(prefix=STAGING, dir=course.root))
        try:
            about = _unpack(args.file, staged)
            plan = _plan(course, about, staged)
            if plan["replaced"] and not args.replace:
                named = "\n  ".join(plan["replaced"])
                raise UserError(
                    f"this would replace files in {course.root}:\n  {named}\nNothing was changed. "
                    "To replace these files, stop the service and Jupyter, then add `--replace`, "
                    f"which moves the old files into {plan['aside']}/"
                )
            (staged / PLAN).write_text(json.dumps(plan), encoding="utf-8")
            staged.rename(course.root / RESTORING)  # from here on, the restore can't be undone
        finally:
            shutil.rmtree(staged, ignore_errors=True)
        _finish(course)
    print(f"Restored as of {about['made']}: {', '.join(about['names'])}")
    for line in plan["replaced"]:
        print(f"  replaced, and the old version moved to {plan['aside']}/: {line}")
    if BOOK not in about["names"]:
        print(
            "  The gradebook is not in the archive: restore the gradebook with the program of the "
            "database."
        )
    return 0


def _unpack(path: Path, folder: Path) -> dict[str, Any]:
    """Unpack an archive and return its manifest.

    Raises UserError if the archive is damaged, incomplete, or not from ``backup``.
    """
    try:
        with tarfile.open(path) as archive:
            first = archive.next()
            file = archive.extractfile(first) if first and first.name == MANIFEST else None
            about = json.loads(file.read(MAX_MANIFEST)) if file else None
            if not isinstance(about, dict) or about.get("format") != FORMAT:
                raise UserError(
                    f"{path} was not written by this version of `python -m hood backup`"
                )
            known = {MANIFEST, *about["names"]}
            if strange := [one for one in known if not _is_name(one)]:
                raise UserError(
                    f"{path} was not written by `backup`: it has {strange[0]!r}. "
                    "Nothing was changed"
                )
            for member in archive:
                if member.name.split("/")[0] not in known or not (member.isreg() or member.isdir()):
                    raise UserError(
                        f"{path} was not written by `backup`: it has {member.name!r}. "
                        "Nothing was changed"
                    )
                archive.extract(member, folder, filter="data")
                if member.isdir():  # the filter ignores the mode of a folder
                    (folder / member.name).chmod(member.mode & 0o777 | stat.S_IRWXU)
    except BROKEN as error:
        raise UserError(f"{path} is damaged or incomplete: {error}. Nothing was changed") from None
    lacking = [name for name in about["names"] if not (folder / name).exists()]
    if lacking:
        raise UserError(f"{path} lacks {', '.join(lacking)}. Nothing was changed")
    if (folder / BOOK).exists() and (why := damage(folder / BOOK)):
        raise UserError(f"{path}: its gradebook is damaged ({why}). Nothing was changed")
    return about


def _is_name(name: object) -> bool:
    """Return whether a file or folder at the top of an archive may have this name."""
    return isinstance(name, str) and name not in ("", ".", "..") and not {*"/\0"} & {*name}


def _plan(course: Course, about: dict[str, Any], staged: Path) -> dict[str, Any]:
    """Return the plan: where each part goes, and a description of the files that the part replaces.

    Raises UserError for an archive that does not fit this course.
    """
    if about.get("roster") and not is_table(about["roster"]):
        raise UserError(
            f"the roster in the archive is called {about['roster']!r}, expected a name that ends "
            f"in one of {', '.join(TABLES)}. Nothing was changed"
        )
    here = archived_paths(course, about.get("roster", ""))
    if strange := set(about["names"]) - set(here):
        if BOOK in strange:
            raise UserError(
                "the archive has an SQLite gradebook, but this course's db_url names another "
                "database. Nothing was changed"
            )
        raise UserError(
            f"the archive has {', '.join(sorted(strange))}: expected only files of a course. "
            "Nothing was changed"
        )
    roster = here.get(ROSTER, course.root)
    if not roster.resolve().is_relative_to(course.root.resolve()):
        raise UserError(f"{roster} is outside of {course.root}. Nothing was changed")
    if (here["autograded"] / README).exists() and (staged / "autograded").is_dir():
        shutil.copy2(here["autograded"] / README, staged / "autograded" / README)
    replaced = {name: said for name, path in here.items() if (said := _said(path))}
    return {
        "places": {name: str(path) for name, path in here.items()},
        "gone": [name for name in replaced if name not in about["names"]],
        "kept": list(replaced),
        "aside": _aside(course.root),
        "replaced": list(replaced.values()),
    }


def _aside(root: Path) -> str:
    """Return the name of a new folder for replaced files."""
    name = f"replaced-{datetime.now():%Y-%m-%dT%H%M%S}"
    others = (f"{name}-{number}" for number in count(2))
    return next(one for one in chain([name], others) if not (root / one).exists())


def _said(path: Path) -> str:
    """Describe the files at a path; return an empty string if a restore would replace no file."""
    if path.is_dir():
        many = sum(len(files) for _, _, files in os.walk(path)) - (path / README).exists()
        return f"{path.name}/ with {many} files" if many else ""
    if not path.exists():
        return ""
    changed = datetime.fromtimestamp(path.stat().st_mtime)
    return f"{path.name}, last changed {changed:%Y-%m-%d %H:%M}"


def _finish(course: Course) -> None:
    """Move existing files aside, then move unpacked files into their places.

    Each step is done only once, even if an earlier restore was killed.
    """
    folder = course.root / RESTORING
    plan = json.loads((folder / PLAN).read_text(encoding="utf-8"))
    aside = course.root / plan["aside"]
    aside.mkdir(mode=0o700, exist_ok=True)
    for name, place in plan["places"].items():
        new, target = folder / name, Path(place)
        if new.exists() or name in plan["gone"]:
            for end in BESIDE if name == BOOK else ("",):
                old = target.with_name(target.name + end)
                kept = aside / f"{name}{end}"
                if os.path.lexists(old) and not os.path.lexists(kept):
                    _move(old, kept)
        if new.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            _move(new, target)
            course.share(target, *(target.rglob("*") if target.is_dir() else ()))
    for name in plan["places"]:
        if name not in plan["kept"]:  # an empty folder, or a folder with only the project's file
            shutil.rmtree(aside / name, ignore_errors=True)
    (folder / PLAN).unlink()
    shutil.rmtree(folder)
    with suppress(OSError):
        aside.rmdir()  # nothing was replaced


def _move(source: Path, target: Path) -> None:
    """Move a file or folder.

    If the target is on another disk, the source is copied to a temporary name on that disk, and the
    copy is renamed. So the target is never partial, even if the process is killed.
    """
    try:
        source.rename(target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        beside = target.with_name(f".{target.name}.moving")
        shutil.rmtree(beside, ignore_errors=True)
        beside.unlink(missing_ok=True)
        if source.is_dir():
            shutil.copytree(source, beside, symlinks=True)
        else:
            shutil.copy2(source, beside)
        beside.rename(target)
        shutil.rmtree(source, ignore_errors=True)
        source.unlink(missing_ok=True)
