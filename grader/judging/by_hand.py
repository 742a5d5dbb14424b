"""Enforce the rules of exercises that must be solved by hand: what an answer may not use.

A rule (:class:`utils.checks.exercise.ByHand`) is enforced by what stands in the cells and by what
runs. The statements that define the answer, and every name that they use, are read
(:mod:`grader.judging.learner_source`): the rule applies to things of a library and to attributes of
values, not to the learner's own names. While the cases are played, the learner's process records
what their code calls of torch, whatever they call it by (:mod:`grader.inside.rpc_server`). What
would make both worthless is refused by its name: code that is made while it runs, ``exec``,
``torch.softmax = f``, ``sys.modules`` and the like. Cells that come with the lab are trusted.

What can't be seen:

- The record is a claim of the learner's process. What computes a name while a cell runs can replace
  it (``getattr(torch, "s" + "ys")``), as can a library that is handed to a function
  (``patch(torch)``): a deliberate act, in a cell that a person can read.
- It hears torch's functions and methods alone: no NumPy, no classes such as ``torch.optim.SGD``, no
  ``torch.func``, and nothing inside of a call of torch, such as a ``backward``. These are read. So
  ``getattr(array, "str" + "ides")`` and ``for lib in [torch]: lib.optim.SGD`` are not seen.
- What was computed before the cases are played is read, and not heard. The reader follows names; it
  does not follow a container that is filled under another name.
- A name that the answer's code gives to an attribute of anything counts as its own on everything.
- Only what the rule names is forbidden, in families (``*backward*``): a function of torch that does
  the same work under a name that no pattern covers is accepted.
- Results that were typed in or computed elsewhere can't be told from computed ones. The cases are
  drawn anew for each grading, so such a table earns nothing by itself.
"""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any

import torch
from torch.nn import functional

from grader.judging.learner_source import NOWHERE, LearnerSource, Use, words
from utils.checks.exercise import ByHand, Check

LIBRARIES = words("torch functorch numpy utils einops triton")
# Modules that an answer may use. All are loaded before a learner's code runs, so no file beside the
# notebook can replace one.
KNOWN = LIBRARIES | words(
    "math cmath itertools functools operator collections dataclasses typing contextlib random re "
    "string copy enum abc numbers fractions decimal heapq bisect statistics warnings time textwrap "
    "types builtins __future__"
)
TEXT_AS_CODE = "which runs text as code"
ALL_NAMES = "which hands out all names at once"
IMPORTS = "which imports what can't be read"
INSIDE = "which reaches into the inside of Python"
PYTORCHS_INSIDE = "which reaches into the inside of PyTorch"
MACHINERY = "which gives the notebook's own machinery"
REPLACES = "which replaces what names stand for"
UNWRITTEN = "which makes code without writing it"
OTHER_PLACE = "which does work where it can't be seen"
OWN_FILE = "which is a file beside the notebook, and files are not read"
COMPUTED = "which asks for a name that is only known when it runs"


def _why(table: dict[str, str]) -> dict[str, str]:
    return {path: why for why, paths in table.items() for path in paths.split()}


# Paths that no cell may use, with everything below them.
ANYWHERE = _why(
    {
        TEXT_AS_CODE: "builtins.exec builtins.eval builtins.compile builtins.breakpoint runpy "
        "marshal",
        IMPORTS: "builtins.__import__ importlib.import_module importlib.util importlib.machinery "
        "importlib.abc zipimport pkgutil",
        ALL_NAMES: "builtins.globals builtins.locals builtins.__builtins__ __main__",
        INSIDE: "sys.modules sys.setprofile sys.settrace sys._getframe sys._current_frames "
        "sys.meta_path sys.path_hooks sys.path_importer_cache sys.monitoring threading.setprofile "
        "threading.settrace gc.get_objects gc.get_referrers gc.get_referents inspect.currentframe "
        "inspect.stack inspect.trace ctypes _ctypes",
        MACHINERY: "builtins.get_ipython IPython.get_ipython IPython.core ipykernel",
        REPLACES: "unittest.mock pytest.MonkeyPatch forbiddenfruit",
        PYTORCHS_INSIDE: "torch._C torch._dispatch torch.utils._python_dispatch",
        "which belongs to the grader": "grader",
    }
)
# What an answer may not use besides.
IN_ANSWERS = _why(
    {
        TEXT_AS_CODE: "torch.jit torch.package torch.utils.cpp_extension",
        IMPORTS: "torch.hub torch.load numpy.load",
        INSIDE: "numpy.ctypeslib",
        PYTORCHS_INSIDE: "torch._dynamo torch._inductor torch.overrides torch.library torch.fx",
        OTHER_PLACE: "torch.multiprocessing torch.distributed",
        UNWRITTEN: "types.FunctionType types.CodeType types.ModuleType types.MethodType",
    }
)
# Attributes that give access to the inside of a function, a frame or a module.
INSIDES = words(
    "__globals__ __code__ __closure__ __builtins__ __getattribute__ __subclasses__ __defaults__ "
    "__kwdefaults__ __loader__ __spec__ f_globals f_locals f_back f_builtins f_code gi_frame "
    "cr_frame ag_frame tb_frame gi_code co_code"
)
SETTINGS = ("torch.backends", "torch._dynamo.config", "torch._inductor.config", "matplotlib", "os",
            "sys", "warnings", "logging", "pandas", "seaborn")  # fmt: skip


