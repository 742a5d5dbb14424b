"""``nbgrader zip_collect``: collect the files that an instructor downloaded from an LMS.

The download is an archive of the whole class, or files of single learners.

nbgrader unpacks archives of any size, and a damaged archive ends its command. nbgrader also looks
for a learner's id in the whole unpacked path, although a part of this path may come from a
learner's own archive. This module sets limits, goes on after errors, and trusts only the part of
the path that comes from the LMS.
"""

from __future__ import annotations

import gzip
import io
import os
import re
import stat
import tarfile
import unicodedata
import zipfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatch
from functools import cached_property
from pathlib import Path, PurePath, PurePosixPath
from typing import IO, Any

from nbgrader.api import Gradebook
from nbgrader.apps.zipcollectapp import ZipCollectApp
from nbgrader.coursedir import CourseDirectory
from nbgrader.plugins import ExtractorPlugin, FileNameCollectorPlugin
from traitlets import Unicode

from hood import UserError
from hood.classroom.formats.tables import table_of
from hood.classroom.hand_ins.lms import NUMBERS, Enrolled, LmsName, Unmatched, lms_names
from hood.classroom.hand_ins.lms_times import MODIFIED, LmsTimes, deadline_of, supposed
from hood.classroom.rules.reading import read_course_file
from hood.classroom.rules.sentences import no_time_sentence
from hood.grader.course import submissions
from hood.grader.submission.bounds import TOO_MUCH, TooMuchWork, alarmed
from hood.grader.submission.companions import place
from hood.grader.submission.files import (
    MAX_FILES,
    TIMESTAMP,
    is_text,
    read_file,
    read_timestamp,
    too_long,
)
from hood.grader.submission.names import id_problem, nfc, printable
from hood.grader.submission.notebook import MAX_BYTES, Unreadable

# seconds of processor time to unpack one learner's archive; an honest archive takes two seconds
SECONDS = 30.0
MEMORY = 1 << 30
TOO_LARGE = f"the archive contains more than {MAX_BYTES / 1e6:.0f} MB"
EMPTY, NO_FILE = "nothing to collect", "it has no files"
IDS = {"student_id", "file_id"}
OWNER = {"student_id", "timestamp"}
JUNK = ["__MACOSX", "._*", ".DS_Store", "Thumbs.db"]  # system files in archives
HOW = (
    "To collect these files, put Moodle's grading worksheet (in English) or Canvas's gradebook "
    "beside the download, as CSV. Or fill in all fields of these students in the gradebook "
    "(`nbgrader db student add ID --first-name=... --last-name=... --email=... "
    "--lms-user-id=...`). After either step, run this command again with --force, which collects "
    "everything again. You can also put a file into submitted/ID/LAB/ yourself."
)


LATE = (
    "Canvas marks these learners as late, but gives no time: %s. Put the list from Canvas's API "
    "beside the download (docs/how-to/collect-from-an-lms.md), or run this command again with "
    "--force and, for example, "
    '--CarefulCollector.late_as="2 days"'
)
UNKNOWN = (
    "%s was ignored: it is not a table from Moodle or Canvas in a supported language "
    "(docs/how-to/collect-from-an-lms.md)"
)


