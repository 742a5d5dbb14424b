"""The rooms of a class stand one above the other, and each of two things is done in one place."""

import ast
from pathlib import Path

import pytest

ROOM = Path(__file__).resolve().parents[3] / "hood" / "classroom"
# Each imports only from those before it.
FLOORS = (
    *("formats", "rules", "lesson_links", "gradebook", "hand_ins", "results", "recording"),
    *("report", "feedback", "marking", "nbgrader", "service", "backup"),
)


def imported(path: Path) -> set[str]:
    """The modules that a file imports, those inside of its functions included."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def test_every_room_has_a_floor():
    assert {path.parent.name for path in ROOM.glob("*/__init__.py")} <= {*FLOORS}


@pytest.mark.parametrize("room", [floor for floor in FLOORS if (ROOM / floor).is_dir()])
def test_a_room_imports_only_from_those_below(room):
    allowed = FLOORS[: FLOORS.index(room) + 1]
    for path in (ROOM / room).rglob("*.py"):
        own = {name.split(".")[2] for name in imported(path) if name.startswith("hood.classroom.")}
        assert own <= {*allowed}, path


@pytest.mark.parametrize(
    ("call", "place"),
    [("create_engine(", "gradebook/database.py"), ("csv.reader(", "formats/tables.py")],
)
def test_there_is_one_place_for(call, place):
    """A second one would wait for locks, or guess at encodings, in another way."""
    places = {str(p.relative_to(ROOM)) for p in ROOM.rglob("*.py") if call in p.read_text()}
    assert places == {place}
