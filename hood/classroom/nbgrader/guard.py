"""Make nbgrader treat submissions, and files from other people, as carefully as the grader does.

nbgrader has no settings for the parts that :func:`guard` replaces.
"""

from __future__ import annotations

import contextlib
import glob
import os
import sys
import traceback
from datetime import UTC, datetime
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from jupyter_server.base.handlers import JupyterHandler
from nbconvert.exporters import HTMLExporter
from nbformat.notebooknode import NotebookNode
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.apps.api import NbGraderAPI
from nbgrader.apps.zipcollectapp import ZipCollectApp
from nbgrader.converters import Autograde, GenerateAssignment, base
from nbgrader.converters.base import NbGraderException
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import SaveCells

from hood import UserError
from hood.atomic_files import why_not_written
from hood.classroom.formats.words import duration
from hood.classroom.gradebook.marks import averages, handed_in, seconds_late
from hood.classroom.gradebook.service_jobs import forget
from hood.classroom.hand_ins.store import HandIns
from hood.classroom.hand_ins.zip_collect import CarefulCollector
from hood.classroom.rules.class_list import EVERYBODY, ClassList, class_list
from hood.classroom.rules.reading import FILE, deadlines, read_course_file
from hood.classroom.rules.sentences import sum_sentences, why_not_out
from hood.grader.course import Course, submissions
from hood.grader.nbgrader.patches import patch_commands
from hood.grader.submission.files import read_timestamp
from hood.grader.submission.names import lab_problem, nfc, printable, spelled
from hood.grader.submission.released import remember_release

_format_path = CourseDirectory.format_path
_start_generating, _remove_tree = GenerateAssignment.start, base.rmtree
_process_extracted = ZipCollectApp.process_extracted_files
_nbgraders_submission, _nbgraders_submissions = (
    NbGraderAPI.get_submission,
    NbGraderAPI.get_submissions,
)
_nbgraders_students = NbGraderAPI.get_students
_nbgraders_assignment, _nbgraders_notebooks = NbGraderAPI.get_assignment, NbGraderAPI.get_notebooks
_nbgraders_grade_cell = SaveCells._create_grade_cell
_nbgraders_removal = Gradebook.remove_student
FORMGRADER = "nbgrader.server_extensions.formgrader"
TABLE = '<table class="table table-hover">'
EARNED = (
    "<p>Scores on this page are raw points, as they were earned. The class report and feedback "
    f"show the points that count according to <code>{FILE}</code>. The list of submissions shows "
    "these points after the time of each submission.</p>"
)
AVERAGING = {"gradebook_assignments.tpl", "gradebook_notebooks.tpl"}
AVERAGED = (
    "<p>Averages include only existing marks. If an answer is not marked yet, or could not be "
    "read, neither its points nor its maximum are included.</p>"
)


