"""Which part of the project may import which."""

import pytest

from tests import rooms
from tests.rooms import COMMANDS, ENGINE, FLOORS, ROOT, arrows, between, circles, modules, room

# Folders that may import less than their room -> what they may import.
NARROW = {
    # A process without a given course asks `hood.course`; a sandbox does not have it.
    "hood.judge.connection": ("hood.judge.connection", "hood.judge.values", "hood.course"),
    "hood.judge.values": ("hood.judge.values",),
    "hood.grader.inside": ("hood.grader.inside", "hood.judge.connection"),
}
# What the course's own package may import.
OF_COURSES = {"utils", ENGINE, "hood.judge", "hood.learner"}


def below(module: str, parts: tuple[str, ...]) -> bool:
    return any(f"{module}.".startswith(f"{part}.") for part in parts)


@pytest.mark.parametrize("floor", FLOORS)
def test_a_room_imports_only_from_those_below_it(floor):
    allowed = {*FLOORS[: FLOORS.index(floor) + 1]}
    mine = [module for module in modules() if room(module) == floor and module != COMMANDS]
    assert len(mine) > 4
    wrong = [(one, other) for one in mine for other in arrows()[one] if room(other) not in allowed]
    assert wrong == []


def test_the_package_of_the_course_imports_what_courses_may_use():
    wrong = [
        (one, other)
        for one, others in arrows().items()
        for other in others
        if room(one) == "utils" and room(other) not in OF_COURSES
    ]
    assert wrong == []


@pytest.mark.parametrize("folder", NARROW)
def test_a_folder_that_sandboxes_see_imports_little_more_than_itself(folder):
    mine = [module for module in modules() if below(module, (folder,))]
    assert len(mine) > 4
    wrong = [(one, to) for one in mine for to in arrows()[one] if not below(to, NARROW[folder])]
    assert wrong == []


def test_no_files_import_each_other_in_a_cycle():
    assert circles(arrows()) == []


def test_no_two_folders_import_each_other():
    imports = between({module: rooms.folder(module) for module in modules() if module != COMMANDS})
    both = [(a, b) for a in imports for b in imports[a] if a < b and a in imports.get(b, {})]
    shown = [
        f"{a} <-> {b}: {imports[a][b] + imports[b][a]}" for a, b in both if ENGINE not in (a, b)
    ]
    assert shown == []


def test_a_cycle_is_found():
    assert circles({"a": {"b"}, "b": {"c", "d"}, "c": {"a"}, "d": set()}) == [["a", "b", "c"]]


def test_an_import_inside_a_function_counts(tmp_path):
    (tmp_path / "a.py").write_text("def f():\n    from hood.judge import judge\n    import utils\n")
    assert [*rooms.named(tmp_path / "a.py")] == ["hood.judge.judge", "utils"]


def test_every_file_is_seen():
    count = sum(1 for name in ("hood", "utils") for _ in (ROOT / name).rglob("*.py"))
    assert len(modules()) == count > 350
