"""The class as a learning platform lists it: a CSV file, and the gradebook's students."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hood import UserError
from hood.classroom.formats.tables import Table, plain, read_table
from hood.classroom.rules.schema import ClassRules, Roster
from hood.grader.submission.names import id_problem


@dataclass(frozen=True)
class Member:
    """A learner of the class, with the columns that ``roster:`` names; empty for the others.

    Attributes:
        moodle: by which Moodle knows them; ``canvas``, Canvas's number.
    """

    id: str
    first_name: str = ""
    last_name: str = ""
    email: str = ""
    section: str = ""
    moodle: str = ""
    canvas: str = ""


def read_roster(root: Path, file: ClassRules) -> dict[str, Member]:
    """Return the class by id, in the file's order; empty if ``course.yml`` names no roster.

    Raises:
        UserError: when the table can't be read, lacks a column that ``course.yml`` names, has an id
            that is none, that stands there twice, or whose letters a guess decides, or a section
            that ``course.yml`` has not.
    """
    if file.roster is None:
        return {}
    table, columns = roster_table(root, file.roster)
    found: dict[str, Member] = {}
    for line, cells in table.rows:
        one = Member(**{key: cells[column] for key, column in columns.items()})
        if not one.id:
            continue  # as the line below the headings that Canvas writes
        where = table.where(line, columns["id"])
        if why := id_problem(one.id):
            raise UserError(f"{where}: {one.id!r} is no id: {why}")
        if table.note and not one.id.isascii():
            raise UserError(
                f"{where}: which letters {one.id!r} has depends on the file's encoding, and that "
                "was guessed: save it as CSV in UTF-8, or name its encoding in `roster`, such as "
                "`encoding: windows-1252`"
            )
        if one.id in found:
            raise UserError(f"{where}: {one.id} stands there a second time")
        if file.sections and one.section and one.section not in file.sections:
            known = ", ".join(file.sections)
            raise UserError(
                f"{table.where(line, columns['section'])}: {one.id} is in the section "
                f"{one.section!r}; course.yml has: {known}"
            )
        found[one.id] = one
    return found


def roster_table(root: Path, roster: Roster) -> tuple[Table, dict[str, str]]:
    """Return the class's table, and which of its columns each field of :class:`Member` is in."""
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
    """Return by which column of the roster Moodle knows its users, and what stands there, by id.

    It is the column that ``identify`` names, or that ``roster`` names as ``moodle`` or as ``id``.
    None without a roster.

    Raises:
        UserError: as :func:`read_roster`, and when the roster has no such column.
    """
    if (roster := file.roster) is None:
        return None
    asked = plain(file.export.moodle.identify)
    column = plain(roster.moodle) or asked or plain(roster.id)
    table, columns = roster_table(root, roster)
    if column not in table.columns:
        has = ", ".join(map(repr, table.columns))
        raise UserError(
            f"course.yml: export.moodle.identify: expected the column of {roster.file} by which "
            f"Moodle knows its users, got {asked!r}; it has: {has}"
        )
    cells = {row.cells[columns["id"]]: row.cells[column] for row in table.rows}
    return asked or column, {one: cells[one] for one in read_roster(root, file)}