def guard() -> None:
    """Replace functions of nbgrader in this process. A second call changes nothing.

    - A ``timestamp.txt`` counts as missing if it is a link, a FIFO or a device, or contains no
      date. nbgrader would wait for such a file, or end the whole command.
    - Formgrader lists the same submissions as ``python -m hood grade``: names are compared in NFC,
      and a submission without a notebook of the lab is listed too. ``autograde`` itself does not
      look for submissions, because the batch grader does that
      (:mod:`hood.classroom.recording.exporter`).
    - Files that ``generate_assignment`` did not make stay in a lab's folder of ``release/``.
      nbgrader would remove the whole folder before it generates the lab, and again if it can't
      generate the lab.
      If the class does not have the lab, or if the lab is not released yet, a warning is logged
      before the lab is generated. A lab name that nbgrader can't use is refused.
    - ``zip_collect`` keeps a copy of each hand-in that it replaces. At its end, it lists the files
      that it did not collect.
    - Formgrader's list of submissions shows which submissions came late, even if lateness costs
      nothing. If the class has a ``course.yml``, this list also shows the counted points, and all
      of formgrader's lists say that their other numbers are raw points.
    - Formgrader's lists, counts and averages include only learners of the class
      (:mod:`hood.classroom.rules.class_list`).
    - Formgrader's averages include only existing marks, and pages with averages say so. nbgrader
      would count a missing mark as 0.
    - If an unchanged lab is generated again, it keeps its maximum, which may be less than the sum
      of its exercises' points (:func:`hood.classroom.gradebook.marks.set_maxima`).
    - A course or an exchange is found even in a folder such as ``ML [2026]``
      (:mod:`hood.grader.nbgrader.patches`).
    - Formgrader serves the course's files with a sandboxed origin, as Jupyter does everywhere else.
      So a learner's page can't act with the rights of the user who opens it.
    - Formgrader's pages of submissions load no external script for formulas.
    - nbgrader's commands for a whole class print their messages at the end
      (:mod:`hood.grader.nbgrader.patches`).
    - When a student is removed from the gradebook, the service's verdicts on their answers are
      removed too.
    - If a file can't be written, nbgrader's converters log a sentence instead of a traceback.
    """
    patch_commands()
    base.traceback = SimpleNamespace(format_exc=_format_exc)
    CourseDirectory.get_existing_timestamp = _existing_timestamp
    NbGraderAPI.get_submitted_timestamp = _submitted_timestamp
    NbGraderAPI.get_submitted_students = _submitted_students
    Autograde.init_notebooks = lambda converter: None
    CourseDirectory.format_path = _found_path
    GenerateAssignment.start = _generate
    ZipCollectApp.process_extracted_files = _collect_and_say
    SaveCells._create_grade_cell = _save_grade_cell
    Gradebook.remove_student = _remove_student
    NbGraderAPI.get_submission = _get_submission
    NbGraderAPI.get_submissions = _get_submissions
    NbGraderAPI.get_students = _get_students
    NbGraderAPI.get_assignment = _get_assignment
    NbGraderAPI.get_notebooks = _get_notebooks
    if f"{FORMGRADER}.handlers" in sys.modules:  # only in Jupyter's server
        handler = sys.modules[f"{FORMGRADER}.handlers"].SubmissionFilesHandler
        handler.content_security_policy = property(_apart)
        base_handler = sys.modules[f"{FORMGRADER}.base"].BaseHandler
        base_handler.exporter, base_handler.render = property(_exporter), _render


def _remove_student(gradebook: Gradebook, student_id: str) -> None:
    _nbgraders_removal(gradebook, student_id)
    forget(gradebook.db, student_id)


def _found_path(
    course: CourseDirectory,
    nbgrader_step: str,
    student_id: str,
    assignment_id: str,
    escape: bool = False,
) -> str:
    """Return nbgrader's path. The names in a submission's path are spelled as on the disk."""
    path: str = _format_path(course, nbgrader_step, student_id, assignment_id, escape)
    if (student_id + assignment_id).isascii() or escape or os.path.lexists(path):
        return path
    if nbgrader_step != course.submitted_directory:
        return path
    found = submissions(course, assignment_id, [glob.escape(student_id)])
    return str(found.get(nfc(student_id), [path])[0])


def _submitted_students(api: NbGraderAPI, assignment: str) -> set[str]:
    """Return the ids of the learners with a submission folder, spelled as in the gradebook."""
    found = submissions(api.coursedir, assignment)
    students = {student for student, folders in found.items() if any(map(Path.is_dir, folders))}
    students = set(_class_of(api).without_others(students))
    if all(map(str.isascii, students)):
        return students
    with Gradebook(api.coursedir.db_url, api.coursedir.course_id) as gradebook:
        known = spelled({one.id for one in gradebook.students})
    return {known.get(student, student) for student in students}


def _format_exc() -> str:
    return why_not_written(sys.exception()) or traceback.format_exc()


def _existing_timestamp(course: CourseDirectory, folder: str) -> datetime | None:
    time, notes = read_timestamp(Path(folder))
    for note in notes:
        course.log.warning("%s: %s", folder, note.message)
    return time