class CarefulExtractor(ExtractorPlugin):
    """Changes nbgrader's extractor: it applies the limits of a submission to each learner's files.

    An archive usually belongs to one learner, and archives within it are not unpacked. An archive
    is the download of a whole class if an LMS put a learner's name into every entry, but not into
    the archive's own path. Such an archive is treated like a folder with the same files. Files that
    are left out are logged.
    """

    def __init__(self, **kwargs: Any):
        super().__init__(**kwargs)
        self.inside: dict[str, str] = {}  # by file, the part of its path from a learner's archive
        self.tables: dict[str, bytes] = {}  # CSV and JSON files that belong to no learner
        self.left: list[str] = []  # files left out, and why

    def extract(self, archive_path: str, extracted_path: str) -> None:
        """Unpack the archives in a folder, and copy its other files. nbgrader calls this."""
        out = Path(extracted_path)
        for folder, folders, names in os.walk(archive_path):
            if not folders and not names and lms_names(Path(folder).name):
                self._leave(str(Path(folder).relative_to(archive_path)), EMPTY, NO_FILE)
            for name in sorted(names):
                path = Path(folder, name)
                inside = path.relative_to(archive_path)
                learners: dict[str, list[zipfile.ZipInfo]] = {}
                with self._kept(str(inside)):
                    if problem := _problem_of(inside.as_posix()):
                        raise ValueError(problem)
                    learners = self._learners_in(path, inside)
                    if not learners:
                        self._take_file(path, inside, out)
                if learners:
                    self._take_class(path, learners, out / inside.parent / _folder_of(name))

    @property
    def _of_lms(self) -> bool:
        return getattr(self.parent.collector_plugin_inst, "of_lms", False)

    def _take_file(self, path: Path, inside: Path, out: Path) -> None:
        data = read_file(path)
        if isinstance(data, Unreadable):
            self._leave(str(inside), "was left out", data)
            return
        table = path.suffix.lower() in (".csv", ".json")
        if table and len(inside.parts) == 1 and not lms_names(path.name):
            self.tables[path.name] = data
            if self._of_lms:
                return  # the file belongs to no learner
        self._take(inside, data, out)

    def _take(self, path: PurePath, data: bytes, out: Path) -> None:
        """Unpack a learner's archive, or copy any other file, to the same path below ``out``."""
        if path.suffix not in self.zip_ext:
            place({str(path): data}, out)
            return
        to = out / path.parent / _folder_of(path.name)
        to.mkdir(parents=True, exist_ok=True)
        for name, found in self._within_limits(_members(data), str(path), f"{path}/"):
            self.inside[os.path.normpath(to / name)] = name
            place({name: found}, to)

    def _learners_in(self, path: Path, inside: Path) -> dict[str, list[zipfile.ZipInfo]]:
        """Return the entries of a class's download, keyed by learner; empty for any other file."""
        if path.suffix != ".zip" or not self._of_lms:
            return {}
        if _first(inside.parts)[1] or not stat.S_ISREG(path.lstat().st_mode):
            return {}
        found: dict[str, list[zipfile.ZipInfo]] = {}
        with zipfile.ZipFile(path) as archive:
            for info in archive.infolist():
                first = _path_of(info).lstrip("/").partition("/")[0]
                if not self._is_ignored(first):
                    found.setdefault(first, []).append(info)
        odd = [name for name in found if not lms_names(name)]
        if odd and len(odd) < len(found):
            why = f"it also has {odd[0]!a}, a name that is not from an LMS"
            self._leave(path.name, "is not read as a class's download", why)
        return {} if odd else found

    def _take_class(self, path: Path, learners: dict[str, list[zipfile.ZipInfo]], to: Path) -> None:
        count = len({_who(lms_names(name)) for name in learners})
        shown = printable(path.name)
        self.log.info("%s is a class's download, with %d learners", shown, count)
        with zipfile.ZipFile(path) as archive:
            for learner, members in learners.items():
                with self._kept(learner):
                    for name, found in self._within_limits(_zipped(archive, members), learner):
                        self._take(PurePosixPath(name), found, to)

    def _within_limits(
        self, members: Iterable[tuple[str, IO[bytes] | None]], of: str, where: str = ""
    ) -> Iterator[tuple[str, bytes]]:
        """Yield the relative path and the bytes of one learner's files; log the files left out.

        A member whose open file is None is not an ordinary file. ``of`` names the learner or
        archive in messages.
        """
        left, files, ignored = MAX_BYTES, 0, ""
        for name, member in members:
            if self._is_ignored(name):
                ignored = ignored or name
                continue
            files += 1
            if files > MAX_FILES:
                why = f"there are more than {MAX_FILES} files"
                self._leave(f"{of}, further files", "was left out", why)
                return
            problem = _problem_of(name)
            if problem or member is None:
                why = problem or "it is not an ordinary file"
                shown = f"{where}{name}" if len(name) <= 60 else f"{of} ... {name[-40:]}"
                self._leave(shown, "was left out", why)
                continue
            with member:
                found = member.read(left + 1)
            if len(found) > left:
                self._leave(f"{where}{name}", "was left out", TOO_LARGE)
                return
            left -= len(found)
            yield name, found
        if not files:
            why = (
                f"{NO_FILE} except ignored ones, such as {printable(ignored)}"
                if ignored
                else NO_FILE
            )
            self._leave(of, EMPTY, why)

    def _is_ignored(self, name: str) -> bool:
        patterns = (*self.parent.coursedir.ignore, *JUNK)
        parts = PurePosixPath(name).parts
        return any(fnmatch(part, pattern) for part in parts for pattern in patterns)

    @contextmanager
    def _kept(self, name: str) -> Iterator[None]:
        """Limit the work on one learner's files, and log errors, so that the command goes on."""
        try:
            with alarmed(SECONDS, MEMORY):
                yield
        except TooMuchWork:
            self._leave(name, "the rest was left out", TOO_MUCH)
        except Exception as error:  # damaged archives raise many kinds of errors
            self._leave(name, "could not be unpacked", error)

    def _leave(self, name: str, what: str, why: object) -> None:
        self.left.append(f"{printable(name)}: {what}: {why}")  # logged at the end


