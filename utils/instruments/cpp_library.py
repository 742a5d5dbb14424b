"""Compile C++ text into a library of operators, and load it into this process.

The text uses the headers of torch's stable interface (``torch/csrc/stable``), because g++ reads
them in a quarter of the time that ``torch/library.h`` takes. In the text, the macro ``NAMESPACE``
is the namespace of the operators. A process can't load two libraries that define one namespace, so
each load gets a new namespace. The text itself is compiled only once in a process.
"""

from __future__ import annotations

import ctypes
import faulthandler
import functools
import itertools
import os
import re
import signal
import subprocess
import tempfile
import warnings
from pathlib import Path

import torch

from utils.instruments.toolchain import cxx, require_compiler

FILE = "operator.cpp"  # the name of the text in the compiler's messages and in torch's tables
INCLUDE = Path(torch.__file__).parent / "include"
MAX_LINES = 12
SECONDS = 60  # for the trial
# The namespace in the compiled library. `load_cpp` replaces it by a shorter name.
_PLACE = "the_namespace_of_a_library_before_it_is_loaded"
_numbers = itertools.count(1)


class CppError(RuntimeError):
    """The text does not compile, or its operators can't be registered. The message says why."""


def command(library: str) -> list[str]:
    """Return the command that compiles the file ``FILE`` of the current folder into a library."""
    return [
        *(cxx(), "-std=c++17", "-O1", "-w", "-shared", "-fPIC", f"-DNAMESPACE={_PLACE}", FILE),
        *("-o", library, f"-I{INCLUDE}", f"-L{INCLUDE.with_name('lib')}"),
        *("-Wl,--no-as-needed", "-ltorch_cpu"),
    ]


def load_cpp(source: str) -> str:
    """Compile C++ text, load it, and return the new namespace of its operators.

    Raises CppError if the text does not compile, or if its operators can't be registered. Raises
    NoCompiler if this machine has no compiler.
    """
    compiled = _compiled(source)
    if isinstance(compiled, str):
        raise CppError(compiled)
    namespace = f"cpp_{next(_numbers)}"
    place, name = _PLACE.encode(), namespace.encode()
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder, "operator.so")
        # In C++ a string ends at its first zero.
        library.write_bytes(compiled.replace(place, name.ljust(len(place), b"\0")))
        ctypes.CDLL(str(library))  # the library's static objects register the operators
    return namespace


@functools.lru_cache(maxsize=64)
def _compiled(source: str) -> bytes | str:
    """Return the compiled library, which has ``_PLACE`` as the namespace, or what is wrong."""
    require_compiler()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, FILE).write_text(source, encoding="utf-8")
        done = subprocess.run(
            command("operator.so"),
            cwd=folder,
            env=os.environ | {"LC_ALL": "C"},
            capture_output=True,
            text=True,
            errors="replace",
        )
        if done.returncode:
            return f"the C++ does not compile:\n{_first_errors(done.stderr)}"
        library = Path(folder, "operator.so")
        compiled = library.read_bytes()
        # A second load of a library with a fixed namespace would end the process.
        if _PLACE.encode() not in compiled:
            return "the C++ registers nothing with STABLE_TORCH_LIBRARY(NAMESPACE, …)"
        return _fault_of(library) or compiled


def _first_errors(said: str) -> str:
    """Return the compiler's lines from the first error on."""
    lines = said.splitlines()
    first = next((at for at, line in enumerate(lines) if "error" in line), 0)
    return "\n".join(lines[first : first + MAX_LINES])


def _fault_of(library: Path) -> str:
    """Load the library in another process, and return what is wrong, or "".

    An error while a library registers its operators ends the process.
    """
    with tempfile.TemporaryFile() as errors:
        with warnings.catch_warnings():
            # Newer versions of Python warn if this process has threads.
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            status = 1
            try:
                faulthandler.disable()
                os.dup2(errors.fileno(), 2)
                signal.signal(signal.SIGALRM, signal.SIG_DFL)
                signal.alarm(SECONDS)
                ctypes.CDLL(str(library))
                status = 0
            except OSError as error:
                os.write(2, str(error).encode())
            finally:
                os._exit(status)
        _, status = os.waitpid(child, 0)
        errors.seek(0)
        said = errors.read().decode(errors="replace")
    return f"the operators can't be registered:\n{_reason(said, status)}" if status else ""


def _reason(said: str, status: int) -> str:
    """Return what a process said before it ended, without the places in torch's own files."""
    if found := re.search(r"what\(\): +(.*?)(?: \(originally from .*)?\Z", said, re.DOTALL):
        said = found[1]
    if os.WIFSIGNALED(status) and not said.strip():
        said = f"the process ended with {signal.Signals(os.WTERMSIG(status)).name}"
    return "\n".join(said.strip().splitlines()[:MAX_LINES])
