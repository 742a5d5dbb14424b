"""The groups of sandboxes, on a folder that behaves like a cgroup file system (version 2)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hood.grader.inside import cgroup


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    """This process's folder in /proc, on a machine where its group may have groups below it."""
    own = tmp_path / "cgroups/user.slice/run-1.scope"
    own.mkdir(parents=True)
    for name, text in {
        "cgroup.controllers": "cpu memory pids\n",
        "cgroup.procs": f"{os.getpid()}\n",
        "cgroup.subtree_control": "",
    }.items():
        (own / name).write_text(text)
    made = tmp_path / "proc"
    made.mkdir()
    (made / "mounts").write_text(f"tmpfs /t tmpfs rw 0 0\ncgroup2 {tmp_path}/cgroups cgroup2 rw\n")
    (made / "cgroup").write_text("4:memory:/elsewhere\n0::/user.slice/run-1.scope\n")
    return made


def own(proc: Path) -> Path:
    return proc.parent / "cgroups/user.slice/run-1.scope"


def test_the_grader_moves_itself_and_its_workers_find_the_group_above(proc: Path) -> None:
    moved = own(proc) / cgroup.LEAF / "cgroup.procs"
    assert cgroup.enter(proc) == own(proc)
    assert moved.read_text() == "0"
    (proc / "cgroup").write_text(f"0::/user.slice/run-1.scope/{cgroup.LEAF}\n")
    moved.write_text(f"{os.getpid()}\n")
    (moved.parent / "cgroup.controllers").write_text("memory\n")
    (own(proc) / "cgroup.subtree_control").write_text("memory pids\n")
    assert cgroup.enter(proc) == own(proc)
    (own(proc) / "cgroup.subtree_control").write_text("\n")
    assert cgroup.enter(proc) is None


def test_a_group_with_another_process_is_not_changed(proc: Path) -> None:
    (own(proc) / "cgroup.subtree_control").unlink()
    (own(proc) / "cgroup.subtree_control").mkdir()  # cannot be written to, as when Linux is busy
    assert cgroup.enter(proc) is None
    assert (own(proc) / "cgroup.procs").read_text() == "0"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("cgroup.controllers", "cpu pids\n"),
        ("cgroup.procs", "1\n"),  # the path is one of the machine's, seen from a container
    ],
)
def test_another_group_or_one_without_memory_is_left_alone(
    proc: Path, name: str, text: str
) -> None:
    (own(proc) / name).write_text(text)
    assert cgroup.enter(proc) is None
    assert not (own(proc) / cgroup.LEAF).exists()


def test_a_machine_without_groups_has_none(tmp_path: Path) -> None:
    (tmp_path / "cgroup").write_text("4:memory:/elsewhere\n")
    (tmp_path / "mounts").write_text("tmpfs /t tmpfs rw 0 0\n")
    assert cgroup.enter(tmp_path) is None


def test_a_group_has_the_limits_that_linux_knows_here(tmp_path: Path) -> None:
    group = cgroup.Group(tmp_path, "sandbox-1-1")
    for name in ("memory.current", "memory.oom.group"):
        (group.folder / name).write_text("1000\n")
    group.limit(1 << 30)
    set_to = {path.name: path.read_text() for path in group.folder.iterdir()}
    assert set_to == {
        "memory.current": "1000\n",
        "memory.oom.group": "1",
        "memory.max": str(1000 + (1 << 30) + cgroup.ROOM),
    }
    group.add(17)
    assert (group.folder / "cgroup.procs").read_text() == "17"


@pytest.mark.parametrize(
    ("events", "said"), [("max 3\noom 0\noom_kill 2\n", False), ("oom 1\n", True)]
)
def test_only_its_own_limit_is_the_learners(tmp_path: Path, events: str, said: bool) -> None:
    """``oom_kill`` also counts processes that Linux killed because the machine had no memory."""
    group = cgroup.Group(tmp_path, "sandbox-1-1")
    assert not group.exceeded()
    (group.folder / "memory.events").write_text(events)
    assert group.exceeded() == said


def test_a_group_is_removed_with_its_sandbox(tmp_path: Path) -> None:
    group = cgroup.Group(tmp_path, "sandbox-1-1")
    group.close()
    assert list(tmp_path.iterdir()) == []
