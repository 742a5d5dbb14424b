"""The content of a course folder, in a form in which two runs can be compared."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import tempfile
from collections import defaultdict
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hood.verdict import VERDICT_MIME

OUR_TABLE = "open_the_hood_graded"
# Queries for every row about a submission, with its student and including duplicates.
ROWS = {
    "submission": """
        SELECT s.student_id, s.timestamp, a.name
        FROM submitted_assignment s JOIN assignment a ON a.id = s.assignment_id""",
    "notebook": """
        SELECT s.student_id, n.name, sn.late_submission_penalty
        FROM submitted_notebook sn JOIN notebook n ON n.id = sn.notebook_id
        JOIN submitted_assignment s ON s.id = sn.assignment_id""",
    "mark": """
        SELECT s.student_id, n.name, c.name, g.auto_score, g.manual_score, g.extra_credit,
            g.needs_manual_grade
        FROM grade g JOIN base_cell c ON c.id = g.cell_id
        JOIN submitted_notebook sn ON sn.id = g.notebook_id JOIN notebook n ON n.id = sn.notebook_id
        JOIN submitted_assignment s ON s.id = sn.assignment_id""",
    "comment": """
        SELECT s.student_id, n.name, c.name, m.auto_comment, m.manual_comment
        FROM comment m JOIN base_cell c ON c.id = m.cell_id
        JOIN submitted_notebook sn ON sn.id = m.notebook_id JOIN notebook n ON n.id = sn.notebook_id
        JOIN submitted_assignment s ON s.id = sn.assignment_id""",
    "record": f"""
        SELECT s.student_id, r.key, r.digest
        FROM {OUR_TABLE} r JOIN submitted_assignment s ON s.id = r.submission_id""",
}


@dataclass(frozen=True)
class State:
    """A course folder at one moment.

    Attributes:
        rows: of the gradebook by student, as `ROWS` reads them.
        keys: of the recorded jobs, by student.
        seeds: as recorded and as in the files, by student.
        counts: the number of rows of each table, which shows rows that belong to no student.
        journal: how SQLite writes, ``delete`` or ``wal``.
        sound: the result of `integrity_check`, or why the gradebook can't be read.
        beside: files beside the gradebook whose names begin with its name.
        files: below ``autograded/`` by student and path: the content, without times and seeds.
        loose: other entries of ``autograded/`` or of a student's folder.
        outputs: of the graded notebooks' cells by student; they may depend on the seed.
    """

    rows: dict[str, list[tuple]]
    keys: dict[str, str]
    seeds: dict[str, tuple]
    counts: dict[str, int]
    journal: str
    sound: str
    beside: list[str]
    files: dict[str, dict[str, Any]]
    loose: list[str]
    outputs: dict[str, Any]

    def done(self, reference: State) -> set[str]:
        """The students whose marks, record and files equal those of the reference."""
        return {
            student
            for student, key in self.keys.items()
            if key == reference.keys[student]
            and self.files.get(student) == reference.files[student]
        }


def look(root: Path, lab: str) -> State:
    """Read a course while nothing runs, and change nothing, not even a killed run's files."""
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        for path in root.glob("gradebook.db*"):
            shutil.copy(path, folder)
        database = Path(folder, "gradebook.db")
        header = database.read_bytes()[:20] if database.exists() else b""
        with closing(sqlite3.connect(database)) as connection:
            rows, keys, seeds, counts, sound = _database(connection)
    files, outputs, loose = _files(root / "autograded", lab)
    return State(
        rows=rows,
        keys=keys,
        seeds={s: (found, _seeds(root, s, lab, found)) for s, found in seeds.items()},
        counts=counts,
        journal="wal" if header[18:19] == b"\2" else "delete",
        sound=sound,
        beside=sorted(path.name for path in root.glob("gradebook.db?*")),
        files=files,
        loose=loose,
        outputs=outputs,
    )


def recorded(root: Path) -> int:
    """How many submissions a running command has recorded; this does not disturb it."""
    try:
        address = f"file:{root / 'gradebook.db'}?mode=ro"
        with closing(sqlite3.connect(address, uri=True, timeout=0.2)) as connection:
            return connection.execute(f"SELECT count(*) FROM {OUR_TABLE}").fetchone()[0]
    except sqlite3.OperationalError:  # no table yet, or locked
        return 0


def differences(found: State, expected: State, same_seeds: bool) -> list[str]:
    """The differences from an undisturbed run.

    same_seeds: whether the cells' outputs are compared, too
    """
    out = []
    for what in ("rows", "keys", "files", *(["outputs"] if same_seeds else [])):
        ours, theirs = getattr(found, what), getattr(expected, what)
        for student in sorted(set(ours) | set(theirs)):
            difference = _first(ours.get(student), theirs.get(student))
            if difference:
                out.append(f"{what} of {student}{difference}")
    for what in ("counts", "journal", "sound", "beside", "loose"):
        if getattr(found, what) != getattr(expected, what):
            out.append(f"{what}: {getattr(found, what)} not {getattr(expected, what)}")
    out += [
        f"seeds of {student}: recorded {of_record}, in the files {of_files}"
        for student, (of_record, of_files) in found.seeds.items()
        if of_record != of_files
    ]
    return out


