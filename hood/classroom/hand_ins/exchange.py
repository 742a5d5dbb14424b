"""Change the commands of nbgrader's exchange: `collect`, `release_assignment`, `release_feedback`.

Every learner may write to the exchange's folder. Learners who fetch files from the exchange do not
have the other files of the course.
"""

from __future__ import annotations

import glob
import os
import pwd
import shutil
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nbgrader.exchange.default import (
    Exchange,
    ExchangeCollect,
    ExchangeReleaseAssignment,
    ExchangeReleaseFeedback,
)

from hood import UserError
from hood.addresses import lesson_url
from hood.classroom.hand_ins.store import MOST, MOST_BYTES, HandIns, file_stamp
from hood.classroom.lesson_links import settled_file
from hood.classroom.rules.reading import other_id, read_course_file
from hood.classroom.rules.schema import ClassRules
from hood.classroom.rules.sentences import why_not_out
from hood.classroom.rules.standing import HandInTime, by_weight, is_late
from hood.grader.course import Course
from hood.grader.nbgrader.literal_paths import found
from hood.grader.submission.companions import place
from hood.grader.submission.files import files_in, read_timestamp, why_no_folder
from hood.grader.submission.names import id_problem, lab_problem, nfc
from hood.grader.submission.notebook import Unreadable
from hood.grader.submission.released import remember_release
from hood.grader.submission.times import is_on_clocks


class OfClass(Exchange):
    """The base class of the three commands.

    It refuses the id of another course, and a lab name that nbgrader can't use.
    """

    def start(self) -> Any:
        """Run the command.

        The command fails if ``course.yml`` can't be read, if its id is not the id that nbgrader
        uses, or if nbgrader can't use the lab's name.
        """
        root = Path(self.coursedir.root)
        try:
            file = read_course_file(root)
        except UserError as error:
            self.fail(str(error))
        if file and (problem := other_id(root, file, self.coursedir.course_id)):
            self.fail(problem)
        if problem := lab_problem(self.coursedir.assignment_id):
            self.fail(problem)
        return super().start()


