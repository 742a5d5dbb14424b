"""nbgrader's exchange: `collect`, `release_assignment` and `release_feedback`.

Every learner may write to its folder, and reads there without the rest of the course.
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
    """What all steps have in common: another course, or a lab without a proper name, is refused."""

    def start(self) -> Any:
        """Run the step.

        It fails where ``course.yml`` can't be read or has another id, or nbgrader can't work with
        the lab's name.
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
    """nbgrader's step, which follows no link, as to the instructor's notebook.

    A submission that is not a folder is collected as an empty one, and one with a malformed name is
    passed over. Each case is logged. What is replaced in ``submitted/`` is kept, and so are, in a
    class with a ``course.yml``, the older submissions that the exchange has: another one than the
    newest may count.
    """

    src_records: list[dict[str, Any]]
    duedate: datetime | None

    def __init__(self, **kwargs: Any):
        super().__init__(**kwargs)
        self._every: dict[str, list[dict[str, Any]]] = {}  # by learner, the newest first

    def init_src(self) -> None:
        """Find the submission of each learner that is collected. nbgrader calls this.

        It is the newest one; with ``--before-duedate`` the newest that came until the learner's own
        due date with its grace, by ``course.yml`` where it names the lab, if there is one.
        """
        super().init_src()
        self.src_records = [one for one in self.src_records if not one.get("problem")]
        if not self.before_duedate:
            return
        file, lab = self._rules(), self.coursedir.assignment_id
        if file is None or file.labs[lab].due is None:
            if file or self.duedate is None:
                self.log.warning(
                    "%s has no due date, so the newest submissions are collected: give it one, "
                    "`due` in course.yml",
                    lab,
                )
            return
        for number, record in enumerate(self.src_records):
            own = self._every[record["username"]]
            in_time = [one for one in own if not self._is_late(file, one)]
            self.src_records[number] = (in_time or own)[0]

    def _rules(self) -> ClassRules | None:
        """Return the rules of the class, if it has some for this lab."""
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
                problem = "no clock shows its time"
            if not problem:
                return record
        except (Exception, SystemExit):  # nbgrader exits; dateutil raises many kinds of errors
            problem = "it is not named LEARNER+LAB+TIME"
        self.log.warning("%a was passed over: %s", name, problem)
        # No learner can have a name with a slash, so this record replaces no learner's submission.
        return {
            "username": f"/{name}",
            "filename": name,
            "timestamp": datetime.min,
            "problem": True,
        }

    def _sort_by_timestamp(self, records: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Pass over folders with a learner's name of others, where one is of the user so named."""
        own = [record for record in records if self._owner(record) == record["username"]]
        if self.check_owner and own:
            for record in records:
                if record not in own:
                    name = record["filename"]
                    self.log.warning("%r was passed over: it belongs to another user", name)
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
        """Collect each submission; make an empty folder for one that is not a readable folder."""
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
                said = "%s: older submissions are not kept, and the exchange still has them: %s"
                self.log.error(said, record["username"], error)
        self.src_records = sound
        if not sound:
            super().copy_files()  # it logs that there is nothing to collect

    def _keep_older(self, store: HandIns, file: ClassRules, record: dict[str, Any]) -> None:
        """Keep a learner's submissions in the exchange that are older than the collected one.

        They are kept, too, where that one could not be collected.
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
        """Yield a submission's ordinary files, and log what is left out."""
        for name, data in files_in(source, self.coursedir.ignore):
            if isinstance(data, Unreadable):
                self.log.warning("%s: %r was left out: %s", source, name, data)
            else:
                yield name, data

    def do_copy(self, src: str, dest: str, log: Any = None) -> None:
        """Copy one submission: read its ordinary files first, then let nbgrader copy those."""
        with tempfile.TemporaryDirectory(prefix="collected-") as folder:
            read = Path(folder) / "submission"
            read.mkdir()
            for name, data in self._ordinary(Path(src)):
                place({name: data}, read)
            super().do_copy(str(read), dest, log)


class ReleaseAssignment(OfClass, ExchangeReleaseAssignment):
    """nbgrader's step. A learner fetches the lab without the lessons that ``release/`` links.

    Where the class has a ``course.yml``, a lab that it does not name is not released.
    """

    def copy_files(self) -> None:
        """Replace what the exchange has, unless the setting is none; nbgrader calls this."""
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
            self.log.warning("%s, and it goes out now", why)
        try:
            remember_release(Course(root, self.config, self.coursedir), lab)
        except UserError as error:
            self.fail(str(error))
        super().copy_files()

    def do_copy(self, src: str, dest: str, log: bool = True) -> None:
        """Copy the lab's folder, with links that lead somewhere; nbgrader calls this."""
        super().do_copy(src, dest, log)
        url = lesson_url(Path(self.coursedir.root))
        for path in sorted(Path(dest).rglob("*.ipynb")):
            try:
                path.write_bytes(settled_file(path.read_bytes(), url))
            except ValueError as error:
                self.log.warning("%s: its links stay as they are: %s", path, error)


class ReleaseFeedback(OfClass, ExchangeReleaseFeedback):
    """nbgrader's step, one learner at a time.

    A page's address in the exchange depends on files that came through it with the submission.
    Where one is missing or cannot be read, nbgrader ends the command; this class logs it and goes
    on.
    """

    src_path: str

    def copy_files(self) -> None:
        """Release every learner's feedback. nbgrader calls this."""
        folders = sorted(found(self.src_path))
        if not folders:
            self.log.warning("No feedback was released: there is no folder %s", self.src_path)
        for folder in folders:
            self.src_path = glob.escape(folder)
            try:
                super().copy_files()
            except (OSError, ValueError) as error:
                why = str(error)
                if isinstance(error, FileNotFoundError):
                    lacks = Path(error.filename).name
                    why = (
                        f"it has no {lacks}, which comes with a submission through the exchange; "
                        f"hand the page in {folder} out by another way"
                    )
                student = Path(folder).parent.name
                self.log.error("%s: the feedback is not released: %s", student, why)
