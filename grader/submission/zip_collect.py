"""``nbgrader zip_collect`` for a download from an LMS, in which every archive is a learner's.

nbgrader unpacks whatever an archive holds, however large, and an archive inside of it, too; one
that is damaged ends the command. It finds out from the path of an unpacked file whose it is, and
part of that path is from the archive. ``nbgrader_config.py`` sets nbgrader's plugins to the classes
of this module.
"""

from __future__ import annotations

import gzip
import io
import os
import re
import stat
import tarfile
import zipfile
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import IO, Any

from nbgrader.plugins import ExtractorPlugin, FileNameCollectorPlugin

from grader.submission.bounds import TOO_MUCH, TooMuchWork, alarmed
from grader.submission.companions import place
from grader.submission.files import LONGEST_PATH, MAX_FILES, read_file
from grader.submission.notebook import MAX_BYTES, Unreadable
from grader.submission.student_ids import id_problem

SECONDS = 30.0  # of processor time for one archive; an honest one of MAX_BYTES takes two
MEMORY = 1 << 30
LONGEST_NAME = 255  # bytes of a file's name, as file systems have it
IDS = {"student_id", "file_id"}
OWNER = {"student_id", "timestamp"}


class CarefulExtractor(ExtractorPlugin):
    """nbgrader's extractor, which treats each archive as one learner's submission.

    The limits are those of a submission's folder (:mod:`grader.submission.files`): so many files
    and bytes, nothing but ordinary files, no path that leads elsewhere. What is left out is logged,
    and the other archives are unpacked. Archives within an archive are not.
    """

    def __init__(self, **kwargs: Any):
        super().__init__(**kwargs)
        self._folders: list[str] = []  # one for each archive, with a slash at the end

    def extract(self, archive_path: str, extracted_path: str) -> None:
        """Unpack the archives and copy the other files of a folder. nbgrader calls this."""
        for folder, _, names in os.walk(archive_path):
            to = Path(extracted_path, os.path.relpath(folder, archive_path))
            for name in sorted(names):
                try:
                    with alarmed(SECONDS, MEMORY):
                        self._take(Path(folder, name), to)
                except TooMuchWork:
                    self.log.warning("%s: the rest was left out: %s", name, TOO_MUCH)
                except Exception as error:  # damaged archives raise many kinds of errors
                    self.log.warning("%s could not be unpacked: %s", name, error)

    def inside(self, path: str) -> str:
        """Return the part of an extracted file's path that comes from an archive, or nothing."""
        path = os.path.normpath(path)
        folders = (folder for folder in self._folders if path.startswith(folder))
        return path[len(min(folders, key=len, default=path)) :]

    def _take(self, path: Path, to: Path) -> None:
        data = read_file(path)
        if isinstance(data, Unreadable):
            self.log.warning("%s was left out: %s", path.name, data)
        elif path.suffix in self.zip_ext:
            to = to / _folder_of(path.name)
            self._folders.append(os.path.normpath(to) + os.sep)
            to.mkdir(parents=True, exist_ok=True)
            for name, found in unpacked(data, self.parent.coursedir.ignore):
                if isinstance(found, Unreadable):
                    self.log.warning("%s: %r was left out: %s", path.name, name, found)
                else:
                    place({name: found}, to)
        else:
            to.mkdir(parents=True, exist_ok=True)
            place({path.name: data}, to)


