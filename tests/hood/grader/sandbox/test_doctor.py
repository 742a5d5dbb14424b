"""The doctor says what is missing and how to get it, and grading refuses with the same words."""

from __future__ import annotations

import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hood import UserError
from hood import __main__ as command
from hood.classroom import doctor as command_module
from hood.course import VARIABLE
from hood.grader.inside.bubblewrap import SandboxError
from hood.grader.inside.course_sandbox import CourseSandbox
from hood.grader.sandbox import CannotSandbox, doctor, remedies, stage
from hood.grader.sandbox.remedies import Obstacle, explain, missing
from hood.grader.sandbox.warm_process import Warm
from tests.hood.conftest import demand_sandboxes
from tests.hood.grader.sandbox.inmate import build_at
from utils.instruments.toolchain import Lack, cxx


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every account here may read the course; `test_exposed_answers` tests that."""
    monkeypatch.setattr(command_module, "learners_and_others", lambda root: [])


@pytest.mark.slow(4)
@pytest.mark.usefixtures("sandbox")
def test_a_machine_that_can_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["doctor"]) == 0
    printed = capsys.readouterr().out
    assert "sandbox: yes" in printed
    assert "2048 MiB" in printed


@pytest.mark.parametrize(
    ("group", "said"),
    [(Path("/sys/fs/cgroup/x"), "Linux itself enforces"), (None, "systemd-run --user --scope")],
)
def test_it_names_what_enforces_the_memory_limit(
    group: Path | None,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(doctor, "problems", list)
    monkeypatch.setattr(doctor.cgroup, "enter", lambda: group)
    assert command.main(["doctor"]) == 0
    _, line = capsys.readouterr().out.split("\nmemory: ")
    assert said in line
    assert ("warning" in line) == (group is None)


def test_without_bubblewrap_it_refuses(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert command.main(["doctor"]) == 1
    printed = capsys.readouterr().out
    assert "bubblewrap (`bwrap`) is not installed" in printed
    assert "apt-get install bubblewrap" in printed
    with pytest.raises(CannotSandbox, match="apt-get install bubblewrap"):
        Warm()
    with pytest.raises(SandboxError):
        build_at("/")


@pytest.mark.parametrize(
    ("attribute", "value", "said"),
    [
        ("sys.platform", "darwin", "on Linux only"),
        ("platform.machine", lambda: "riscv64", "not for riscv64"),
        ("platform.release", lambda: "4.18.0-305.el8.x86_64", "Linux 4.18.0-305.el8.x86_64 is too"),
    ],
)
def test_unsupported_machines_are_named(
    monkeypatch: pytest.MonkeyPatch, attribute: str, value: object, said: str
) -> None:
    module, _, name = attribute.rpartition(".")
    monkeypatch.setattr(getattr(remedies, module), name, value)
    assert any(said in problem.what for problem in missing())


BWRAP = "bubblewrap made no sandbox: bwrap: "


@pytest.mark.parametrize(
    ("said", "switches", "how"),
    [
        (
            "setting up uid map: Permission denied",
            {"kernel/apparmor_restrict_unprivileged_userns": "1"},
            "/etc/apparmor.d/bwrap",
        ),
        (
            "loopback: Failed RTM_NEWADDR: Operation not permitted",
            {"kernel/apparmor_restrict_unprivileged_userns": "1"},
            "apparmor_parser",
        ),
        (
            "No permissions to create a new namespace",
            {"kernel/unprivileged_userns_clone": "0"},
            "sysctl -w kernel.unprivileged_userns_clone=1",
        ),
        (
            "Creating new namespace failed: No space left on device",
            {"user/max_user_namespaces": "0"},
            "sysctl -w user.max_user_namespaces",
        ),
        ("Creating new namespace failed: Operation not permitted", {}, "seccomp=unconfined"),
        (
            "Can't mount proc on /newroot/proc: Operation not permitted",
            {},
            "systempaths=unconfined",
        ),
        ("Unknown option --size", {}, "0.8 or newer"),
    ],
)
def test_each_refusal_of_bubblewrap_has_its_remedy(
    monkeypatch: pytest.MonkeyPatch, said: str, switches: dict[str, str], how: str
) -> None:
    monkeypatch.setattr(remedies, "_switch", lambda name: switches.get(name, ""))
    assert how in explain(BWRAP + said).how


def test_other_messages_are_passed_on() -> None:
    assert (
        "KeyError: namespace" in explain("a kernel could not be confined: KeyError: namespace").what
    )


def test_a_failed_sandbox_quotes_bubblewraps_message() -> None:
    if shutil.which("bwrap") is None:
        pytest.skip("not run: bubblewrap is not installed")
    with pytest.raises(SandboxError, match="bwrap: .*no-such-folder"):
        build_at("/no-such-folder")


@pytest.mark.parametrize(
    ("where", "outcome"), [("/usr/bin/bwrap", pytest.fail), (None, pytest.skip)]
)
def test_tests_of_sandboxes_are_skipped_only_without_bubblewrap(
    monkeypatch: pytest.MonkeyPatch, where: str | None, outcome: object
) -> None:
    demand_sandboxes([])
    monkeypatch.setattr(shutil, "which", lambda name: where)
    with pytest.raises(outcome.Exception, match="no namespaces"):
        demand_sandboxes(["no namespaces"])


def test_the_refusal_crosses_processes() -> None:
    error = CannotSandbox(Obstacle("nothing here", "Get it."))
    copy = pickle.loads(pickle.dumps(error))
    assert str(copy) == str(error)
    assert copy.problem == error.problem


def test_the_project_is_hidden_where_a_shown_folder_holds_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    assert stage.hidden_folders([sys.prefix]) == []
    (tmp_path / "course" / "phases").mkdir(parents=True)
    monkeypatch.setenv(VARIABLE, str(tmp_path / "course"))
    assert stage.hidden_folders([str(tmp_path)]) == [str(tmp_path / "course")]
    linked = tmp_path / "linked"
    linked.symlink_to(tmp_path)
    assert stage.hidden_folders([str(linked)]) == [str(linked / "course")]


def test_an_environment_behind_a_link_is_seen_by_both_paths(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Matplotlib opens its fonts by the path without links."""
    (tmp_path / "real").mkdir()
    (tmp_path / "linked").symlink_to(tmp_path / "real")
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "linked"))
    shown = stage.environment_folders()
    assert {str(tmp_path / "linked"), str(tmp_path / "real")} <= set(shown)


