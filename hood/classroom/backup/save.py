"""``python -m hood backup FILE``: save the results of a class in one file.

The command may run at the same time as a service or ``grade``. Even then, each learner's graded
files in the archive match the grade in the archive's gradebook. SQLite's backup function copies the
gradebook.
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

ATTEMPTS = 20  # attempts to read a learner's folder that is being replaced
STAGING = ".backup."
NOT_WRITTEN = "No archive was written"
# Folders that `grade` makes beside a learner's graded files while it replaces these files.
BESIDE, OLD = re.compile(r"\..+\.\w{8}(\.old)?"), re.compile(r"\.(.+)\.\w{8}\.old")
MOST_NAMED = 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", type=Path, metavar="FILE", help="the name of the new file, such as term.tar.gz"
    )
    parser.add_argument(
        "--without-gradebook",
        action="store_true",
        help="leave out the gradebook, because it is in PostgreSQL (use pg_dump to save it)",
    )


def run(args: argparse.Namespace, root: Path = ROOT) -> int:
    """Write the archive, and print what it contains and what was left out.

    Raises UserError, and writes no file, if the archive would not be complete.
    """
    course, path = open_course(root), args.file.absolute()
    if os.path.lexists(path):
        raise UserError(f"{path} exists already: choose another name, or move that file away")
    if course.database is None and not args.without_gradebook:
        raise UserError(
            "the gradebook is in a database server, not in a file: save the gradebook with the "
            "server's program (PostgreSQL: `pg_dump DATABASE > FILE`), and save everything else "
            "with `backup --without-gradebook`. Do both while nothing is being graded"
        )
    if course.database and args.without_gradebook:
        raise UserError(
            f"the gradebook is the file {course.database}, which `backup` saves: leave out "
            "--without-gradebook, which is for a gradebook in a database server"
        )
    if course.database and not course.database.exists():
        raise UserError("there is no gradebook yet: grade a lab first")
    with lock_folder(course.root), _staging(course.root) as staged:
        left = _stage(course, staged)
        names = sorted(one.name for one in staged.iterdir() if one.name != MANIFEST)
        with replacing(path) as fresh:
            _write(staged, names, fresh)
    size = path.stat().st_size
    said = f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{size / 1e3:.0f} kB"
    print(f"{path}: {said}: {', '.join(names)}")
    for why in left[:MOST_NAMED]:
        print(f"  left out: {why}")
    if more := len(left[MOST_NAMED:]):
        print(f"  left out: {more} more")
    if course.database is None:
        print("  The gradebook is not in this file: keep this file with the output of pg_dump.")
    print(
        "  The file contains names, work and marks, and only your account can read it. It does not "
        "contain the"
    )
    print("  service's key, or labs, checks and settings (these are in the project).")
    return 0


@contextmanager
def _staging(root: Path) -> Iterator[Path]:
    for left in root.glob(f"{STAGING}*"):  # from a killed backup; no other backup runs now
        shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=STAGING, dir=root) as folder:
        yield Path(folder)


def _stage(course: Course, staged: Path) -> list[str]:
    """Copy everything for the archive; return descriptions of what was left out."""
    left: list[str] = []
    roster = ""
    try:
        file = read_course_file(course.root)
        roster = file.roster.file if file and file.roster else ""
    except UserError as error:
        left.append(f"the roster, because {FILE} can't be read: {error}")
    if roster and not (course.root / roster).resolve().is_relative_to(course.root.resolve()):
        left.append(f"the roster {roster}, which is outside of the course's folder")
        roster = ""
    if roster and not is_table(roster):
        left.append(f"the roster {roster}: its name must end in one of {', '.join(TABLES)}")
        roster = ""
    here = archived_paths(course, roster)
    # Graded files are copied before hand-ins. So a hand-in in the archive may be newer than its
    # grade, but it is never older.
    graded = here.pop("autograded")
    if book := here.pop(BOOK, None):
        engine = engine_of(course.directory.db_url)
        with errors_in_words(course, NOT_WRITTEN), writing(engine):  # nothing else can write now
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
    """Copy the entries of a folder one by one, while another process may replace entries.

    Args:
        skip: as in :func:`_copy`. If ``skip`` is given, hard links are used as copies. This is
            safe, because programs do not change these files, but replace them by new files.
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
                    raise UserError(f"{path} keeps changing: try again later") from None
                time.sleep(0.05)
    shutil.copystat(source, target)
    target.chmod(target.stat().st_mode | stat.S_IRWXU)


def _settle(staged: Path) -> None:
    """If graded files were being replaced, keep the version that matches the gradebook.

    A run of ``grade`` may have replaced files while they were copied.
    """
    found = [path for path in staged.glob("autograded/*/.*.old") if OLD.fullmatch(path.name)]
    keys = _keys(staged / BOOK) if found else {}
    for old in found:
        lab = OLD.sub(r"\1", old.name)
        put_back(old.with_name(lab), keys.get((nfc(old.parent.name), nfc(lab)), ""))


def _keys(book: Path) -> dict[tuple[str, str], str]:
    """Return the id of the job that gave each recorded grade, keyed by learner and lab."""
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
    """Copy a file, or a folder with its files.

    Links, devices and other things that are not files are not copied. Their paths are added to
    ``left``.

    Args:
        skip: a pattern for the names of folders to leave out. Folders that match ``OLD`` are copied
            even if ``skip`` matches them.
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
    except OSError:  # the file is on another disk, or belongs to another account
        shutil.copy2(source, target)


def _raise(error: OSError) -> None:
    raise error


def _write(staged: Path, names: Sequence[str], file: Path) -> None:
    """Write the archive as a file that only this account can read."""

    def nobodys(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.uid = member.gid = 0
        member.uname = member.gname = ""
        return member

    made = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(made, "wb") as raw, tarfile.open(fileobj=raw, mode="w:gz") as archive:
        for name in (MANIFEST, *names):
            archive.add(staged / name, name, filter=nobodys)