class CarefulCollector(FileNameCollectorPlugin):
    """nbgrader's collector, for which an archive's owner stands in the archive's own name.

    It passes a file over if ``named_regexp`` finds its learner or its time in the part of its path
    that comes from an archive, where the archive's learner writes what they like, or if what it
    finds is no name. It works together with :class:`CarefulExtractor`.
    """

    def __init__(self, **kwargs: Any):
        super().__init__(**kwargs)
        self._collected: set[tuple[str, str, str]] = set()

    def collect(self, submitted_file: str) -> dict[str, str] | None:
        """Return whose a file is, or None to pass it over. nbgrader calls this for each file."""
        if super().collect(submitted_file) is None:
            return None
        found = re.match(self.named_regexp, submitted_file)
        problem = self._problem(found) if found and found.groupdict().keys() >= IDS else ""
        if problem:
            self.log.warning("%s was passed over: %s", submitted_file, problem)
        return None if problem or not found else found.groupdict()

    def _problem(self, found: re.Match[str]) -> str:
        inside = self.parent.extractor_plugin_inst.inside(found.string)
        given = len(found.string) - len(inside)
        for group in OWNER & found.groupdict().keys():
            if found.end(group) > given:
                return f"its {group} was found within an archive"
        student, file = found["student_id"], found["file_id"]
        if problem := id_problem(student):
            return f"its student_id is no name: {problem}"
        if file.startswith("/") or ".." in PurePosixPath(file).parts:
            return "its file_id leads elsewhere"
        key = (found.string[:given], student, os.path.splitext(file)[0])
        if inside and key in self._collected:  # nbgrader would end the command
            return "another file of that name was collected from the archive"
        self._collected.add(key)
        return ""


def unpacked(data: bytes, ignore: list[str]) -> Iterator[tuple[str, bytes | Unreadable]]:
    """Yield each file in a zip or tar file: its relative path, and its bytes or an Unreadable.

    Args:
        ignore: patterns of file and folder names that are skipped without a message.

    Raises:
        Exception: any, for a damaged archive.
    """
    left, files = MAX_BYTES, 0
    for name, member in _members(data):
        parts = PurePosixPath(name).parts
        if any(fnmatch(part, pattern) for part in parts for pattern in ignore):
            continue
        files += 1
        if files > MAX_FILES:
            yield "further files", Unreadable(f"there are more than {MAX_FILES} files")
            return
        problem = _problem_of(name)
        if problem or member is None:
            yield name[-60:], Unreadable(problem or "it is not an ordinary file")
            continue
        with member:
            found = member.read(left + 1)
        if len(found) > left:
            yield name, Unreadable(f"the archive holds more than {MAX_BYTES / 1e6:.0f} MB")
            return
        left -= len(found)
        yield name, found


def _members(data: bytes) -> Iterator[tuple[str, IO[bytes] | None]]:
    """Yield the path of each file in an archive, and the open file; None if it is not ordinary."""
    if zipfile.is_zipfile(io.BytesIO(data)):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for info in archive.infolist():
                if not info.is_dir():
                    kind = stat.S_IFMT(info.external_attr >> 16)
                    ordinary = kind in (0, stat.S_IFREG)
                    yield info.orig_filename, archive.open(info) if ordinary else None
        return
    # tarfile reads headers of any size, so what it gets is unpacked within the limit first.
    if data.startswith(b"\x1f\x8b"):
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as stream:
            data = stream.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise ValueError(f"the archive holds more than {MAX_BYTES / 1e6:.0f} MB")
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as tar:  # without a compression
            for entry in tar:
                if not entry.isdir():
                    yield entry.name, tar.extractfile(entry) if entry.isreg() else None
    except tarfile.ReadError:
        raise ValueError("it is neither a zip nor a tar file") from None


def _problem_of(name: str) -> str:
    """Return why a path in an archive is refused, or an empty string."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name:
        return "its path leads out of the archive"
    try:
        sizes = [len(part.encode()) for part in path.parts]
    except UnicodeEncodeError:
        return "its name is not UTF-8"
    if not sizes or "\0" in name:
        return "it has no name"
    if max(sizes) > LONGEST_NAME or sum(sizes) + len(sizes) > LONGEST_PATH:
        return "its path is too long"
    return ""


def _folder_of(name: str) -> str:
    """Return an archive's name without its ending, which is nbgrader's name for the folder."""
    stem = os.path.splitext(name)[0].removesuffix(".tar")
    return stem if stem.strip(".") else name