class CarefulCollector(FileNameCollectorPlugin):
    """Changes nbgrader's collector: it trusts names from the LMS, but not names from learners.

    Without a ``named_regexp`` it reads the names of Moodle and Canvas, and finds the learner in the
    gradebook. With a ``named_regexp`` it skips a file if the learner's id is not valid. It also
    skips a file if the id or the time was found in the part of the path that comes from a learner's
    archive, because learners choose the names there.
    """

    late_as = Unicode(
        "",
        help="The time to assume for learners whom Canvas marks as late, if no table has a time: "
        "a duration after the due date, such as `2 days`, or a date and time in the class's zone.",
    ).tag(config=True)

    def __init__(self, **kwargs: Any):
        super().__init__(**kwargs)
        self._collected: set[tuple[str, str, str]] = set()

    @property
    def of_lms(self) -> bool:
        """Whether names are read as Moodle and Canvas write them."""
        return not self.named_regexp

    def collect(self, submitted_file: str) -> dict[str, str] | None:
        """Return a file's learner, or None to skip the file. nbgrader calls this for each file."""
        if self.of_lms:
            info = self.plan.found.get(os.path.normpath(submitted_file))
            came = self.plan.came.get(info["student_id"]) if info else None
            return {**info, "timestamp": f"{came} UTC"} if info and came else info
        if super().collect(submitted_file) is None:
            return None
        found = re.match(self.named_regexp, submitted_file)
        problem = self._problem(found) if found and found.groupdict().keys() >= IDS else ""
        if problem:
            self.log.warning("%s was skipped: %s", submitted_file, problem)
        return None if problem or not found else found.groupdict()

    @cached_property
    def plan(self) -> Plan:
        """Says which learner each extracted file belongs to, by the names from an LMS."""
        return Plan(self.parent, self.valid_ext)

    def prepare(self) -> None:
        """Find out which learners the extracted files belong to.

        Raises UserError if course.yml can't be read, or ``late_as`` is not a time.
        """
        if self.of_lms:
            self.plan  # noqa: B018

    def say_what_is_left(self) -> None:
        """Log the files that were not collected, and what to do about them. This is called last."""
        left = [*self.parent.extractor_plugin_inst.left]
        if self.of_lms:
            left += [f"{printable(name)}: {why}" for name, why in self.plan.left]
            if unknown := sorted(self.plan.late - self.plan.came.keys()):
                self.log.warning(LATE, ", ".join(unknown))
            if kept := sorted(self.plan.kept):
                self.log.info("The time in timestamp.txt was kept for %s", ", ".join(kept))
            if self.plan.supposed:
                those = ", ".join(self.plan.supposed)
                self.log.warning(
                    "Canvas marks these learners as late; their time is set to %r: %s",
                    self.late_as,
                    those,
                )
        if left:
            self.log.warning("Not collected, and still in downloaded/:\n  %s", "\n  ".join(left))
        if self.of_lms and self.plan.left:
            self.log.warning(HOW)
        course, lab = self.parent.coursedir, self.parent.coursedir.assignment_id
        folders = [found[0] for found in submissions(course, lab).values()]
        without = sum(read_timestamp(folder)[0] is None for folder in folders)
        file = self.plan.file if self.of_lms else read_course_file(Path(course.root))
        if said := no_time_sentence(file, lab, without, len(folders)):
            self.log.warning("%s", said)

    def _problem(self, found: re.Match[str]) -> str:
        path = os.path.normpath(found.string)
        inside = self.parent.extractor_plugin_inst.inside.get(path, "")
        given = len(found.string) - len(inside)
        for group in OWNER & found.groupdict().keys():
            if found.end(group) > given:
                return f"its {group} comes from inside an archive, where learners choose the names"
        student, file = found["student_id"], found["file_id"]
        if problem := id_problem(student):
            return f"its student_id is not valid: {problem}"
        if file.startswith("/") or ".." in PurePosixPath(file).parts:
            return "its file_id leads out of the folder"
        key = (found.string[:given], student, os.path.splitext(file)[0])
        if inside and key in self._collected:  # nbgrader would end the command
            return "another file of that name was collected from the archive"
        self._collected.add(key)
        return ""


@dataclass
class _File:
    """An extracted file, its path in the download, and all ways to read the name from the LMS."""

    path: Path
    shown: str
    packed: bool
    notebook: bool
    read: list[LmsName]
    name: str
    by_number: bool = False