class Collect(OfClass, ExchangeCollect):
    """Changes nbgrader's `collect`: it follows no links.

    A link in a submission could lead to the instructor's notebook. A submission that is not a
    folder is collected as an empty folder. A submission with a malformed name is skipped. Both
    cases are logged. Before a hand-in in ``submitted/`` is replaced, a copy of it is kept. In a
    class with a ``course.yml``, older submissions in the exchange are also kept, because an older
    submission may count.
    """

    src_records: list[dict[str, Any]]
    duedate: datetime | None

    def __init__(self, **kwargs: Any):
        super().__init__(**kwargs)
        self._every: dict[str, list[dict[str, Any]]] = {}  # by learner, the newest first

    def init_src(self) -> None:
        """Choose the submission to collect from each learner. nbgrader calls this.

        By default, the newest submission is chosen. With ``--before-duedate``, the newest
        submission that came in time is chosen. If no submission came in time, the newest submission
        is chosen. A submission came in time if it came before the learner's own due date, or within
        the grace after this date. If ``course.yml`` names the lab, both the due date and the grace
        come from ``course.yml``.
        """
        super().init_src()
        self.src_records = [one for one in self.src_records if not one.get("problem")]
        if not self.before_duedate:
            return
        file, lab = self._rules(), self.coursedir.assignment_id
        if file is None or file.labs[lab].due is None:
            if file or self.duedate is None:
                self.log.warning(
                    "%s has no due date, so the newest submissions are collected: set `due` in "
                    "course.yml",
                    lab,
                )
            return
        for number, record in enumerate(self.src_records):
            own = self._every[record["username"]]
            in_time = [one for one in own if not self._is_late(file, one)]
            self.src_records[number] = (in_time or own)[0]

    def _rules(self) -> ClassRules | None:
        """Return the rules of the class; None if the rules do not name this lab."""
        file = read_course_file(Path(self.coursedir.root))
        return file if file and self.coursedir.assignment_id in file.labs else None

    def _is_late(self, file: ClassRules, record: dict[str, Any]) -> bool:
        came = record["timestamp"].replace(tzinfo=UTC)
        return is_late(file, self.coursedir.assignment_id, record["username"], came)

    def _path_to_record(self, path: str) -> dict[str, Any]:
        name = os.path.basename(path)
        try:
            record = super()._path_to_record(path)
            record["username"] = nfc(record["username"])
            problem = id_problem(record["username"])
            if not problem and not is_on_clocks(record["timestamp"]):
                problem = "its time is impossible"
            if not problem:
                return record
        except (Exception, SystemExit):  # nbgrader exits; dateutil raises many kinds of errors
            problem = "it is not named LEARNER+LAB+TIME"
        self.log.warning("%a was skipped: %s", name, problem)
        # No learner can have a name with a slash, so this record replaces no learner's submission.
        return {
            "username": f"/{name}",
            "filename": name,
            "timestamp": datetime.min,
            "problem": True,
        }

    def _sort_by_timestamp(self, records: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Skip folders that other users made for a learner, if the learner owns a folder too."""
        own = [record for record in records if self._owner(record) == record["username"]]
        if self.check_owner and own:
            for record in records:
                if record not in own:
                    name = record["filename"]
                    self.log.warning("%r was skipped: it belongs to another user", name)
            records = own
        found: list[dict[str, Any]] = super()._sort_by_timestamp(records)
        if found:
            self._every[found[0]["username"]] = found
        return found

    def _owner(self, record: dict[str, Any]) -> str | None:
        try:
            path = os.path.join(self.inbound_path, record["filename"])
            return pwd.getpwuid(os.lstat(path).st_uid).pw_name
        except (OSError, KeyError):
            return None

    def copy_files(self) -> None:
        """Collect each submission.

        For a submission that is not a readable folder, make an empty folder.
        """
        sound = []
        lab, file = self.coursedir.assignment_id, self._rules()
        store = HandIns(Course(Path(self.coursedir.root), self.config, self.coursedir))
        every = self.src_records
        for record in every:
            where = self.coursedir.submitted_directory, record["username"]
            here = Path(self.coursedir.format_path(*where, self.coursedir.assignment_id))
            if problem := why_no_folder(Path(self.inbound_path) / record["filename"]):
                self.log.warning("%s: nothing is collected: %s", record["username"], problem)
                here.mkdir(parents=True, exist_ok=True)
                continue
            sound.append(record)
            self.src_records = [record]
            with tempfile.TemporaryDirectory(prefix="collected-") as aside:
                before = Path(aside) / "before"
                try:
                    # nbgrader removes an older submission before it copies the newer one
                    if here.is_dir() and (self.update or self.before_duedate):
                        store.keep(file, record["username"], lab, here)
                        shutil.copytree(here, before, symlinks=True)
                    super().copy_files()
                except Exception as error:
                    self.log.error("%s: nothing is collected: %s", record["username"], error)
                    if before.exists():
                        shutil.rmtree(here, ignore_errors=True)
                        shutil.copytree(before, here, symlinks=True)
        for record in every:
            if file is None:
                break
            try:
                self._keep_older(store, file, record)
            except OSError as error:
                said = "%s: older submissions could not be kept; the exchange still has them: %s"
                self.log.error(said, record["username"], error)
        self.src_records = sound
        if not sound:
            super().copy_files()  # it logs that there is nothing to collect

    def _keep_older(self, store: HandIns, file: ClassRules, record: dict[str, Any]) -> None:
        """Keep the learner's submissions that are older than the collected submission.

        They are copied from the exchange, even if the newer submission could not be collected.
        """
        learner, lab, left = record["username"], self.coursedir.assignment_id, MOST_BYTES
        here = self.coursedir.format_path(self.coursedir.submitted_directory, learner, lab)
        lying, _ = read_timestamp(Path(here))
        stays = lying and not (self.update or self.before_duedate)
        last = lying if stays else record["timestamp"]
        older = {
            file_stamp(one["timestamp"]): one
            for one in self._every.get(learner, ())
            if one["timestamp"] < last
        }
        came = [HandInTime(n, one["timestamp"].replace(tzinfo=UTC)) for n, one in older.items()]
        for one in by_weight(file, lab, learner, came)[: MOST - 1]:
            at, source = older[one.name]["timestamp"], older[one.name]["filename"]
            source = Path(self.inbound_path) / source
            if store.knows(learner, lab, at) or why_no_folder(source):
                continue
            files = dict(self._ordinary(source))
            left -= sum(map(len, files.values()))
            if left < 0:
                break
            store.keep_other(file, learner, lab, at, files)

    def _ordinary(self, source: Path) -> Iterator[tuple[str, bytes]]:
        """Yield the ordinary files of a submission, and log its other files."""
        for name, data in files_in(source, self.coursedir.ignore):
            if isinstance(data, Unreadable):
                self.log.warning("%s: %r was left out: %s", source, name, data)
            else:
                yield name, data

    def do_copy(self, src: str, dest: str, log: Any = None) -> None:
        """Copy one submission: read its ordinary files, then let nbgrader copy these files."""
        with tempfile.TemporaryDirectory(prefix="collected-") as folder:
            read = Path(folder) / "submission"
            read.mkdir()
            for name, data in self._ordinary(Path(src)):
                place({name: data}, read)
            super().do_copy(str(read), dest, log)


class ReleaseAssignment(OfClass, ExchangeReleaseAssignment):
    """Changes nbgrader's `release_assignment`: links to lessons work without the lessons' files.

    If the class has a ``course.yml`` that does not name the lab, the lab is not released.
    """

    def copy_files(self) -> None:
        """Replace the lab in the exchange, unless a setting is wrong; nbgrader calls this."""
        try:
            root = Path(self.coursedir.root)
            lesson_url(root)
            file = read_course_file(root)
        except UserError as error:
            self.fail(str(error))
        lab = self.coursedir.assignment_id
        if why := why_not_out(file, lab, datetime.now(UTC)):
            if file and lab not in file.labs:
                self.fail(why)
            self.log.warning("%s, but the lab is released now", why)
        try:
            remember_release(Course(root, self.config, self.coursedir), lab)
        except UserError as error:
            self.fail(str(error))
        super().copy_files()

    def do_copy(self, src: str, dest: str, log: bool = True) -> None:
        """Copy the lab's folder, with working links; nbgrader calls this."""
        super().do_copy(src, dest, log)
        url = lesson_url(Path(self.coursedir.root))
        for path in sorted(Path(dest).rglob("*.ipynb")):
            try:
                path.write_bytes(settled_file(path.read_bytes(), url))
            except ValueError as error:
                self.log.warning("%s: its links were not changed: %s", path, error)


class ReleaseFeedback(OfClass, ExchangeReleaseFeedback):
    """Changes nbgrader's `release_feedback`: a problem with one learner does not end the command.

    A page's address in the exchange depends on files that came with the submission. If such a file
    is missing or unreadable, nbgrader ends the command. This class logs the error, and goes on with
    the next learner.
    """

    src_path: str

    def copy_files(self) -> None:
        """Release every learner's feedback. nbgrader calls this."""
        folders = sorted(found(self.src_path))
        if not folders:
            self.log.warning("No feedback was released: no folder %s", self.src_path)
        for folder in folders:
            self.src_path = glob.escape(folder)
            try:
                super().copy_files()
            except (OSError, ValueError) as error:
                why = str(error)
                if isinstance(error, FileNotFoundError):
                    lacks = Path(error.filename).name
                    why = (
                        f"the submission has no {lacks}. Only a submission through the exchange "
                        f"has it. Send the learner this page in another way: {folder}"
                    )
                student = Path(folder).parent.name
                self.log.error("%s: the feedback is not released: %s", student, why)
