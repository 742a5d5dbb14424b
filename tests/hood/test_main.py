"""How commands end when their output is no longer read."""

import os
import subprocess
import sys

import pytest

from hood import __main__ as program

COMMAND = """
import sys
from hood import __main__ as program
def command():
    {}
program.main = command
sys.exit(program.as_program())
"""
MANY = "for line in range(100_000): print(line)"
ONE = "print(1); return 2"  # short enough to stay in the buffer until the end
BY_RICH = "from rich.console import Console; [Console().print(1) for _ in range(10)]"
NO_READER = "import socket; a, b = socket.socketpair(); b.close(); a.send(b'1')"


def ended(words: list[str], reader: bool = False) -> tuple[int, str]:
    """Return the exit status of Python, and what it said on stderr."""
    read, write = os.pipe()
    if not reader:
        os.close(read)
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    done = subprocess.run(
        [sys.executable, *words], stdout=write, stderr=subprocess.PIPE, text=True, env=buffered
    )
    os.close(write)
    return done.returncode, done.stderr


@pytest.mark.parametrize("does", [MANY, ONE, BY_RICH])
def test_a_command_that_nobody_reads_ends_quietly(does):
    assert ended(["-c", COMMAND.format(does)]) == (141, "")


def test_a_usage_message_that_nobody_reads_ends_quietly():
    assert ended(["-m", "hood", "--help"]) == (141, "")


def test_other_broken_pipes_are_reported():
    status, said = ended(["-c", COMMAND.format(NO_READER)], reader=True)
    assert (status, "BrokenPipeError" in said) == (1, True)
    assert ended(["-c", COMMAND.format("sys.exit(2)")], reader=True) == (2, "")


def test_a_command_whose_packages_are_not_installed_says_what_installs_them(
    monkeypatch, capsys, tmp_path
):
    (tmp_path / "lacking.py").write_text("import not_installed.anywhere")
    (tmp_path / "broken.py").write_text("import hood.not_there")
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("lacking", "broken"):
        monkeypatch.setitem(program.COMMANDS, name, (name, "a command"))
    assert program.main(["lacking"]) == 2
    assert "hood lacking: `lacking` needs the package not_installed" in capsys.readouterr().err
    with pytest.raises(ModuleNotFoundError, match="hood.not_there"):
        program.main(["broken"])