class Plan:
    """Says which learner each file of an LMS's download belongs to."""

    def __init__(self, app: ZipCollectApp, endings: list[str]):
        # nbgrader's data on each collected file, by its path
        self.found: dict[str, dict[str, str]] = {}
        self.left: list[tuple[str, str]] = []  # the other files, and why each is left out
        self.late: set[str] = set()  # ids of learners whom Canvas calls late
        self.came: dict[str, datetime] = {}  # times of hand-ins by id, in UTC, without a zone
        course, extractor = app.coursedir, app.extractor_plugin_inst
        self.kept: list[str] = []  # ids of learners who keep their earlier time
        self.supposed: list[str] = []  # ids of learners who get the time `late_as`
        self.file = read_course_file(Path(course.root))
        self._times = LmsTimes(self.file.zone if self.file else None)
        with Gradebook(course.db_url, course.course_id) as gradebook:
            enrolled = Enrolled(gradebook.students)
        for name, table in extractor.tables.items():
            try:
                with alarmed(SECONDS, MEMORY):
                    self._read_table(app, enrolled, printable(name), table)
            except UserError as error:
                app.log.warning("%s", error)
            except (Exception, TooMuchWork) as error:
                app.log.warning("%s could not be read: %s", printable(name), error)
        for said in self._times.said:
            app.log.warning("%s", said)
        released = course.format_path(course.release_directory, ".", course.assignment_id)
        stems = [path.stem for path in Path(released).glob("*.ipynb")]
        folder = Path(app._format_collect_path(app.extracted_directory))
        claims: dict[str, dict[str, list[_File]]] = defaultdict(lambda: defaultdict(list))
        for who, files in self._by_learner(folder, extractor, endings).items():
            if not any(file.notebook for file in files):
                self.left.append((files[0].shown, f"no file of this learner ends in {endings[0]}"))
                continue
            unmatched: dict[str, list[str]] = defaultdict(list)
            for file in files:
                try:
                    student, file.by_number = enrolled.owner(file.read, stems)
                except Unmatched as error:
                    unmatched[str(error)].append(file.shown)
                    continue
                if problem := id_problem(student) or _problem_of(file.name) or _unfit(file):
                    self.left.append((file.shown, problem))
                    continue
                claims[student][who].append(file)
            for why, (first, *more) in unmatched.items():
                also = f" (and for {len(more)} more files of this learner)" if more else ""
                self.left.append((first, f"{why}{also}"))
        for student, learners in claims.items():
            sure = [who for who, own in learners.items() if own[0].by_number]
            chosen = sure or list(learners)
            for who, own in learners.items():
                if chosen == [who]:
                    self._choose(student, own)
                else:
                    others = " and ".join(one for one in chosen if one != who)
                    self._leave(own, f"the student {student} also matches {others} in the LMS")
        if late_as := app.collector_plugin_inst.late_as:
            self.supposed = sorted(self.late - self.came.keys())
            due = {who: deadline_of(self.file, course.assignment_id, who) for who in self.supposed}
            self.came |= {who: supposed(late_as, due[who]) for who in self.supposed}
        self._keep_times(course)

    def _keep_times(self, course: CourseDirectory) -> None:
        """Keep a learner's earlier hand-in time if the same files are collected again."""
        by_learner: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for path, info in self.found.items():
            by_learner[info["student_id"]].append((path, info["file_id"]))
        for student in by_learner.keys() - self.came.keys():
            where = course.submitted_directory, student, course.assignment_id
            folder = Path(course.format_path(*where))
            came = read_timestamp(folder)[0]
            same = (
                read_file(folder / to) == Path(at).read_bytes() for at, to in by_learner[student]
            )
            if came and all(same):
                self.came[student] = came
                self.kept.append(student)

    def _read_table(self, app: ZipCollectApp, enrolled: Enrolled, name: str, data: bytes) -> None:
        """Read ids and times from a table, and log how the table was read."""
        if name.endswith(".json"):
            self._times.add_list(name, data)
            return
        table = table_of(data, name, [*NUMBERS.items(), *({one} for one in MODIFIED)])
        known = [enrolled.add_table(table), self._times.add_table(table)]
        if not any(known):
            app.log.warning(UNKNOWN, name)
        elif table.note:
            app.log.warning("%s", table.note)

    def _by_learner(
        self, folder: Path, extractor: CarefulExtractor, endings: list[str]
    ) -> dict[str, list[_File]]:
        """Return the files, keyed by the learner's number, or by name if there is no number."""
        found: dict[str, list[_File]] = defaultdict(list)
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            shown = path.relative_to(folder).as_posix()
            inside = extractor.inside.get(os.path.normpath(path), "")
            at, read = _first(Path(shown.removesuffix(inside)).parts)
            notebook = path.suffix.lower() in endings
            if read:
                name = nfc(inside or "/".join(Path(shown).parts[at + 1 :]) or read[0].file)
                one = _File(path, shown, bool(inside), notebook, read, name)
                found[_who(read)].append(one)
            elif notebook:
                self.left.append((shown, "its name does not have the form of Moodle or Canvas"))
        return found

    def _choose(self, student: str, files: list[_File]) -> None:
        """Choose which of a learner's files are collected.

        If several files have the same name, the file that was not in an archive is chosen.
        """
        by_name: dict[str, list[_File]] = defaultdict(list)
        for file in files:
            by_name[file.name].append(file)
        chosen: list[_File] = []
        for name, same in by_name.items():
            if {*map(str, PurePosixPath(name).parents)} & by_name.keys():
                self._leave(same, "its folder has the same name as a file")
                continue
            first = [one for one in same if not one.packed] or same
            taken = {one.path.read_bytes() for one in first}
            if len(taken) == 1:
                chosen.append(first[0])
            others = [o for o in same if len(taken) > 1 or o.path.read_bytes() not in taken]
            self._leave(
                others, f"{student} also handed in a different file named {printable(name)}"
            )
        if not any(one.notebook for one in chosen):  # nothing to grade
            self._leave(chosen, f"no notebook of {student} was collected")
            return
        for one in chosen:
            where = os.path.normpath(one.path)
            self.found[where] = {"student_id": student, "file_id": one.name}
            if one.read[0].late:
                self.late.add(student)
            if came := self._times.of(one.read[0]):
                self.came[student] = came

    def _leave(self, files: Iterable[_File], why: str) -> None:
        self.left += [(file.shown, why) for file in files]