def halves(found: State, before: State, reference: State) -> list[str]:
    """The half-done changes of a run that ended early. A learner's state must be old or new."""
    out = [] if found.sound in ("ok", "no tables") else [f"integrity: {found.sound}"]
    for student, rows in found.rows.items():
        if rows not in (before.rows.get(student), reference.rows[student]):
            out.append(f"rows of {student} are half the old and half the new: {rows}")
        new = found.keys.get(student) == reference.keys[student] != before.keys.get(student)
        if new and found.files.get(student) != reference.files[student]:
            out.append(f"marks of {student} stand without their files")
    for student, files in found.files.items():
        if files not in (before.files.get(student), reference.files[student], {}):
            out.append(f"files of {student} are neither the old nor the new: {sorted(files)}")
    out += [f"{student} is gone" for student in before.rows if student not in found.rows]
    return out


def _first(found: Any, expected: Any, where: str = "") -> str:
    """The first difference of two nested values and its place; or empty."""
    if found == expected:
        return ""
    if isinstance(found, dict) and isinstance(expected, dict) and set(found) == set(expected):
        pairs = [(found[name], expected[name], f"{where} {name}") for name in found]
    elif isinstance(found, list | tuple) and len(found) == len(expected or ()):
        pairs = [
            (a, b, f"{where} {n}") for n, (a, b) in enumerate(zip(found, expected, strict=True))
        ]
    else:
        return f"{where}: {found!r:.400} not {expected!r:.400}"
    return next(filter(None, (_first(*pair) for pair in pairs)))


def _database(connection: sqlite3.Connection) -> tuple[dict, dict, dict, dict, str]:
    rows, keys, seeds = defaultdict(list), {}, {}
    try:
        sound = connection.execute("PRAGMA integrity_check").fetchone()[0]
        # without nbgrader's own note of its version, which is lost if nbgrader is killed while it
        # makes a gradebook
        query = "SELECT name FROM sqlite_master WHERE type = 'table' AND name != 'alembic_version'"
        names = connection.execute(query)
        tables = sorted(name for (name,) in names)
        counts = {t: connection.execute(f"SELECT count(*) FROM {t}").fetchone()[0] for t in tables}
    except sqlite3.DatabaseError as error:
        return {}, {}, {}, {}, str(error)
    if "base_cell" not in tables:
        return {}, {}, {}, counts, "no tables"
    for kind, query in ROWS.items():
        if kind == "record" and OUR_TABLE not in tables:
            continue
        for student, *row in connection.execute(query):
            rows[student].append((kind, *row))
            if kind == "record":
                keys[student] = row[0]
    if OUR_TABLE in tables:
        query = ROWS["record"].replace("r.key, r.digest", "r.seeds")
        seeds = {student: json.loads(text) for student, text in connection.execute(query)}
    return {s: sorted(found, key=repr) for s, found in rows.items()}, keys, seeds, counts, sound


def _seeds(root: Path, student: str, lab: str, recorded: dict[str, str]) -> dict[str, str]:
    found = {}
    for name in recorded:
        path = root / "autograded" / student / lab / f"{name}.ipynb"
        if path.exists():
            found[name] = json.loads(path.read_bytes())["metadata"]["open_the_hood"].get("seed")
    return found


def _files(folder: Path, lab: str) -> tuple[dict, dict, list[str]]:
    files: dict[str, dict[str, Any]] = {}
    outputs: dict[str, Any] = {}
    loose: list[str] = []
    for student in sorted(folder.iterdir()) if folder.exists() else []:
        if not student.is_dir():
            loose.append(student.name)
            continue
        loose += [str(p.relative_to(folder)) for p in student.iterdir() if p.name != lab]
        files[student.name] = {}
        for inside, _, names in os.walk(student / lab):
            for name in names:
                path = Path(inside, name)
                said, printed = _said(path)
                files[student.name][str(path.relative_to(student))] = said
                if printed is not None:
                    outputs.setdefault(student.name, {})[name] = printed
    return files, outputs, loose


def _said(path: Path) -> tuple[Any, Any]:
    """A file's mode, its content without what differs in each run, and a notebook's outputs."""
    mode, data = path.stat().st_mode, path.read_bytes()
    if path.suffix != ".ipynb":
        return (mode, data), None
    try:
        nb = json.loads(data)
    except ValueError:
        return (mode, data), None
    nb["metadata"].get("open_the_hood", {}).pop("seconds", None)
    nb["metadata"].get("open_the_hood", {}).pop("seed", None)
    outputs = []
    for cell in nb["cells"]:
        cell["metadata"].pop("execution", None)
        cell.pop("execution_count", None)  # the output of a cell that killed its kernel is random
        cell["metadata"].get("open_the_hood", {}).pop("seconds", None)
        outputs.append([_without_examples(output) for output in cell.pop("outputs", [])])
    return (mode, nb), outputs


def _without_examples(output: dict[str, Any]) -> dict[str, Any]:
    """An output of a cell; of a verdict, only the data for programs, without the example calls."""
    verdict = output.get("data", {}).get(VERDICT_MIME)
    if verdict is None:
        return output
    for part in verdict.get("parts", []):
        part.pop("example", None)
    return verdict