def test_the_command_needs_neither_torch_nor_bubblewrap_to_say_so() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "hood", "doctor"],
        env={"PATH": "/nonexistent"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1, done.stderr
    assert "is not installed" in done.stdout


@pytest.fixture
def apt(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The calls of apt-get on a machine that lacks everything and has an old list of packages."""
    asked: list[list[str]] = []
    there = {"apt-get"}

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        option, how_long, *words = command[command.index("apt-get") + 1 :]
        assert (option, how_long) == ("-o", "DPkg::Lock::Timeout=600")
        asked.append(words)
        known = ["update"] in asked
        if words[0] == "install" and known:
            there.update({"bubblewrap": "bwrap"}.get(name, name) for name in words[2:])
        return subprocess.CompletedProcess(
            command, 0 if words == ["update"] or known else 100, "", ""
        )

    def lacks() -> Lack | None:
        packages = ("g++", "python3.11-dev")
        return None if "g++" in there else Lack(("g++", "Python.h"), packages, "apt-get ...")

    monkeypatch.setattr(doctor.shutil, "which", lambda name: name if name in there else None)
    monkeypatch.setattr(doctor.subprocess, "run", run)
    monkeypatch.setattr(doctor, "of_course", lambda: CourseSandbox(lacks=lacks))
    return asked


def test_exactly_the_missing_packages_are_installed(apt: list[list[str]]) -> None:
    doctor.install()
    compilers = ["install", "-y", "g++", "python3.11-dev"]
    assert apt == [
        ["install", "-y", "bubblewrap"],
        ["update"],
        ["install", "-y", "bubblewrap"],
        compilers,
    ]
    del apt[:]
    doctor.install()
    assert apt == []


HOLD = """
import fcntl, sys, time
with open(sys.argv[1], "w") as file:
    fcntl.lockf(file, fcntl.LOCK_EX)
    print("held", flush=True)
    time.sleep(2)
"""
LOCKS = {"update": "state/lists/lock", "install": "dpkg/lock-frontend"}


@pytest.mark.skipif(shutil.which("apt-get") is None, reason="this system has no apt")
@pytest.mark.parametrize("word", LOCKS)
def test_another_running_apt_is_waited_for_and_named(
    word: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """The real apt-get, with separate folders."""
    for name in ("state/lists/partial", "dpkg", "cache/archives/partial", "none.d"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "dpkg" / "status").touch()
    places = {"State": "state", "State::status": "dpkg/status", "Cache": "cache", "Log": "."}
    places |= {"Etc::sourcelist": "none", "Etc::sourceparts": "none.d"}
    (tmp_path / "none").touch()
    (tmp_path / "apt.conf").write_text(
        "".join(f'Dir::{name} "{tmp_path / place}";\n' for name, place in places.items())
    )
    monkeypatch.setenv("APT_CONFIG", str(tmp_path / "apt.conf"))
    monkeypatch.setattr(doctor.os, "geteuid", lambda: 0)  # those folders need no sudo
    monkeypatch.setattr(doctor, "LOCK_TRIES", 0.5)
    command_line = [sys.executable, "-c", HOLD, str(tmp_path / LOCKS[word])]
    with subprocess.Popen(command_line, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        assert doctor._apt_get(word)  # of no installed package
        assert holder.wait() == 0
    said = capfd.readouterr().out
    assert f"{tmp_path / LOCKS[word]}. It is held by process {holder.pid} (" in said
    monkeypatch.setattr(doctor, "LOCK_SECONDS", 0)
    with subprocess.Popen(command_line, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        assert not doctor._apt_get(word)
    assert f"{tmp_path / LOCKS[word]}" in capfd.readouterr().err


def test_without_apt_bubblewrap_is_asked_for_and_a_compiler_is_not(
    apt: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor.shutil, "which", lambda name: None)
    with pytest.raises(UserError, match="install bubblewrap with this system's package manager"):
        doctor.install()
    monkeypatch.setattr(doctor.shutil, "which", lambda name: "/bin/bwrap")
    monkeypatch.setattr(doctor, "_apt_get_install", lambda *packages: False)
    doctor.install()  # `run` reports what can't be compiled, and goes on


@pytest.mark.usefixtures("nothing_compiles")
def test_on_a_machine_that_cannot_compile_the_doctor_names_the_remedy(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(doctor, "problems", list)
    assert command.main(["doctor"]) == 0
    printed = capsys.readouterr().out
    assert "compile: no; missing: g++" in printed
    assert "Their points are withheld" in printed
    assert "what to do: unset CXX" in printed


@pytest.mark.usefixtures("compiler")
def test_a_machine_that_can_compile_says_with_what(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(doctor, "problems", list)
    assert command.main(["doctor"]) == 0
    assert f"compile: yes, torch.compile's C++ with {cxx()}" in capsys.readouterr().out


@pytest.mark.usefixtures("sandbox")
def test_unwritable_files_are_reported_and_none_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def make_stage(stage: Path) -> None:
        stage.mkdir()
        raise shutil.Error([("a", "b", "[Errno 27] File too large: 'b'")])

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("hood.grader.sandbox.warm_process.make_stage", make_stage)
    with pytest.raises(CannotSandbox, match="too large.*run the same command again"):
        Warm()
    assert list(tmp_path.iterdir()) == []


SYSTEMD = """#!{python}
import os, sys
open({log!r}, "a").write(" ".join(sys.argv[1:]) + "\\n")
program = sys.argv[sys.argv.index("Delegate=yes") + 1:]
{does}
"""


@pytest.mark.parametrize(
    ("does", "uid", "said"),
    [
        (
            "sys.exit(0)",
            1000,
            "Grade with: systemd-run --user --scope --quiet --collect -p ",
        ),
        ("sys.exit(0)", 0, "Grade with: systemd-run --scope --quiet --collect -p Delegate=yes py"),
        ("sys.exit('Failed to connect to bus')", 1000, "has just failed: Failed to connect to bus"),
        ("sys.exit('Access denied')", 1000, "user@.service.d/delegate.conf"),
        (
            "os.execv(program[0], ['python', '-c', 'exit(1)'])",
            0,
            "a scope that may not limit memory",
        ),
    ],
)
def test_systemd_makes_a_group_and_the_doctor_says_how_to_grade_in_one(
    does: str,
    uid: int,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """With a fake systemd-run; the last one runs the test, as the real one does."""
    log, made = tmp_path / "log", tmp_path / "systemd-run"
    made.write_text(SYSTEMD.format(python=sys.executable, log=str(log), does=does))
    made.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(doctor, "problems", list)
    monkeypatch.setattr(doctor.cgroup, "enter", lambda: None)
    monkeypatch.setattr("os.geteuid", lambda: uid)
    assert command.main(["doctor"]) == 0
    assert said in capsys.readouterr().out
    [asked] = log.read_text().splitlines()
    assert asked.split()[: 1 + (uid > 0)] == (["--user"] if uid else []) + ["--scope"]
    assert "-p Delegate=yes" in asked


def test_without_systemd_it_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(doctor, "problems", list)
    monkeypatch.setattr(doctor.cgroup, "enter", lambda: None)
    command.main(["doctor"])
    assert "systemd-run is not installed" in capsys.readouterr().out
