"""The paths that an answer by hand must not use, because what they do cannot be read in the cells.

Whatever the rule of the exercise says, they are refused, unless it allows them by name.
"""

from __future__ import annotations

import builtins
import importlib.util
import sys
from fnmatch import fnmatchcase
from functools import lru_cache

from grader.judging.flow import LIBRARIES
from grader.judging.learner_source import words
from utils.checks.exercise import ByHand

# Modules that an answer may import. All are loaded before a learner's code runs, so no file beside
# the notebook can replace one.
KNOWN = LIBRARIES | words(
    "math cmath itertools functools operator collections dataclasses typing contextlib random re "
    "string copy enum abc numbers fractions decimal heapq bisect statistics warnings time textwrap "
    "types builtins __future__"
)
TEXT_AS_CODE = "which runs text as code"
ALL_NAMES = "which hands out all names at once"
OTHER_PLACE = "which does work where it can't be seen"
INSIDE = "which reaches into the inside of Python"
PYTORCHS_INSIDE = "which reaches into the inside of PyTorch"
OWN_FILE = "which is a file beside the notebook, and files are not read"
GRADERS = "which belongs to the grader"
# Paths that an answer must not use, with everything below them, and why. Modules that are neither
# here nor in KNOWN are refused too.
HOSTILE = {
    "builtins.exec": TEXT_AS_CODE,
    "builtins.eval": TEXT_AS_CODE,
    "builtins.compile": TEXT_AS_CODE,
    "builtins.__import__": "which imports what can't be read",
    "builtins.globals": ALL_NAMES,
    "builtins.locals": ALL_NAMES,
    "builtins.breakpoint": TEXT_AS_CODE,
    "builtins.get_ipython": "which gives the notebook's own machinery",
    "builtins.__dict__": ALL_NAMES,
    "types.FunctionType": "which makes a function without writing it",
    "types.CodeType": "which makes a function without writing it",
    "types.ModuleType": "which makes a module that can't be read",
    "types.MethodType": "which makes a method without writing it",
    "torch._C": PYTORCHS_INSIDE,
    "torch._dispatch": PYTORCHS_INSIDE,
    "torch._dynamo": PYTORCHS_INSIDE,
    "torch._inductor": PYTORCHS_INSIDE,
    "torch.utils._python_dispatch": PYTORCHS_INSIDE,
    "torch.overrides": PYTORCHS_INSIDE,
    "torch.library": PYTORCHS_INSIDE,
    "torch.fx": PYTORCHS_INSIDE,
    "torch.jit": TEXT_AS_CODE,
    "torch.package": TEXT_AS_CODE,
    "torch.hub": "which imports what can't be read",
    "torch.utils.cpp_extension": TEXT_AS_CODE,
    "torch.multiprocessing": OTHER_PLACE,
    "torch.distributed": OTHER_PLACE,
    "torch.load": "which may run what a file says",
    "numpy.load": "which may run what a file says",
    "numpy.ctypeslib": INSIDE,
}
# Modules that could defeat the analysis: why, and the names in them that are allowed.
UNDOING = {
    "sys": (INSIDE, "version version_info stdout stderr stdin path maxsize float_info executable "
                    "byteorder platform argv getsizeof getrefcount exit flags implementation"),
    "builtins": (INSIDE, " ".join(n for n in dir(builtins) if not n.startswith("_"))),
    "gc": (INSIDE, "collect disable enable freeze get_stats get_count"),
    "inspect": (INSIDE, "getsource signature getdoc getfile getmro isclass isfunction ismodule "
                        "Parameter Signature getsourcelines cleandoc"),
    "importlib": ("which imports what can't be read", "metadata resources reload"),
    "os": (OTHER_PLACE, "path environ getcwd chdir listdir sep cpu_count getenv getpid makedirs "
                        "remove mkdir walk stat linesep curdir urandom pathsep name rename unlink "
                        "scandir sched_getaffinity times uname system"),
    "ctypes": (INSIDE, ""), "_ctypes": (INSIDE, ""), "cffi": (INSIDE, ""), "mmap": (INSIDE, ""),
    "runpy": (TEXT_AS_CODE, ""), "code": (TEXT_AS_CODE, ""), "codeop": (TEXT_AS_CODE, ""),
    "imp": ("which imports what can't be read", ""), "marshal": (TEXT_AS_CODE, ""),
    "zipimport": ("which imports what can't be read", ""), "pkgutil": (INSIDE, ""),
    "unittest": ("which replaces what names stand for", "TestCase main TestLoader TestSuite"),
    "forbiddenfruit": (INSIDE, ""), "_thread": (OTHER_PLACE, ""),
    "__main__": (ALL_NAMES, ""), "IPython": ("which gives the notebook's own machinery",
                                             "display version_info __version__ lib"),
    "ipykernel": ("which gives the notebook's own machinery", ""),
    "grader": (GRADERS, ""),
    "pytest": ("which replaces what names stand for", "approx raises mark"),
    "cloudpickle": (TEXT_AS_CODE, ""), "dill": (TEXT_AS_CODE, ""),
}  # fmt: skip
# Paths of HOSTILE and UNDOING that are allowed in cells outside of an answer; instructors' cells
# use `verify`.
HARMLESS = ("grader.verify.verify",
            "torch.fx", "torch.jit", "torch.distributed", "torch.multiprocessing", "torch.load",
            "torch.library", "torch._dynamo", "torch._inductor", "torch.hub", "numpy.load",
            "torch.overrides", "torch.utils.cpp_extension", "torch.package", "types.ModuleType",
            "types.MethodType", "types.CodeType", "types.FunctionType")  # fmt: skip