class RuleReader:
    """What one learner's code says against the rule of one check.

    ``source`` has the notebook's cells; None if unknown.
    """

    def __init__(self, check: Check, source: LearnerSource | None):
        self._check, self._source = check, source
        self._said: dict[str, str] = {}

    def refusal(self, of: str | None) -> str:
        """Return, in a sentence, why the answer, or one function ``of`` several, breaks the rule.

        It is empty if the answer keeps to the rule, if the check has no rule, or if the code is
        unknown.
        """
        rule, written, name = self._check.by_hand, self._source, of or self._check.name
        if rule is None or written is None:
            return ""
        if name not in self._said:
            try:
                said = _said_of(written, name, _who(of), rule)
            except RecursionError:
                said = _about_hidden(_who(of), name, "which is defined in too many steps")
            except Exception:  # no learner's code may end the grading
                said = _about_hidden(_who(of), name, "which could not be read")
            self._said[name] = f"{said}; {rule.because}" if said else ""
        return self._said[name]

    def heard(self, of: str | None, called: Mapping[str, int]) -> str:
        """Return the same of what the learner's process recorded.

        ``called`` has the lines in which it called functions and methods of torch, by their paths.
        """
        rule = self._check.by_hand
        if rule is None:
            return ""
        for path, line in called.items():
            if name := forbidden(rule, path):
                shown = path if f"`{name}`" in _who(of) else name
                return f"{_who(of)} called `{shown}` when it ran, in line {line}; {rule.because}"
        return ""


def forbidden(rule: ByHand, path: str, own: Any = ()) -> str:
    """Return the name by which a rule forbids something; empty if it does not.

    ``path`` is dotted, from the library on, or from a dot on for an attribute of a value; ``own``
    are attributes that the learner's own objects have.
    """
    root, *parts = path.split(".")
    if (root and root not in LIBRARIES) or path.endswith(".?") or allowed(rule, path):
        return ""
    for part in reversed(parts) if root != "numpy" else ():
        named = any("." not in p and fnmatchcase(part, p) for p in rule.forbid_names)
        if named and (root or part not in own):
            return part
    return parts[-1] if any("." in p and fits(path, p) for p in rule.forbid_names) else ""


@lru_cache(maxsize=256)
def can_be_heard(rule: ByHand | None) -> bool:
    """Return whether a rule forbids anything that the learner's process can record a call of."""
    heard = {
        "torch": torch._C._VariableFunctions,
        "torch.Tensor": torch.Tensor,
        "torch.nn.functional": functional,
    }
    paths = (f"{place}.{name}" for place, thing in heard.items() for name in dir(thing))
    return rule is not None and any(forbidden(rule, path) for path in paths)


def allowed(rule: ByHand, path: str) -> bool:
    """Return whether a rule allows a path explicitly, which overrides everything else."""
    return any(fits(path, pattern) for pattern in rule.allow_names)


def fits(path: str, pattern: str) -> bool:
    """Return whether a path matches a pattern, or is below a path that matches."""
    return fnmatchcase(path, pattern) or fnmatchcase(path, f"{pattern}.*")


def _who(of: str | None) -> str:
    return f"`{of}`" if of else "your code"