def _submitted_timestamp(api: NbGraderAPI, assignment: str, student: str) -> datetime | None:
    course = api.coursedir
    folder = course.format_path(course.submitted_directory, student, assignment)
    return _existing_timestamp(course, folder)


def _generate(step: GenerateAssignment) -> None:
    base.rmtree = partial(_remove_made, step)
    try:
        if problem := lab_problem(step.coursedir.assignment_id):
            raise UserError(problem)
        file = read_course_file(Path(step.coursedir.root))
        if why := why_not_out(file, step.coursedir.assignment_id, datetime.now(UTC)):
            step.log.warning("%s", why)
        _start_generating(step)
        course = Course(Path(step.coursedir.root), step.config, step.coursedir)
        remember_release(course, step.coursedir.assignment_id)
    except (OSError, UserError) as error:  # OSError if the release can't be removed
        why = str(error) if isinstance(error, UserError) else why_not_written(error)
        if not why:
            raise
        step.log.error("%s", why)
        raise NbGraderException(why) from error
    finally:
        base.rmtree = _remove_tree


def _remove_made(step: GenerateAssignment, release: str) -> None:
    """In a released lab, remove the files that are also in ``source/``, and log the other files."""
    source, ignore = Path(step.notebooks[0]).parent, step.coursedir.ignore
    kept = []
    for folder, _, names in os.walk(release):
        for name in names:
            inside = Path(folder, name).relative_to(release)
            if os.path.lexists(source / inside):
                Path(folder, name).unlink()
            elif not any(fnmatch(part, one) for part in inside.parts for one in ignore):
                kept.append(printable(str(inside)))
    if kept:
        named = ", ".join(sorted(kept))
        step.log.warning(
            "%s: these files were kept, because they don't come from source/: %s", release, named
        )


def _collect_and_say(app: ZipCollectApp) -> None:
    collector = app.collector_plugin_inst
    if not isinstance(collector, CarefulCollector):
        _process_extracted(app)
        return
    try:
        collector.prepare()
    except UserError as error:
        app.fail(str(error))
    if app.force:  # existing hand-ins are replaced
        course, lab = (
            Course(Path(app.coursedir.root), app.config, app.coursedir),
            app.coursedir.assignment_id,
        )
        store, file = HandIns(course), read_course_file(course.root)
        for learner, folders in submissions(app.coursedir, lab).items():
            for folder in folders:
                store.keep(file, learner, lab, folder)
    try:
        _process_extracted(app)
    finally:  # nbgrader ends the command if a folder of submitted/ is not empty
        collector.say_what_is_left()


def _save_grade_cell(step: SaveCells, cell: NotebookNode) -> None:
    _nbgraders_grade_cell(step, cell)
    where = cell.metadata.nbgrader.grade_id, step.notebook_id, step.assignment_id
    with contextlib.suppress(MissingEntry):
        before = step.gradebook.find_source_cell(*where)
        if before.checksum == cell.metadata.nbgrader.get("checksum"):  # it includes the points
            most = step.gradebook.find_grade_cell(*where).max_score
            step.new_grade_cells[where[0]]["max_score"] = most


def _get_submission(api: NbGraderAPI, assignment: str, student: str, **known: Any) -> Any:
    found = _nbgraders_submission(api, assignment, student, **known)
    # `get_submissions` calls this for each submission, and adds the other data for all submissions
    # at once
    in_list = bool(known)
    return found if in_list or not found else _with_more(api, assignment, [found])[0]


def _get_submissions(api: NbGraderAPI, assignment: str) -> list[dict[str, Any]]:
    belong, every = _class_of(api), _nbgraders_submissions(api, assignment)
    return _with_more(api, assignment, [one for one in every if not belong.why_not(one["student"])])


def _class_of(api: NbGraderAPI) -> ClassList:
    try:
        return class_list(Path(api.coursedir.root))
    except UserError as error:  # the lists are still shown; the commands report the error
        api.log.warning("%s", error)
        return EVERYBODY


