"""Find what a learner's code added or replaced in modules and classes of libraries.

The zygote calls :func:`remember` before any learner's code runs. In a person's own notebook, the
judge calls it for the first exercise.
"""

from __future__ import annotations

import importlib
import operator
import os
import site
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from hood.judge.connection import course_code

# Watched packages: an answer may use their functions, or the judge uses them to record calls.
# Triton is not watched, because its interpreter replaces functions of its own language.
ROOTS = ("torch", "numpy", "einops", "hood")  # and the course's packages
ALONE = (
    "builtins", "math", "cmath", "itertools", "functools", "operator", "collections", "copy",
    "random", "statistics", "fractions", "heapq", "bisect",
)  # fmt: skip
# Modules with an underscore are not watched, except these, which the recorder of calls needs.
INSIDE = ("torch._tensor", "torch._ops", "torch.utils._python_dispatch")
# Parts of ROOTS that are not watched: parts that compute nothing for an answer, that no answer may
# use, or that grow when they are used (such as torch.ops).
UNWATCHED = (
    "torch.cuda", "torch.xpu", "torch.ao", "torch.quantization", "torch.jit", "torch.package",
    "torch.fx", "torch.export", "torch.distributed", "torch.testing", "torch.return_types",
    "torch.backends", "torch.ops", "utils.views",
)  # fmt: skip
# Dynamo adds names with these beginnings to a module with compiled code.
OF_DYNAMO = ("__compiled_fn_", "__resume_at_", "__import_")
DESCRIPTORS = (property, staticmethod, classmethod, ModuleType)
KINDS = ("type", "ABCMeta", "EnumType", "_TensorMeta", "FunctionMeta")  # names of metaclasses
MOST = 1000  # the most names in one reply
TOO_MANY = "*"  # in place of the names that a cell bound, if there are too many to send

# For each watched module or class: the paths, the object, and the object's attributes.
_had: list[tuple[list[str], Any, dict[str, Any]]] = []
_libraries: list[str] = []
_with_torch = False  # whether torch was loaded when the attributes were saved


def remember(anew: bool = False) -> None:
    """Save the attributes of all loaded, watched modules and their classes.

    A second call has an effect only if ``anew`` is set, or if torch was loaded in between.
    """
    global _with_torch
    if "torch" in sys.modules:  # then also watch the modules of the engine that use torch
        importlib.import_module("hood.judge.connection.torch_calls")
        importlib.import_module("hood.judge.values.tensors")
    if _had and not anew and _with_torch == ("torch" in sys.modules):
        return
    _with_torch = "torch" in sys.modules
    _had.clear()
    _libraries.clear()
    _libraries.extend(f"{folder}{os.sep}" for folder in _library_folders())
    by_id: dict[int, tuple[list[str], Any, dict[str, Any]]] = {}
    for name, module in list(sys.modules.items()):
        if isinstance(module, ModuleType) and _is_watched(name):
            by_id[id(module)] = ([name], module, dict(vars(module)))
    for (name, *_), module, _ in list(by_id.values()):
        for key, value in list(vars(module).items()):
            # without legacy classes such as torch.FloatTensor, which repeat all methods
            if type(value).__name__ in KINDS and _is_watched(value.__module__):
                paths, *_ = by_id.setdefault(id(value), ([], value, dict(vars(value))))
                paths.append(f"{name}.{key}")
    _had.extend(by_id.values())


def replaced() -> list[str]:
    """Return the paths of callables that were added or replaced since :func:`remember`.

    A library's own replacements, such as a function that it wraps, don't count. For each callable,
    only its shortest path is returned. The result has at most MOST + 1 paths.
    """
    found: list[str] = []
    for paths, thing, had in _had:
        now = dict(vars(thing))
        if len(now) == len(had) and all(map(operator.is_, now.values(), had.values())):
            continue  # the usual case, and a fast test
        for key, value in now.items():
            if had.get(key, _had) is not value and not _is_librarys_own(key, value):
                found.append(f"{min(paths, key=_length)}.{key}")
                if len(found) > MOST:
                    return found
    return found


def own_files() -> list[str]:
    """Return the modules that were loaded from files outside the environment; at most MOST."""
    found = []
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and "." not in name and not _is_file_of_library(file):
            found.append(name)
    return found[:MOST]


def _length(path: str) -> tuple[bool, int]:
    return "._" in path, path.count(".")


def _is_watched(name: Any) -> bool:
    if not isinstance(name, str):
        return False
    root, *rest = name.split(".")
    public = not any(part.startswith("_") for part in rest)
    ours = root in ROOTS or root in course_code.packages()
    if f"{name}.".startswith(tuple(f"{place}." for place in UNWATCHED)):
        return False
    return name in ALONE or name in INSIDE or (ours and public)


def _was_there(value: Any) -> bool:
    return any(value is one for _, _, had in _had for one in had.values())


def _is_librarys_own(key: str, value: Any) -> bool:
    if not (callable(value) or isinstance(value, DESCRIPTORS)):
        return True  # a setting computes nothing for an answer
    if key.startswith(OF_DYNAMO):
        return True
    if isinstance(value, ModuleType):
        return sys.modules.get(value.__name__) is value and _is_file_of_library(value.__file__)
    function = value.__func__ if isinstance(value, (staticmethod, classmethod)) else value
    if not isinstance(function, (FunctionType, type)):
        return False
    if isinstance(function, type):
        file = getattr(sys.modules.get(function.__module__), "__file__", None)
    else:
        file = function.__code__.co_filename
    if not _is_file_of_library(file):
        return False
    # Dynamo wraps torch.nn.Module.__init__ when something is compiled.
    wraps = "._" in str(function.__module__) and not _was_there(function)
    return function.__name__ == key or wraps


def _is_file_of_library(file: Any) -> bool:
    return isinstance(file, str) and file.startswith(tuple(_libraries))


def _library_folders() -> Iterator[str]:
    """Yield the folders of Python's library and of installed packages, also those in .pth files."""
    yield from map(str, (Path(os.__file__).parent, *course_code.folders()))
    for folder in {*site.getsitepackages(), site.getusersitepackages()}:
        yield folder
        for listing in Path(folder).glob("*.pth"):
            for line in listing.read_text(errors="replace").splitlines():
                path = Path(folder, line.strip())
                own = path == course_code.ENGINE  # a line that an editable install wrote
                if line.strip() and path.is_dir() and not own:
                    yield str(path)