def _said_of(written: LearnerSource, name: str, who: str, rule: ByHand) -> str:
    cells = [(cell, finished) for cell, given, finished in written.cells if not given]
    if any(cell.unread and finished for cell, finished in cells):
        return _about_danger(who, "…", "a cell that is nested too deeply to be read")
    behind = written.behind(name)
    if not behind:
        return _about_hidden(who, name, "which no cell defines where it could be read")
    own = frozenset[str]().union(*(one.gives for one, _, _ in behind))
    uses = [(use, given, before) for one, given, before in behind for use in one.uses]
    itself, trusted, _ = behind[0]  # which may be an import
    hidden = ""
    for use, given, before in [(Use(name, "", itself.node), trusted, NOWHERE), *uses]:
        for path in sorted(written.paths(use, before)):
            if found := forbidden(rule, path, own):
                shown = path.strip(".") if f"`{found}`" in who else found
                return f"{who} uses `{shown}`, in line {use.node.lineno}: `{shorten(use.node)}`"
            if given or hidden or use.stored or allowed(rule, path):
                continue
            if why := _in_answer(path, rule, use.node):
                hidden = _about_hidden(who, shorten(use.node), why)
    if hidden:
        return hidden
    for cell, _ in cells:
        for magic in cell.magics:
            return _about_danger(who, magic, "a line for IPython that may run anything")
    for node, why in _dangers(written, rule):
        return _about_danger(who, shorten(node), why)
    if rule.max_lines is not None and (count := written.lines_behind(name)) > rule.max_lines:
        return (
            f"{who} has {count} lines, without blank ones, comments and docstrings, and may "
            f"have {rule.max_lines}"
        )
    return ""


def _in_answer(path: str, rule: ByHand, node: Any) -> str:
    root = path.partition(".")[0]
    if path.endswith(".?") and root in LIBRARIES:
        given = isinstance(node.args[1], ast.Name) and path == f"{rule.looks_up}.?"
        return "" if given else COMPUTED
    if root and root not in KNOWN:
        return _anywhere(path) or "a module that is not for an answer by hand"
    return _anywhere(path) or _below(path, IN_ANSWERS)


def _dangers(written: LearnerSource, rule: ByHand) -> Iterator[tuple[ast.AST, str]]:
    """Yield code anywhere in the learner's cells that may change the meaning of names unseen."""
    files = written.files.union(*(one.files for one, _, _ in written.statements()))
    for one, given, before in written.statements():
        if given:
            continue
        for path, node, tried in one.imports:
            root = path.partition(".")[0]
            if not is_installed(root) and (root in files or not root):
                yield node, OWN_FILE
            elif not is_installed(root) and not tried:
                yield node, "which is no module of the course or of Python"
            elif not allowed(rule, path) and (why := _anywhere(path)):
                yield node, why
        for use in one.uses:
            for path in sorted(written.paths(use, before)):
                if allowed(rule, path):
                    continue
                if why := _anywhere(path):
                    yield use.node, why
                elif use.stored and not path.startswith((".", *SETTINGS)):
                    yield use.node, "which changes what a library has for everybody"


@lru_cache(maxsize=4096)
def _anywhere(path: str) -> str:
    """Return why no cell may use a path, or import it; empty if it may."""
    if path == "grader.verify.verify":  # in instructors' cells
        return ""
    if not INSIDES.isdisjoint(path.split(".")):
        return INSIDE
    if path.endswith(".__dict__") and path.partition(".")[0] in KNOWN:
        return ALL_NAMES
    return _below(path, ANYWHERE)


def _below(path: str, table: Mapping[str, str]) -> str:
    """Return what a table says of a path, or of one that it is below or goes through."""
    parts = path.split(".") if not path.startswith(".") else []
    for first in range(len(parts)):
        for end in range(first + 1, len(parts) + 1):
            if why := table.get(".".join(parts[first:end])):
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


def shorten(node: ast.AST) -> str:
    """Return a node's code on one line of at most 48 characters and an ellipsis."""
    try:
        text = " ".join(ast.unparse(node).split())
    except (ValueError, RecursionError):
        text = type(node).__name__
    return text if len(text) <= 48 else f"{text[:48]}…"


def _about_hidden(who: str, code: str, why: str) -> str:
    return (
        f"expected code whose every name can be followed in the cells; {who} has "
        f"`{code}`, {why}. Write it out without that"
    )


def _about_danger(who: str, code: str, why: str) -> str:
    return (
        f"expected a notebook in which names mean what its cells say; a cell has "
        f"`{code}`, {why}, so that what {who} uses can't be told. Take that line out"
    )
