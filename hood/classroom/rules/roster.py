"""Read the roster: a CSV file with the class, as a learning platform exports it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hood import UserError
from hood.classroom.formats.tables import Table, plain, read_table
from hood.classroom.rules.schema import ClassRules, Roster
from hood.grader.submission.names import id_problem


@dataclass(frozen=True)
class Member:
    """A learner in the roster. A field is empty if ``roster:`` names no column for it.

    Attributes:
        moodle: the learner's id in Moodle.
        canvas: the learner's number in Canvas.
    """

    id: str
    first_name: str = ""
    last_name: str = ""
    email: str = ""
    section: str = ""
    moodle: str = ""
    canvas: str = ""


def read_roster(root: Path, file: ClassRules) -> dict[str, Member]:
    """Return the class, keyed by id, in the file's order; empty if ``course.yml`` has no roster.

    Raises:
        UserError: when the table can't be read, or lacks a column that ``course.yml`` names. Also
            when an id is not valid, is listed twice, or depends on a guessed encoding, and when a
            learner's section is not in ``course.yml``.
    """
    if file.roster is None:
        return {}
    table, columns = roster_table(root, file.roster)
    found: dict[str, Member] = {}
    for line, cells in table.rows:
        one = Member(**{key: cells[column] for key, column in columns.items()})
        if not one.id:
            continue  # such as Canvas's line below the headings
        where = table.where(line, columns["id"])
        if why := id_problem(one.id):
            raise UserError(f"{where}: {one.id!r} is not an id: {why}")
        if table.note and not one.id.isascii():
            raise UserError(
                f"{where}: the letters of {one.id!r} depend on the file's encoding, which is only "
                "a guess: save the file as CSV in UTF-8, or name its encoding in `roster`, for "
                "example `encoding: windows-1252`"
            )
        if one.id in found:
            raise UserError(f"{where}: {one.id} is listed twice")
        if file.sections and one.section and one.section not in file.sections:
            known = ", ".join(file.sections)
            raise UserError(
                f"{table.where(line, columns['section'])}: {one.id} is in the section "
                f"{one.section!r}; `sections` in course.yml has: {known}"
            )
        found[one.id] = one
    return found


def roster_table(root: Path, roster: Roster) -> tuple[Table, dict[str, str]]:
    """Return the roster's table, and the name of its column for each field of :class:`Member`."""
    named = {
        key: plain(value)
        for key, value in roster.model_dump(exclude={"file", "encoding"}).items()
        if value
    }
    table = read_table(root / roster.file, [named.values()], roster.encoding)
    if missing := [column for column in named.values() if column not in table.columns]:
        has = ", ".join(map(repr, table.columns))
        raise UserError(
            f"{table.name} has no column {', '.join(map(repr, missing))}; it has: {has}"
        )
    return table, named


def moodle_users(root: Path, file: ClassRules) -> tuple[str, dict[str, str]] | None:
    """Return the heading that identifies users in Moodle, and the users' values, keyed by id.

    One column of the roster has the values: the column that ``roster`` names as ``moodle``, else
    the column that ``identify`` names, else the column that ``roster`` names as ``id``. If
    ``identify`` names a heading, that heading is returned, else the heading of the column that has
    the values. The result is None without a roster.

    Raises:
        UserError: in the same cases as :func:`read_roster`, and when the roster lacks the column.
    """
    if (roster := file.roster) is None:
        return None
    asked = plain(file.export.moodle.identify)
    column = plain(roster.moodle) or asked or plain(roster.id)
    table, columns = roster_table(root, roster)
    if column not in table.columns:
        has = ", ".join(map(repr, table.columns))
        raise UserError(
            f"course.yml: export.moodle.identify: expected the column of {roster.file} that "
            f"identifies users in Moodle, got {asked!r}; the file has: {has}"
        )
    cells = {row.cells[columns["id"]]: row.cells[column] for row in table.rows}
    return asked or column, {one: cells[one] for one in read_roster(root, file)}
