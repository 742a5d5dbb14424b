"""``python -m hood backup FILE``: write what the results of a class need into one file.

It may run beside a service, and beside ``grade``: then each learner's graded files are those that
the gradebook has the grade for. SQLite's own backup copies the gradebook.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import sqlite3
import stat
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

from nbgrader.api import Assignment, SubmittedAssignment
from sqlalchemy import inspect, select

from hood import UserError
from hood.atomic_files import replacing, why_not_written
from hood.classroom.backup import (
    BOOK,
    FORMAT,
    MANIFEST,
    README,
    TABLES,
    archived_paths,
    damage,
    is_table,
    lock_folder,
)
from hood.classroom.gradebook.database import engine_of, errors_in_words, writing
from hood.classroom.hand_ins.store import RECEIVED, HandIns
from hood.classroom.recording.writer import RECORDS, put_back
from hood.classroom.rules.reading import FILE, read_course_file
from hood.grader.course import Course, open_course
from hood.grader.submission.names import nfc, printable
from hood.phase_paths import ROOT

ATTEMPTS = 20  # to read a learner's folder that is just being replaced
STAGING = ".backup."
NOT_WRITTEN = "No archive was written"
# What `grade` has beside a learner's graded files while it replaces them.
BESIDE, OLD = re.compile(r"\..+\.\w{8}(\.old)?"), re.compile(r"\.(.+)\.\w{8}\.old")
MOST_NAMED = 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE", help="a new file, such as term.tar.gz")
    parser.add_argument(
        "--without-gradebook",
        action="store_true",
        help="of a gradebook in PostgreSQL, which pg_dump saves: write the rest",
    )


def run(args: argparse.Namespace, root: Path = ROOT) -> int:
    """Write the archive, and say what is in it and what is not.

    Raises UserError where it can't be whole; then there is no file.
    """
    course, path = open_course(root), args.file.absolute()
    if os.path.lexists(path):
        raise UserError(f"{path} is there already: name another file, or move it away")
    if course.database is None and not args.without_gradebook:
        raise UserError(
            "the gradebook is no file but in a database of its own: save it with the database's "
            "own program (PostgreSQL: `pg_dump DATABASE > FILE`), and the rest with "
            "`--without-gradebook`, both while nothing is graded"
        )
    if course.database and args.without_gradebook:
        raise UserError(f"--without-gradebook: {course.database} is a file, and belongs into it")
    if course.database and not course.database.exists():
        raise UserError("there is no gradebook yet: grade a lab first")
    with lock_folder(course.root), _staging(course.root) as staged:
        left = _stage(course, staged)
        names = sorted(one.name for one in staged.iterdir() if one.name != MANIFEST)
        with replacing(path) as fresh:
            _write(staged, names, fresh)
    print(f"{path}: {path.stat().st_size / 1e6:.1f} MB: {', '.join(names)}")
    for why in left[:MOST_NAMED]:
        print(f"  left out: {why}")
    if more := len(left[MOST_NAMED:]):
        print(f"  left out: {more} more")
    if course.database is None:
        print("  The gradebook is not in it: keep it beside what pg_dump wrote.")
    print(
        "  It has names, work and marks in it, and only your account can read it. Not in it: labs,"
    )
    print("  checks and settings, which the project has, and the service's key.")
    return 0


@contextmanager
def _staging(root: Path) -> Iterator[Path]:
    for left in root.glob(f"{STAGING}*"):  # of a backup that was killed; this one is alone
        shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=STAGING, dir=root) as folder:
        yield Path(folder)


def _stage(course: Course, staged: Path) -> list[str]:
    """Copy all that belongs into the archive; return what is left out, in words."""
    left: list[str] = []
    roster = ""
    try:
        file = read_course_file(course.root)
        roster = file.roster.file if file and file.roster else ""
    except UserError as error:
        left.append(f"a roster, since {FILE} can't be read: {error}")
    if roster and not (course.root / roster).resolve().is_relative_to(course.root.resolve()):
        left.append(f"the roster {roster}, which lies outside of the course's folder")
        roster = ""
    if roster and not is_table(roster):
        left.append(f"the roster {roster}: its name has none of the endings {', '.join(TABLES)}")
        roster = ""
    here = archived_paths(course, roster)
    # First what was graded, then what was handed in: a hand-in may be newer, and never older.
    graded = here.pop("autograded")
    if book := here.pop(BOOK, None):
        engine = engine_of(course.directory.db_url)
        with errors_in_words(course, NOT_WRITTEN), writing(engine):  # so nobody else writes
            _copy_book(book, staged / BOOK)
            _copy_folder(graded, staged / "autograded", left, BESIDE)
        _settle(staged)
    else:
        _copy_folder(graded, staged / "autograded", left, BESIDE)
    with HandIns(course).at_rest():
        for name in ("submitted", RECEIVED):
            _copy_folder(here.pop(name), staged / name, left)
    for name, path in here.items():
        if path.is_dir():
            _copy_folder(path, staged / name, left)
        else:
            _copy(path, staged / name, left)
    about = {
        "format": FORMAT,
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "course": course.directory.course_id,
        "names": sorted(one.name for one in staged.iterdir()),
        "roster": roster,
    }
    (staged / MANIFEST).write_text(json.dumps(about, indent=1), encoding="utf-8")
    return left


def _copy_book(book: Path, copy: Path) -> None:
    try:
        with closing(sqlite3.connect(book)) as ours, closing(sqlite3.connect(copy)) as theirs:
            ours.backup(theirs)
    except sqlite3.Error as error:
        why = why_not_written(error, book) or f"{book} can't be copied: {error}"
        raise UserError(f"{why}. {NOT_WRITTEN}") from error
    shutil.copymode(book, copy)
    if why := damage(copy):
        raise UserError(f"{book} is damaged ({why}). {NOT_WRITTEN}")


def _copy_folder(
    source: Path, target: Path, left: list[str], skip: re.Pattern[str] | None = None
) -> None:
    """Copy what is in a folder, one entry after the other; one may be replaced just now.

    Args:
        skip: as :func:`_copy` has it. Where it is given, files are replaced and never written to,
            so a link is a copy.
    """
    if not source.is_dir():
        return
    target.mkdir()
    for path in sorted(source.iterdir()):
        for attempt in reversed(range(ATTEMPTS)):
            try:
                if path != source / README:
                    _copy(path, target / path.name, left, skip)
                break
            except FileNotFoundError:
                shutil.rmtree(target / path.name, ignore_errors=True)
                if not attempt:
                    raise UserError(f"{path} changes all the time: try again later") from None
                time.sleep(0.05)
    shutil.copystat(source, target)
    target.chmod(target.stat().st_mode | stat.S_IRWXU)


def _settle(staged: Path) -> None:
    """Of files that were just being replaced, keep those that the gradebook has the grades for."""
    found = [path for path in staged.glob("autograded/*/.*.old") if OLD.fullmatch(path.name)]
    keys = _keys(staged / BOOK) if found else {}
    for old in found:
        lab = OLD.sub(r"\1", old.name)
        put_back(old.with_name(lab), keys.get((nfc(old.parent.name), nfc(lab)), ""))


def _keys(book: Path) -> dict[tuple[str, str], str]:
    """Return the id of the job whose grades a gradebook has, by learner and lab."""
    engine = engine_of(f"sqlite:///{book}")
    with engine.connect() as connection:
        if not inspect(connection).has_table(RECORDS.name):
            return {}
        query = (
            select(SubmittedAssignment.student_id, Assignment.name, RECORDS.c.key)
            .join(Assignment, Assignment.id == SubmittedAssignment.assignment_id)
            .join(RECORDS, RECORDS.c.submission_id == SubmittedAssignment.id)
        )
        return {(nfc(who), nfc(lab)): key for who, lab, key in connection.execute(query)}


def _copy(source: Path, target: Path, left: list[str], skip: re.Pattern[str] | None = None) -> None:
    """Copy a file, or a folder with its files; what is neither is left out, and said.

    Args:
        skip: folders that are passed over, unless they are what was there before (``OLD``).
    """
    if not os.path.lexists(source):
        return
    copied: Callable[[str, str], object] = _linked if skip else shutil.copy2
    if not _is(source, stat.S_ISDIR):
        _copy_file(source, target, left, copied)
        return
    for folder, inside, names in os.walk(source, onerror=_raise):
        here = target / Path(folder).relative_to(source)
        here.mkdir()
        if skip:
            inside[:] = [n for n in inside if not skip.fullmatch(n) or OLD.fullmatch(n)]
        for name in sorted([*names, *(n for n in inside if os.path.islink(Path(folder, n)))]):
            _copy_file(Path(folder, name), here / name, left, copied)
        shutil.copystat(folder, here)
        here.chmod(here.stat().st_mode | stat.S_IRWXU)


def _copy_file(
    source: Path, target: Path, left: list[str], copied: Callable[[str, str], object]
) -> None:
    if _is(source, stat.S_ISREG):
        copied(str(source), str(target))
    else:
        place = "/".join(source.parts[-4:])  # with the learner and the lab
        left.append(f"{printable(place)}, which is neither a file nor a folder")


def _is(path: Path, kind: Callable[[int], bool]) -> bool:
    return kind(path.lstat().st_mode)


def _linked(source: str, target: str) -> None:
    try:
        os.link(source, target, follow_symlinks=False)
    except FileNotFoundError:
        raise
    except OSError:  # on another disk, or of another account
        shutil.copy2(source, target)


def _raise(error: OSError) -> None:
    raise error


def _write(staged: Path, names: Sequence[str], file: Path) -> None:
    """Write the archive, which only this account can read."""

    def nobodys(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.uid = member.gid = 0
        member.uname = member.gname = ""
        return member

    made = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(made, "wb") as raw, tarfile.open(fileobj=raw, mode="w:gz") as archive:
        for name in (MANIFEST, *names):
            archive.add(staged / name, name, filter=nobodys)
