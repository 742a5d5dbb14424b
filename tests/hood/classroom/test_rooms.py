"""The packages of a class are layers, and locks and encodings are handled in one place each."""

import ast
from pathlib import Path

import pytest

ROOM = Path(__file__).resolve().parents[3] / "hood" / "classroom"
# Each package imports only from packages before it.
FLOORS = (
    *("formats", "rules", "lesson_links", "gradebook", "hand_ins", "results", "recording"),
    *("report", "feedback", "marking", "nbgrader", "service", "backup"),
)


def imported(path: Path) -> set[str]:
    """The modules that a file imports, also inside functions."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def test_every_package_has_a_layer():
    assert {path.parent.name for path in ROOM.glob("*/__init__.py")} <= {*FLOORS}


@pytest.mark.parametrize("room", [floor for floor in FLOORS if (ROOM / floor).is_dir()])
def test_a_package_imports_only_from_lower_layers(room):
    allowed = FLOORS[: FLOORS.index(room) + 1]
    for path in (ROOM / room).rglob("*.py"):
        own = {name.split(".")[2] for name in imported(path) if name.startswith("hood.classroom.")}
        assert own <= {*allowed}, path


@pytest.mark.parametrize(
    ("call", "place"),
    [("create_engine(", "gradebook/database.py"), ("csv.reader(", "formats/tables.py")],
)
def test_this_is_done_in_one_place(call, place):
    """A second place would wait for locks, or guess encodings, in another way."""
    places = {str(p.relative_to(ROOM)) for p in ROOM.rglob("*.py") if call in p.read_text()}
    assert places == {place}
