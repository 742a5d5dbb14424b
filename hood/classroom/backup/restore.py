"""``python -m hood restore FILE``: put back what ``backup`` has written.

Nothing is replaced unasked, and nothing is deleted: what was there is moved into a folder of its
own. The archive is unpacked as a whole before anything is moved. From then on a restore that is
killed is finished by the next one, and no command works with half of it.
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
BESIDE = ("", "-journal", "-wal", "-shm")  # the files that make up a gradebook of SQLite
MAX_MANIFEST = 1 << 20
# what reading a damaged archive raises, or a manifest of any other content
BROKEN = (
    *(tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError),
    *(ValueError, KeyError, TypeError, AttributeError, RecursionError),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", type=Path, nargs="?", metavar="FILE", help="what `backup` has written"
    )
    parser.add_argument(
        "--replace",
        action="store_true",
        help="put it in the place of what is there, which is moved into a folder of its own",
    )


def run(args: argparse.Namespace, root: Path = ROOT) -> int:
    """Restore an archive, or finish what was stopped half way; say what was replaced.

    Raises UserError where something is there that may not be replaced, or the file is no whole
    archive; then nothing was changed.
    """
    course = open_course(root, half_restored=True)
    with lock_folder(course.root), lock_grades(course):
        if is_half_restored(course.root):
            _finish(course)
            print("A restore had been stopped half way. It is finished; nothing else was done.")
            return 0
        for left in [*course.root.glob(f"{STAGING}*"), course.root / RESTORING]:
            shutil.rmtree(left, ignore_errors=True)  # of one that was killed before it began
        if args.file is None:
            raise UserError("name the file that `python -m hood backup` has written")
        staged = Path(tempfile.mkdtemp(prefix=STAGING, dir=course.root))
        try:
            about = _unpack(args.file, staged)
            plan = _plan(course, about, staged)
            if plan["replaced"] and not args.replace:
                named = "\n  ".join(plan["replaced"])
                raise UserError(
                    f"this would replace what is in {course.root}:\n  {named}\nNothing was "
                    "changed. `--replace` puts the archive in its place, and moves all this into "
                    f"{plan['aside']}/; stop the service and Jupyter before"
                )
            (staged / PLAN).write_text(json.dumps(plan), encoding="utf-8")
            staged.rename(course.root / RESTORING)  # from here on it goes forward only
        finally:
            shutil.rmtree(staged, ignore_errors=True)
        _finish(course)
    print(f"Restored as of {about['made']}: {', '.join(about['names'])}")
    for line in plan["replaced"]:
        print(f"  replaced, and now in {plan['aside']}/: {line}")
    if BOOK not in about["names"]:
        print("  The gradebook is not in the archive: restore it with the database's own program.")
    return 0


def _unpack(path: Path, folder: Path) -> dict[str, Any]:
    """Unpack an archive and return what it says of itself.

    Raises UserError when it is damaged, not whole, or not one of ``backup``'s.
    """
    try:
        with tarfile.open(path) as archive:
            first = archive.next()
            file = archive.extractfile(first) if first and first.name == MANIFEST else None
            about = json.loads(file.read(MAX_MANIFEST)) if file else None
            if not isinstance(about, dict) or about.get("format") != FORMAT:
                raise UserError(
                    f"{path} is no archive that `python -m hood backup` of this version wrote"
                )
            known = {MANIFEST, *about["names"]}
            if strange := [one for one in known if not _is_name(one)]:
                raise UserError(f"{path} has {strange[0]!r}, which no backup has written")
            for member in archive:
                if member.name.split("/")[0] not in known or not (member.isreg() or member.isdir()):
                    raise UserError(f"{path} has {member.name!r}, which no backup has written")
                archive.extract(member, folder, filter="data")
                if member.isdir():  # whose mode the filter leaves out
                    (folder / member.name).chmod(member.mode & 0o777 | stat.S_IRWXU)
    except BROKEN as error:
        raise UserError(f"{path} is not a whole archive: {error}. Nothing was changed") from None
    lacking = [name for name in about["names"] if not (folder / name).exists()]
    if lacking:
        raise UserError(f"{path} lacks {', '.join(lacking)}. Nothing was changed")
    if (folder / BOOK).exists() and (why := damage(folder / BOOK)):
        raise UserError(f"{path}: its gradebook is damaged ({why}). Nothing was changed")
    return about


def _is_name(name: object) -> bool:
    """Return whether this may be the name of a file or folder at the top of an archive."""
    return isinstance(name, str) and name not in ("", ".", "..") and not {*"/\0"} & {*name}


def _plan(course: Course, about: dict[str, Any], staged: Path) -> dict[str, Any]:
    """Return what goes where, and what it replaces, in words.

    Raises UserError for an archive that does not fit this course.
    """
    if about.get("roster") and not is_table(about["roster"]):
        raise UserError(
            f"the archive has {about['roster']!r} for a roster, and expected is the name of a "
            f"table ({', '.join(TABLES)}). Nothing was changed"
        )
    here = archived_paths(course, about.get("roster", ""))
    if strange := set(about["names"]) - set(here):
        if BOOK in strange:
            raise UserError(
                "the archive has a gradebook of SQLite, and this course's db_url names another "
                "database. Nothing was changed"
            )
        raise UserError(f"the archive has {', '.join(sorted(strange))}, which no course has")
    roster = here.get(ROSTER, course.root)
    if not roster.resolve().is_relative_to(course.root.resolve()):
        raise UserError(f"{roster} lies outside of {course.root}. Nothing was changed")
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
    """Return the name of a new folder for what is replaced."""
    name = f"replaced-{datetime.now():%Y-%m-%dT%H%M%S}"
    others = (f"{name}-{number}" for number in count(2))
    return next(one for one in chain([name], others) if not (root / one).exists())


def _said(path: Path) -> str:
    """Return what is at a place, in words; empty if nothing is that a restore would replace."""
    if path.is_dir():
        many = sum(len(files) for _, _, files in os.walk(path)) - (path / README).exists()
        return f"{path.name}/ with {many} files" if many else ""
    if not path.exists():
        return ""
    changed = datetime.fromtimestamp(path.stat().st_mtime)
    return f"{path.name}, last changed {changed:%Y-%m-%d %H:%M}"


def _finish(course: Course) -> None:
    """Move what is there aside, and what was unpacked into its place; each step once."""
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
        if name not in plan["kept"]:  # it was an empty folder, or had the project's own file alone
            shutil.rmtree(aside / name, ignore_errors=True)
    (folder / PLAN).unlink()
    shutil.rmtree(folder)
    with suppress(OSError):
        aside.rmdir()  # nothing was replaced


def _move(source: Path, target: Path) -> None:
    """Move a file or folder; to another disk by a copy, so that a kill leaves no half of it."""
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
