"""Find the C++ compiler and the header of Python that `torch.compile` needs.

Before its first launch on a GPU, Triton also builds a small C module with the same header. This
module searches the places that Inductor and Triton search. It does not import Inductor or Triton,
compiles nothing, and caches nothing. When the grader has found a compiler, it sets `CXX` for its
kernels to this compiler. So code inside a sandbox uses the same compiler as code outside.

``python -m utils.instruments.toolchain`` prints the result. The exit status is 1 if a tool is
missing.
"""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

HEADER = "Python.h"


@dataclass(frozen=True)
class Lack:
    """The tools that a compilation needs and that this machine does not have."""

    tools: tuple[str, ...]  # the missing tools: a compiler's name, "Python.h", or both
    # the packages of Debian and Ubuntu that contain these tools; empty if no package helps
    packages: tuple[str, ...]
    how: str  # what to do: a command, or a sentence

    def __str__(self) -> str:
        return f"there is {' and '.join(f'no {tool}' for tool in self.tools)} here: {self.how}"


class NoCompiler(RuntimeError):
    """A tool for a compilation is missing. The message names the tool."""


def cxx() -> str:
    """Return the path of the C++ compiler that Inductor calls, or its bare name if it is missing.

    If `CXX` is set, its value is the compiler. Otherwise the compiler is clang++ on macOS, and g++
    on other systems.
    """
    return _program("CXX", "clang++" if sys.platform == "darwin" else "g++")


def inductor_lacks() -> Lack | None:
    """Return the missing tools that Inductor needs to build C++, or None."""
    return _lack(cxx(), "CXX")


def triton_lacks() -> Lack | None:
    """Return the missing tools that Triton needs to launch kernels on a GPU, or None."""
    return _lack(_program("CC", "gcc", "clang"), "CC")


def require_compiler() -> None:
    """Raise NoCompiler if Inductor can't build C++ here."""
    if lack := inductor_lacks():
        raise NoCompiler(not_compiled(lack))


def not_compiled(lack: Lack) -> str:
    """Return the sentence that replaces compiled output."""
    return f"not run, because torch.compile writes C++ and {lack}"


def _program(variable: str, *names: str) -> str:
    """Return the path of the program in an environment variable, or of the first named program.

    If no such program exists, return only its name.
    """
    wanted = [os.environ[variable]] if os.environ.get(variable) else list(names)
    return next(filter(None, map(shutil.which, wanted)), wanted[0])


def _lack(compiler: str, variable: str) -> Lack | None:
    no_compiler = shutil.which(compiler) is None
    include = sysconfig.get_path("include", scheme="nt" if os.name == "nt" else "posix_prefix")
    no_header = not Path(include, HEADER).is_file()
    if not (no_compiler or no_header):
        return None
    python = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    tools = [Path(compiler).name] * no_compiler + [HEADER] * no_header
    # apt-get can only install the header of the system's Python.
    has_package = sys.base_prefix == "/usr" or not no_header
    packages = ["g++"] * no_compiler + [f"{python}-dev"] * no_header
    if no_compiler and os.environ.get(variable):
        packages, how = [], f"unset {variable}, or set {variable} to a compiler that exists"
    elif (Path(sys.base_prefix) / "conda-meta").is_dir():
        packages = []
        how = "conda install -c conda-forge cxx-compiler, and activate the environment again"
    elif sys.platform == "darwin":
        packages, how = [], "xcode-select --install"
    elif shutil.which("apt-get") and has_package:
        how = f"sudo apt-get install {' '.join(packages)}"
    else:
        packages = []
        named = ["a C++ compiler"] * no_compiler + [f"the headers of {python}"] * no_header
        how = f"install {' and '.join(named)}"
    return Lack(tuple(tools), tuple(packages), how)


if __name__ == "__main__":
    found = inductor_lacks()
    print(found or f"C++ is compiled by {cxx()}")
    sys.exit(found is not None)
