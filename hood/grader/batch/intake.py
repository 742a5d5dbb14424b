"""Read labs and submissions from a course folder."""

from __future__ import annotations

import hashlib
import json
import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nbgrader.preprocessors import (
    AssignLatePenalties,
    OverwriteCells,
    OverwriteKernelspec,
    SaveAutoGrades,
)
from nbgrader.utils import is_grade, is_solution
from traitlets.config import Config, Configurable, LazyConfigValue
from traitlets.utils.importstring import import_item

from hood import UserError
from hood.grader.batch.job import (
    DIGITS,
    LabFiles,
    Submission,
    can_compile,
    digest_of,
    read_source,
)
from hood.grader.course import Course
from hood.grader.submission.companions import NOTEBOOKS, clashing, given_files, unshown
from hood.grader.submission.files import (
    SECRET,
    TIMESTAMP,
    inner_folder,
    read_beside,
    read_notebooks,
    read_timestamp,
    why_no_folder,
)
from hood.grader.submission.names import lab_problem, nfc, printable
from hood.grader.submission.notebook import OutOfReach
from hood.grader.submission.notes import Note, NoteKind, left_out, quoted, some
from hood.grader.submission.rebuild import STEPS, as_recorded, is_owned
from hood.grader.submission.released import earlier_texts
from hood.manifest import of_grades
from hood.metadata import CELLS, JUDGED, KEY

# Steps of nbgrader that use the gradebook. These steps decide no verdict. `rebuild`, and the code
# that writes the gradebook, replace them.
ELSEWHERE = (AssignLatePenalties, OverwriteCells, OverwriteKernelspec, SaveAutoGrades)
# Keys that the build writes into a lab's metadata for people and for itself.
TOLD = (CELLS, JUDGED, "points", "title")


def read_lab(course: Course, name: str) -> LabFiles:
    """Read the instructor's notebooks and files of an assignment.

    Raises UserError if there are no notebooks, or nbgrader can't release a notebook.
    """
    if problem := lab_problem(name):
        raise UserError(problem)
    folder = course.folder("source", ".", name)
    every = {path.stem: path.read_bytes() for path in sorted(folder.glob("*.ipynb"))}
    if not every:
        known = sorted({path.parent.name for path in folder.parent.glob("*/*.ipynb")})
        raise UserError(
            f"no notebook in {folder}; the course has {', '.join(known) or 'no lab yet'}"
        )
    notebooks, left_out = _own(course, name, every)
    files = given_files(folder, course.directory.ignore)
    theirs = tuple(map(nfc, course.autograde.exclude_overwriting.get(name, ())))
    manifest = of_grades(name)
    config = judging_settings(course)
    parts = [_json([stem, _judged(stem, data, config)]) for stem, data in notebooks.items()]
    parts += [f"{name}\0{hashlib.sha256(data).hexdigest()}" for name, data in files.items()]
    decides = (
        digest_of([*parts, *theirs]),
        manifest.packages,
        manifest.grader,
        manifest.checks,
        digest_of([_json(config)]),
    )
    return LabFiles(
        name=name,
        notebooks=notebooks,
        files=files,
        not_overwriting=theirs,
        config=config,
        manifest=manifest,
        digest="-".join(one[:DIGITS] for one in decides),
        left_out=left_out,
        can_compile=can_compile(notebooks),
        earlier=earlier_texts(course, name),
    )


def _own(
    course: Course, lab: str, every: dict[str, bytes]
) -> tuple[dict[str, bytes], tuple[str, ...]]:
    """Return the notebooks in a lab's source that belong to the lab, and messages about the others.

    An instructor may keep experiments in the same folder. There are two signs of an experiment: the
    notebook is not among the learners' notebooks in ``release/``, or it has no cells of nbgrader
    and so nothing to grade.
    """
    folder = course.folder("release", ".", lab)
    released = {name for name in every if (folder / f"{name}.ipynb").is_file()} or {*every}
    with_cells = {name for name in released if _has_cells(every[name])} or released
    why = [
        f"{course.folder('source', '.', lab) / name}.ipynb is left out (and not moved): "
        + (
            "it has no nbgrader cells"
            if name in released
            else f"it is not in {folder}. If the notebook belongs to the lab, generate the lab "
            "again"
        )
        for name in every
        if name not in with_cells
    ]
    return {name: data for name, data in every.items() if name in with_cells}, tuple(why)


def _has_cells(source: bytes) -> bool:
    try:
        return any(map(is_owned, read_source(source).cells))
    except Exception:  # not a notebook; it is refused later
        return True


