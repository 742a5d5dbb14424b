"""Find what compiles here: the C++ compiler and the headers of Python that `torch.compile` needs.

Triton builds a small C module, with the same header, before it launches a first kernel on a GPU.
This module looks where Inductor and Triton look, imports neither, compiles nothing, and remembers
nothing. Grading gives its kernels the compiler that it found (`CXX`), so both sides of a sandbox
get the same answer. ``python -m utils.instruments.toolchain`` says it, and ends with 1 where
something is missing.
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
    """What a compilation needs and this machine does not have."""

    tools: tuple[str, ...]  # what is missing: a compiler's name, "Python.h", or both
    # Debian's and Ubuntu's packages that bring it; empty where apt-get brings none
    packages: tuple[str, ...]
    how: str  # what to do: a command, or words where there is none

    def __str__(self) -> str:
        return f"there is {' and '.join(f'no {tool}' for tool in self.tools)} here: {self.how}"


class NoCompiler(RuntimeError):
    """Raised in place of a compilation for which something is missing; the message says what."""


def cxx() -> str:
    """Return the path of the C++ compiler that Inductor calls, or its bare name if it is missing.

    It is the value of `CXX`, if that is set, else clang++ on macOS and g++ elsewhere.
    """
    return _program("CXX", "clang++" if sys.platform == "darwin" else "g++")


def inductor_lacks() -> Lack | None:
    """Return what Inductor needs to build C++ and does not find; None if nothing is missing."""
    return _lack(cxx(), "CXX")


def triton_lacks() -> Lack | None:
    """Return what Triton needs to launch kernels on a GPU and does not find; None for nothing."""
    return _lack(_program("CC", "gcc", "clang"), "CC")


def require_compiler() -> None:
    """Raise NoCompiler if Inductor can't build C++ here."""
    if lack := inductor_lacks():
        raise NoCompiler(not_compiled(lack))


def not_compiled(lack: Lack) -> str:
    """Return the sentence that takes the place of what would have been compiled."""
    return f"not run, because torch.compile writes C++ and {lack}"


def _program(variable: str, *names: str) -> str:
    """The path of the program that a variable or else a name says; bare if it is missing."""
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
    # Another Python than the system's has its header from elsewhere; apt-get can't bring it.
    has_package = sys.base_prefix == "/usr" or not no_header
    packages = ["g++"] * no_compiler + [f"{python}-dev"] * no_header
    if no_compiler and os.environ.get(variable):
        packages, how = [], f"{variable} names it; unset {variable}, or let it name a program"
    elif (Path(sys.base_prefix) / "conda-meta").is_dir():
        packages, how = [], "conda install -c conda-forge cxx-compiler, and activate anew"
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
