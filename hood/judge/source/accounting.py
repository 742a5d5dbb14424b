"""Account for the names that an answer by hand uses: what an answer may use, and why it may not.

Of a path such as ``torch.exp`` two things are asked. Does it lead to what can't be read: code that
is made while it runs, a file beside the notebook? And is it what its library has of itself, as the
learner's process tells (:class:`Surroundings`)?
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
ALL_NAMES = "which hands out all names at once"
IMPORTS = "which imports what can't be read"
INSIDE = "which reaches into the inside of Python"
PYTORCHS_INSIDE = "which reaches into the inside of PyTorch"
MACHINERY = "which gives the notebook's own machinery"
REPLACES = "which replaces what names stand for"
REPLACED = "which is not what the library has of itself: something replaced it"
UNNAMED = "which binds `{}` without naming it"
NOT_HERE = "which is of a module that is not installed where this is judged"
SHELL = "whose result comes from outside of Python"
UNWRITTEN = "which makes code without writing it"
OTHER_PLACE = "which does work where it can't be seen"
OF_COURSE = "which is of the course's own library, and the exercise does not name it"
OWN_FILE = "which is a file beside the notebook, and files are not read"
COMPUTED = "which asks for a name that is only known when it runs"


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
# Attributes that give access to the inside of a function, a frame or a module.
INSIDES = words(
    "__globals__ __code__ __closure__ __builtins__ __getattribute__ __subclasses__ __defaults__ "
    "__kwdefaults__ __loader__ __spec__ f_globals f_locals f_back f_builtins f_code gi_frame "
    "cr_frame ag_frame tb_frame gi_code co_code"
)
# Methods that Python calls for no operator of an answer, but to show a value.
SHOWS = words("__repr__ __str__ __format__ __doc__ __module__ __dir__")

# What records the calls of every answer, and what that rests on.
RECORDS = (
    "hood.judge.connection.",
    "hood.judge.values.",
    "hood.grader.inside.",
    f"{COURSE.drivers}.",
    "torch.utils._python_dispatch.",
    "torch.overrides.",
    "torch._ops.",
)
SAID = ("replaced", "own_files")  # fields of what a process says of its surroundings


@dataclass(frozen=True)
class Surroundings:
    """What the learner's process says of the modules that an answer may use."""

    # What modules and classes have that they did not have of themselves, by its path
    replaced: frozenset[str] = frozenset()
    own_files: frozenset[str] = frozenset()  # modules whose files do not belong to the environment
    too_many: bool = False  # whether there were more of them than it may name

    @classmethod
    def told_by(cls, connection: Connection) -> Surroundings:
        """Ask the process that is judged. Raises OutOfTime and ConnectionLost, as each question."""
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
        """Return whether code that uses these paths may use what was replaced at a path.

        It does where it uses that name of anything, or the class that has it: ``Linear``, where
        ``torch.nn.Linear.forward`` was replaced. Operators use a tensor's methods with underscores.
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
    """Return why an answer may not use a path, in a clause; empty if it may."""
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
    """Return what REFUSED says of a path, or of one that it is below or goes through."""
    parts = path.split(".") if not path.startswith(".") else []
    for first in range(len(parts)):
        # torch.trace is not the module trace, and torch.signal not the module signal
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
    """Return whether a module comes with Python or can be imported where this is judged."""
    if root in sys.builtin_module_names or root in sys.stdlib_module_names:
        return True
    try:
        return importlib.util.find_spec(root) is not None
    except (ImportError, ValueError, AttributeError):
        return root in sys.modules
