"""Decide whether an answer that must be written by hand may use a name, and say why not.

There are two questions about a path such as ``torch.exp``. First, does the path lead to code that
can't be read, such as code that is made at run time, or a file beside the notebook? Second, is the
object still the library's own object, or was it replaced? The learner's process reports which
objects were replaced (:class:`Surroundings`).
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from types import ModuleType
from typing import Any

from hood.course import course, course_folder
from hood.judge.connection.codec import NotByValue
from hood.judge.connection.originals import MOST
from hood.judge.connection.rpc_client import Connection
from hood.judge.source.cell_names import words

COURSE = course(course_folder())
TEXT_AS_CODE = "which runs text as code"
ALL_NAMES = "which gives access to all names at once"
IMPORTS = "which imports code that can't be read"
INSIDE = "which accesses Python's internals"
PYTORCHS_INSIDE = "which accesses PyTorch's internals"
MACHINERY = "which gives access to the notebook's kernel"
REPLACES = "which changes what names refer to"
REPLACED = "which is no longer the library's own, because something replaced it"
UNNAMED = "which binds `{}`, although its text does not show this"
NOT_HERE = "which belongs to a module that is not installed on the judging machine"
SHELL = "which takes its result from outside Python"
UNWRITTEN = "which makes code that no cell contains"
OTHER_PLACE = "which runs code in a place that the check can't see"
OF_COURSE = "which is in the course's own library but is not named in the exercise"
OWN_FILE = "which is a file beside the notebook, but the check reads only cells"
COMPUTED = "which looks up a name that is known only at run time"


def _why(table: dict[str, str]) -> dict[str, str]:
    return {path: why for why, paths in table.items() for path in paths.split()}


# Paths that an answer may not use, with everything below them.
REFUSED = _why(
    {
        TEXT_AS_CODE: "builtins.exec builtins.eval builtins.compile builtins.breakpoint runpy "
        "marshal code codeop timeit pdb bdb trace cProfile profile doctest pickle "
        "torch.jit torch.package torch.utils.cpp_extension",
        IMPORTS: "builtins.__import__ importlib.import_module importlib.reload importlib.util "
        "importlib.machinery importlib.abc zipimport pkgutil torch.hub torch.load numpy.load",
        ALL_NAMES: "builtins.globals builtins.locals builtins.__builtins__ __main__",
        INSIDE: "sys.modules sys.setprofile sys.settrace sys._getframe sys._current_frames "
        "sys.meta_path sys.path_hooks sys.path_importer_cache sys.monitoring sys.breakpointhook "
        "sys.displayhook sys.excepthook gc.get_objects gc.get_referrers gc.get_referents "
        "inspect.currentframe inspect.stack inspect.trace ctypes _ctypes numpy.ctypeslib",
        MACHINERY: "builtins.get_ipython IPython.get_ipython IPython.core ipykernel",
        REPLACES: "unittest.mock pytest.MonkeyPatch forbiddenfruit",
        PYTORCHS_INSIDE: "torch._C torch._dispatch torch.utils._python_dispatch torch._dynamo "
        "torch._inductor torch.overrides torch.library torch.fx",
        OTHER_PLACE: "threading _thread concurrent multiprocessing subprocess asyncio signal "
        "atexit os.system os.popen os.fork os.spawnv os.execv torch.multiprocessing "
        "torch.distributed",
        UNWRITTEN: "types.FunctionType types.CodeType types.ModuleType types.MethodType",
        "which belongs to the grader": f"hood {COURSE.drivers}",
    }
)
# Attributes that give access to the internals of a function, a frame or a module.
INSIDES = words(
    "__globals__ __code__ __closure__ __builtins__ __getattribute__ __subclasses__ __defaults__ "
    "__kwdefaults__ __loader__ __spec__ f_globals f_locals f_back f_builtins f_code gi_frame "
    "cr_frame ag_frame tb_frame gi_code co_code"
)
# Methods that Python calls to show a value. Operators in an answer do not call them.
SHOWS = words("__repr__ __str__ __format__ __doc__ __module__ __dir__")

# The modules that record the calls of answers, and the modules that they use.
RECORDS = (
    "hood.judge.connection.",
    "hood.judge.values.",
    "hood.grader.inside.",
    f"{COURSE.drivers}.",
    "torch.utils._python_dispatch.",
    "torch.overrides.",
    "torch._ops.",
)
SAID = ("replaced", "own_files")  # fields of a process's report on its surroundings


@dataclass(frozen=True)
class Surroundings:
    """The report of the learner's process on the modules that an answer may use."""

    replaced: frozenset[str] = frozenset()  # paths of added or replaced callables
    own_files: frozenset[str] = frozenset()  # modules from files outside the environment
    too_many: bool = False  # whether the report was too long

    @classmethod
    def told_by(cls, connection: Connection) -> Surroundings:
        """Ask the learner's process. This may raise OutOfTime or ConnectionLost."""
        try:
            told = connection.ask({"do": "surroundings"}).get("value")
        except NotByValue:
            told = None
        said: list[Any] = [told.get(key) if isinstance(told, dict) else None for key in SAID]
        if not all(isinstance(names, list) and len(names) <= MOST for names in said):
            return cls(too_many=True)
        replaced, own_files = (frozenset(map(str, names)) for names in said)
        return cls(replaced, own_files)