SETTINGS = ("torch.backends", "torch._dynamo.config", "torch._inductor.config", "matplotlib",
            "plt", "os", "sys", "warnings", "logging", "pandas", "seaborn")  # fmt: skip


def allowed(rule: ByHand, path: str) -> bool:
    """Return whether a rule allows a path explicitly, which overrides everything else."""
    return any(fits(path, pattern) for pattern in rule.allow_names)


def fits(path: str, pattern: str) -> bool:
    """Return whether a path matches a pattern, or is below a path that matches."""
    return fnmatchcase(path, pattern) or fnmatchcase(path, f"{pattern}.*")


def hostile(path: str, files: frozenset[str] = frozenset()) -> str:
    """Return why an answer that uses a path cannot be analysed; empty if it can.

    Args:
        path: dotted, from the module on.
        files: names of the modules beside the notebook.
    """
    root = path.partition(".")[0]
    if not root or (root in files and not is_installed(root)):
        return OWN_FILE
    known = "" if root in KNOWN else "a module that is not for an answer by hand"
    return hostile_anywhere(path) or known


def hostile_anywhere(path: str) -> str:
    """Return why a path must not be used in any cell, answer or not; empty if it may be."""
    for whole, why in HOSTILE.items():
        if path == whole or path.startswith(f"{whole}."):
            return why
    return _undoes(path)


def _undoes(path: str) -> str:
    parts = path.split(".")
    for place, part in enumerate(parts):
        if part in UNDOING and (place == 0 or part in ("sys", "builtins", "importlib", "ctypes")):
            why, harmless = UNDOING[part]
            inside = parts[place + 1 : place + 2]
            if inside and inside[0] not in harmless.split():
                return why
            if not inside and not harmless:
                return why
    return ""


@lru_cache(maxsize=256)
def is_installed(root: str) -> bool:
    """Return whether a module comes with Python or the course's environment."""
    if root in sys.stdlib_module_names or root in KNOWN or root == "grader":
        return True
    try:
        spec = importlib.util.find_spec(root)
    except (ImportError, ValueError, AttributeError):
        return False
    return spec is not None and "-packages" in (spec.origin or str(spec.submodule_search_locations))