def read_submission_of(course: Course, lab: LabFiles, folders: Sequence[Path]) -> Submission:
    """Read a learner's submission. A learner's mistakes become notes.

    The folders come from :func:`hood.grader.course.submissions`. Raises OutOfReach if the folders
    can't be read for a reason that the learner did not cause.
    """
    if len(folders) > 1:
        names = " and ".join(f"{str(path.relative_to(path.parents[2]))!a}" for path in folders)
        raise OutOfReach(f"{names} are the same name in different code points: keep one folder")
    [folder] = folders
    problem = why_no_folder(folder)
    if isinstance(problem, OutOfReach):
        raise problem
    if problem:
        return Submission(dict.fromkeys(lab.notebooks, problem))
    files, notes = read_beside(folder, [*course.directory.ignore, NOTEBOOKS])
    inner = inner_folder(folder)
    for name in [name for name in files if inner and name.startswith(f"{nfc(inner)}/")]:
        beside = name.partition("/")[2]
        if beside not in {*files, TIMESTAMP, SECRET}:
            # the notebook is taken out of the inner folder, so the other files there are, too
            files[beside] = files.pop(name)
    of_nbgrader = {name: files.pop(name) for name in (TIMESTAMP, SECRET) if name in files}
    timestamp, wrong = read_timestamp(folder)
    if not timestamp:
        of_nbgrader.pop(TIMESTAMP, None)
    for name in clashing(files):
        del files[name]
        notes.append(left_out(printable(name), "a folder has the same name"))
    if hidden := unshown(files, lab.files):
        why = (
            f"Your code can read {some(hidden)}. But such files are not kept beside the graded "
            "notebook, because a program that opens them there might run them or follow their "
            "settings. "
            "Data and pictures (.csv, .jsonl, .npz, .png) are kept. Your submission itself is not "
            "changed."
        )
        notes.append(Note(NoteKind.NOT_SHOWN, why))
    if inner:
        found_in = (
            f"The notebook was found in the folder {quoted(inner)}. Next time, hand in the "
            "contents of this folder, not the folder itself."
        )
        notes.insert(0, Note(NoteKind.RENAMED, found_in))
    found = read_notebooks(folder / inner, [f"{name}.ipynb" for name in lab.notebooks])
    return Submission(
        notebooks={name: found[f"{name}.ipynb"][0] for name in lab.notebooks},
        files=files,
        notes=(*notes, *wrong),
        renamed={name: note for name in lab.notebooks if (note := found[f"{name}.ipynb"][1])},
        timestamp=timestamp.isoformat() if timestamp else None,
        of_nbgrader=of_nbgrader,
    )


def judging_settings(course: Course) -> Config:
    """Return the settings that decide a verdict: the steps of ``autograde`` and their settings.

    Other settings in nbgrader_config.py, such as folders, late penalties, archives or the log
    level, are not sent to workers and change no verdict. Raises UserError if a step cannot be
    found, or cannot be sent to another process.
    """
    nbgraders = course.autograde
    steps, kinds = [], list(STEPS)
    for step in [*nbgraders.sanitize_preprocessors, *nbgraders.autograde_preprocessors]:
        try:
            found = import_item(step) if isinstance(step, str) else step
        except ImportError as error:
            raise UserError(
                f"c.Autograde in nbgrader_config.py names {step}, which can't be imported: {error}"
            ) from None
        kind = found if isinstance(found, type) else type(found)
        if not issubclass(kind, ELSEWHERE):
            steps.append(step)
            kinds.append(kind)
    read = {n for kind in kinds if issubclass(kind, Configurable) for n in kind.section_names()}
    sections = {name: dict(course.config[name]) for name in read & course.config.keys()}
    sections.get("Execute", {}).pop("unsafe_no_sandbox", None)  # the job has `sandbox`
    settings = Config({name: values for name, values in sections.items() if values})
    settings.Autograde.autograde_preprocessors = steps
    try:
        pickle.dumps(settings)
    except Exception as error:
        raise UserError(
            "nbgrader_config.py has a step or setting that the grading processes can't import: "
            f"define it in a module ({type(error).__name__}: {error})"
        ) from None
    return settings


def _judged(name: str, data: bytes, config: Config) -> Any:
    """Return the parts of a source notebook that decide a verdict, without solutions and text."""
    try:
        nb = read_source(data)
    except Exception as error:
        raise UserError(f"the source {name}.ipynb is not a notebook: {error}") from None
    try:
        nb = as_recorded(nb, config)
    except Exception as error:
        # for example a region without an end, or metadata of an older schema
        problem = f"{type(error).__name__}: {error}"
        raise UserError(f"nbgrader can't release the source {name}.ipynb: {problem}") from None
    ours = {k: v for k, v in nb.metadata.get(KEY, {}).items() if k not in TOLD}
    cells = [
        [c.cell_type, c.source, {k: c.metadata.get(k) for k in ("nbgrader", "tags", KEY)}]
        for c in nb.cells
        if c.cell_type == "code" or is_grade(c) or is_solution(c)
    ]
    return [ours, nb.metadata.get("kernelspec", {}).get("name"), *cells]


def _json(thing: Any) -> str:
    return json.dumps(thing, sort_keys=True, default=_plain)


def _plain(thing: object) -> Any:
    """Return an object from the settings as JSON: a class, a function, or a change of a list."""
    if isinstance(thing, LazyConfigValue):
        return thing.to_dict()
    return getattr(thing, "__qualname__", type(thing).__qualname__)