def _get_students(api: NbGraderAPI) -> list[dict[str, Any]]:
    belong = _class_of(api)
    return [student for student in _nbgraders_students(api) if not belong.why_not(student["id"])]


def _get_assignment(api: NbGraderAPI, assignment: str, **known: Any) -> dict[str, Any] | None:
    found: dict[str, Any] | None = _nbgraders_assignment(api, assignment, **known)
    if found:
        _average([found], api, assignment)
    return found


def _get_notebooks(api: NbGraderAPI, assignment: str) -> list[dict[str, Any]]:
    notebooks: list[dict[str, Any]] = _nbgraders_notebooks(api, assignment)
    _average(notebooks, api, assignment, each=True)
    return notebooks


def _average(
    shown: list[dict[str, Any]], api: NbGraderAPI, assignment: str, *, each: bool = False
) -> None:
    """Replace nbgrader's averages and maxima by the averages and maxima of the existing marks.

    Args:
        shown: a lab, or each of its notebooks.
    """
    belong = _class_of(api)
    with api.gradebook as gradebook:
        if not (who := handed_in(gradebook.db, assignment)):
            return
        every = averages(gradebook.db, assignment, belong.passed_over(who)).items()
    for one in shown:
        own = [(key, value) for key, value in every if not each or key[0] == one["name"]]
        for kind in ("code", "written", "task", ""):
            those = [value for key, value in own if kind in ("", key[1])]
            name = f"{kind}_score".removeprefix("_")
            one[f"average_{name}"] = sum(earned for earned, _ in those)
            one[f"max_{name}"] = sum(most for _, most in those)


def _with_more(
    api: NbGraderAPI, assignment: str, found: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Add lateness and counted points to the time that is shown for each graded submission.

    The scores beside the time are still nbgrader's scores.
    """
    from hood.classroom.results.counted_marks import counts_of  # here, because it imports IPython

    graded = {one["student"]: one for one in found if one["autograded"]}
    deadline_of, counted = None, None
    try:
        deadline_of = deadlines(Path(api.coursedir.root), assignment)
        if graded and deadline_of:
            course = Course(Path(api.coursedir.root), api.config, api.coursedir)
            counted = counts_of(course, assignment, graded)
    except UserError as error:  # the lists are still shown; the commands report the error
        api.log.warning("%s", error)
    with api.gradebook as gradebook:
        late = seconds_late(gradebook.db, assignment, deadline_of)
    for student, one in graded.items():
        said = [f"late: {duration(late[student])}"] if late.get(student) else []
        if what := (counted or {}).get(student):
            said.append(next(sum_sentences(what)).removesuffix("."))
        if said:
            one["timestamp"] = one["timestamp"] or ""  # for None, formgrader's script shows nothing
            one["display_timestamp"] = (
                f"{one['display_timestamp'] or 'no time'} ({'; '.join(said)})"
            )
    return found


def _render(handler: Any, name: str, **about: Any) -> str:
    """Render one of formgrader's pages; in a class with rules, the page explains its numbers."""
    page: str = handler.settings["nbgrader_jinja2_env"].get_template(name).render(**about)
    if "Score</th>" in page and (Path(handler.coursedir.root) / FILE).exists():
        page = page.replace("Score</th>", "Score, as earned</th>").replace(TABLE, EARNED + TABLE, 1)
    if name in AVERAGING:
        page = page.replace(">Score", ">Avg. Score").replace(TABLE, AVERAGED + TABLE, 1)
    return page


def _apart(handler: JupyterHandler) -> str:
    whole: Any = JupyterHandler.content_security_policy  # the property, not its value
    policy = whole.fget(handler)
    return f"{policy}; sandbox allow-scripts"


def _exporter(handler: JupyterHandler) -> HTMLExporter:
    exporter: HTMLExporter = handler.settings["nbgrader_exporter"]
    if not exporter.extra_loaders:
        from hood.grader.cleaning.formulas import without_script

        without_script(exporter)
    return exporter
