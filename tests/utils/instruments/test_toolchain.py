"""What can be compiled on machines that lack some tool."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from utils.instruments import toolchain
from utils.instruments.toolchain import (
    NoCompiler,
    cxx,
    inductor_lacks,
    require_compiler,
    triton_lacks,
)

PYTHON = f"python{sys.version_info[0]}.{sys.version_info[1]}"


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """A machine with only the given programs: call it with their names."""

    def has(*programs: str, header: bool = False, prefix: str = "/usr", system: str = "linux"):
        for name in programs:
            (tmp_path / name).write_text("#!/bin/sh\n")
            (tmp_path / name).chmod(0o755)
        if header:
            (tmp_path / "Python.h").touch()
        for name in ("CXX", "CC"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("PATH", str(tmp_path))
        monkeypatch.setattr(toolchain.sysconfig, "get_path", lambda *_, **__: str(tmp_path))
        monkeypatch.setattr(sys, "base_prefix", prefix)
        monkeypatch.setattr(sys, "platform", system)
        return tmp_path

    return has


@pytest.mark.parametrize(
    ("programs", "header", "tools", "command"),
    [
        ((), False, ("g++", "Python.h"), f"sudo apt-get install g++ {PYTHON}-dev"),
        (("g++",), False, ("Python.h",), f"sudo apt-get install {PYTHON}-dev"),
        ((), True, ("g++",), "sudo apt-get install g++"),
        (("gcc", "clang++"), True, ("g++",), "sudo apt-get install g++"),
    ],
)
def test_a_missing_tool_is_named_with_the_command_that_installs_it(
    machine, programs, header, tools, command
):
    machine("apt-get", *programs, header=header)
    found = inductor_lacks()
    assert (found.tools, found.how) == (tools, command)
    assert found.packages == tuple(command.split()[3:])
    with pytest.raises(
        NoCompiler, match=r"torch.compile writes C\+\+ and there is no .* here: sudo"
    ):
        require_compiler()


def test_with_both_tools_nothing_is_missing(machine):
    folder = machine("g++", "clang", header=True)
    assert cxx() == str(folder / "g++")
    assert inductor_lacks() is None
    assert triton_lacks() is None
    require_compiler()


def test_triton_needs_a_c_compiler(machine):
    machine("g++", "apt-get", header=True)
    assert triton_lacks().tools == ("gcc",)
    assert triton_lacks().packages == ("g++",)


@pytest.mark.parametrize(
    ("how", "packages", "there"),
    [
        ("xcode-select --install", (), {"system": "darwin"}),
        (f"install a C++ compiler and the headers of {PYTHON}", (), {}),
        (f"install a C++ compiler and the headers of {PYTHON}", (), {"prefix": "/opt/python"}),
    ],
)
def test_without_apt_no_package_is_named(machine, how, packages, there):
    machine(*["apt-get"] * bool(there), **there)
    found = inductor_lacks()
    assert (found.how, found.packages) == (how, packages)


def test_condas_compiler_is_condas_package(machine, tmp_path):
    (tmp_path / "conda-meta").mkdir()
    machine("apt-get", header=True, prefix=str(tmp_path))
    assert inductor_lacks().how.startswith("conda install -c conda-forge cxx-compiler")


def test_cxx_decides_as_it_does_for_inductor(machine, monkeypatch):
    folder = machine("g++", "clang++-19", header=True)
    monkeypatch.setenv("CXX", "clang++-19")
    assert cxx() == str(folder / "clang++-19")
    assert inductor_lacks() is None
    monkeypatch.setenv("CXX", "/nowhere/icpx")
    assert cxx() == "/nowhere/icpx"
    assert inductor_lacks().tools == ("icpx",)
    assert inductor_lacks().how == "unset CXX, or set CXX to a compiler that exists"


@pytest.mark.parametrize("wanted", ["/bin/true", "/nowhere/g++"])
def test_it_agrees_with_inductor(monkeypatch, wanted):
    from torch._inductor import config, cpp_builder
    from torch._inductor.exc import InvalidCxxCompiler

    monkeypatch.setenv("CXX", wanted)
    with config.patch({"cpp.cxx": (None, wanted)}):
        if wanted == "/bin/true":
            assert cpp_builder.get_cpp_compiler() == cxx() == wanted
            assert inductor_lacks() is None or inductor_lacks().tools == ("Python.h",)
        else:
            assert "g++" in inductor_lacks().tools
            with pytest.raises(InvalidCxxCompiler):
                cpp_builder.get_cpp_compiler()
    includes, _ = cpp_builder._get_python_related_args()
    assert toolchain.sysconfig.get_path("include", scheme="posix_prefix") in includes


def test_the_command_says_it_without_torch():
    code = "import sys; sys.argv = ['x']; import runpy\n"
    code += "try: runpy.run_module('utils.instruments.toolchain', run_name='__main__')\n"
    code += "except SystemExit as end: print(end.code)\nprint('torch' in sys.modules)"
    environment = os.environ | {"CXX": "/nowhere/g++"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    said, status, torch_too = done.stdout.splitlines()
    assert said.startswith("there is no g++")
    assert (status, torch_too) == ("True", "False")