def _who(read: Sequence[LmsName]) -> str:
    """Return the learner's number in the LMS, or the learner's name if there is no number."""
    return read[0].number or read[0].name


def _unfit(file: _File) -> str:
    if file.name == TIMESTAMP:
        return "a file of this name would set the time of the hand-in"
    ending = nfc(os.path.splitext(file.path)[1])
    if os.path.splitext(file.name)[0] + ending != file.name:  # nbgrader's name for a collected file
        return "its name begins with a dot"
    return ""


def _members(data: bytes) -> Iterator[tuple[str, IO[bytes] | None]]:
    """Yield the path of each file in an archive, and the open file.

    If a file is not an ordinary file, None is yielded in place of the open file.
    """
    if zipfile.is_zipfile(io.BytesIO(data)):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            yield from _zipped(archive, archive.infolist())
        return
    # tarfile reads headers of any size. So this code first decompresses the data, within the limit.
    if data.startswith(b"\x1f\x8b"):
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as stream:
            data = stream.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise ValueError(TOO_LARGE)
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as tar:  # only uncompressed data
            for entry in tar:
                if not entry.isdir():
                    name = entry.name.replace("\\", "/")
                    yield name, tar.extractfile(entry) if entry.isreg() else None
    except tarfile.ReadError:
        raise ValueError("it is neither a zip nor a tar file") from None


def _zipped(
    archive: zipfile.ZipFile, members: Iterable[zipfile.ZipInfo]
) -> Iterator[tuple[str, IO[bytes] | None]]:
    for info in members:
        name = _path_of(info)
        if not name.endswith("/"):
            ordinary = stat.S_IFMT(info.external_attr >> 16) in (0, stat.S_IFREG)
            yield name, archive.open(info) if ordinary else None


def _path_of(info: zipfile.ZipInfo) -> str:
    """Return a member's path with slashes, because Windows' own tools write backslashes."""
    return info.orig_filename.replace("\\", "/")


def _first(parts: Iterable[str]) -> tuple[int, list[LmsName]]:
    for at, part in enumerate(parts):
        if found := lms_names(part):
            return at, found
    return -1, []


def _problem_of(name: str) -> str:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts:
        return "its path leads out of the archive"
    if not is_text(name):
        return "its name is not UTF-8"
    if not path.parts:
        return "it has no name"
    if any(unicodedata.category(c) == "Cc" for c in name):
        return "its name has a character that can't be shown"
    if too_long(name):
        return "its path is too long"
    return ""


def _folder_of(name: str) -> str:
    """Return nbgrader's name for an archive's folder: the archive's name without its ending."""
    stem = os.path.splitext(name)[0].removesuffix(".tar")
    return stem if stem.strip(".") else name