class Used:
    """The paths that an answer uses."""

    def __init__(self, paths: Iterable[str]):
        self._paths = frozenset(paths)
        self._names = frozenset(name for path in self._paths for name in path.split("."))

    def touches(self, replaced: str) -> bool:
        """Return whether code that uses these paths may use the replaced object at a path.

        For example, suppose that ``torch.nn.Linear.forward`` was replaced. The code may use the
        replacement if it uses the class ``Linear``, or an attribute ``forward`` of any object.
        An operator such as ``+`` calls a method such as ``__add__`` without naming it. So any
        code may use a replaced method of a tensor that has such a name.
        """
        *place, name = replaced.split(".")
        implicit = name.startswith("__") and name not in SHOWS
        if name == "?" or (implicit and place[-1:] in (["Tensor"], ["builtins"])):
            return True
        if replaced.startswith(RECORDS):
            return True
        names = {name} if _module(place) else {name, *place[-1:]}
        above = {".".join(place[:end]) for end in range(1, len(place) + 1)}
        return not (names.isdisjoint(self._names) and above.isdisjoint(self._paths))


def refused(path: str, around: Surroundings) -> str:
    """Return in a clause why an answer may not use a path; empty if the answer may use it."""
    root = path.partition(".")[0]
    if not INSIDES.isdisjoint(path.split(".")):
        return INSIDE
    if path.endswith(".__dict__") and root:
        return ALL_NAMES
    if why := listed(path):
        return why
    if root in COURSE.packages:
        return OF_COURSE
    if root in around.own_files:
        return OWN_FILE
    return "" if not root or is_installed(root) else NOT_HERE


@lru_cache(maxsize=4096)
def listed(path: str) -> str:
    """Return why REFUSED forbids a dotted path; "" if it does not.

    A path through a forbidden module, such as ``torch.serialization.pickle``, is forbidden, too.
    """
    parts = path.split(".") if not path.startswith(".") else []
    for first in range(len(parts)):
        # torch.trace is not the module trace, and torch.signal is not the module signal
        if first and _module(parts[: first + 1]) is not sys.modules.get(parts[first], path):
            continue
        for end in range(first + 1, len(parts) + 1):
            if why := REFUSED.get(".".join(parts[first:end])):
                return why
    return ""


def _module(parts: list[str]) -> ModuleType | None:
    found: Any = sys.modules.get(parts[0]) if parts else None
    for part in parts[1:]:
        found = vars(found).get(part) if isinstance(found, ModuleType) else None
    return found if isinstance(found, ModuleType) else None


@lru_cache(maxsize=256)
def is_installed(root: str) -> bool:
    """Return whether a module comes with Python or can be imported on this machine."""
    if root in sys.builtin_module_names or root in sys.stdlib_module_names:
        return True
    try:
        return importlib.util.find_spec(root) is not None
    except (ImportError, ValueError, AttributeError):
        return root in sys.modules
