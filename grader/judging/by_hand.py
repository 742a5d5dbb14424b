"""Enforce the rules of exercises that must be solved by hand: what an answer may not use.

A rule (:class:`utils.checks.ByHand`) is enforced in two ways. The learner's process records the
operators that touch an input (:mod:`grader.inside.rpc_server`). And this module analyses the
notebook's cells:

1. A cell is parsed as IPython runs it, magics included (:mod:`grader.judging.learner_source`).
2. Each name is resolved to what it stands for, however it was bound and wherever it was stored
   (:mod:`grader.judging.flow`): a path in a library, or code of the learner.
3. A rule's names and patterns apply to things of a library, and to attributes of values that a
   library made or the grader passed in. The learner's own functions, classes and attributes may
   have any name. So may NumPy's, unless a pattern names ``numpy``.
4. The analysis covers all code that the answer reaches: its functions and their helpers, the
   statements that made the values they read, and statements that changed those values.
5. If a name may have several definitions, all of them must follow the rule. The last definition
   alone counts only if its cell ran to its end and the statement is not conditional.
6. An answer with code that cannot be analysed earns nothing, and the report quotes the code:
   ``exec``, ``globals``, a computed name, a module of the learner's own ...
7. Code elsewhere in the notebook is not restricted, unless it may change the meaning of names in a
   way that the analysis cannot see: ``exec``, ``%run``, ``torch.softmax = f``, ``sys.modules`` ...
8. Cells that come with the lab are trusted.

By hand: what can't be seen
---------------------------

The answer runs in the learner's own process, and static analysis has limits. These remain:

- **What ran is not proven to be what was read.** The analysis sees the cells, not the process.
  Outside of the answer it does not follow a name that is computed while a cell runs
  (``getattr(torch, "s" + "ys")``), a module or class of a library that is passed to a function
  (``patch(torch)``), or code that a bug of a library runs. Each of these can replace what an
  allowed name stands for. That takes a deliberate act, in a cell that a person can read.
- **The record of operators is a claim.** It is made in the learner's process. Threads, dispatch
  modes and uses of the recorder are refused in the cells, but the process could still do such
  things. The verdict lists the record under its claims.
- **Only what the rule names is forbidden.** The rules name families (``*backward*``,
  ``*softmax*``), and torch is large: a function that does the same work under a name that no
  pattern covers is accepted.
- **The order of statements and the callers of a function are not distinguished.** If a variable
  may hold two things, both are checked. That is strict. One exception is lenient: an attribute of a
  value of unknown origin counts as the learner's own if a class of the learner defines that name.
- **Results typed in as numbers** cannot be distinguished from computed ones. The cases are drawn
  anew for each grading, so such a table earns nothing by itself.
- **Values computed elsewhere by a person**, with or without help, are beyond any grader.
"""

from __future__ import annotations

import ast
import builtins
import importlib.util
import re
import sys
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any

from grader.judging.flow import INSIDES, LIBRARIES, Hidden, Reading, Use, read, shorten
from grader.judging.learner_source import CodeCell, Written, words
from utils.checks import ByHand, Check

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
FILES = re.compile(r"(\w+)\.py\b")
RUNS_TEXT = frozenset({"exec", "eval", "compile", "__import__", "globals", "get_ipython"})
DUNDERS = words(
    "__globals__ __code__ __closure__ __builtins__ __getattribute__ __subclasses__ __defaults__ "
    "__kwdefaults__ __loader__ __spec__ __import__"
)


class RuleReader:
    """The analysis of one learner's code by the rule of one check.

    Args:
        check: the check of the exercise.
        source: the notebook's cells; or the code itself; or, for several functions, the code of
            each by name. Empty if unknown.
    """

    def __init__(self, check: Check, source: str | Mapping[str, str] | Written):
        self._check, self._source = check, source
        self._said: dict[str, str] = {}

    def refusal(self, of: str | None) -> str:
        """Return, in a sentence, why the answer breaks the rule.

        Args:
            of: the function, for an exercise with several.

        Returns:
            The sentence; empty if the answer keeps to the rule, if the check has no rule, or if
            the code is unknown.
        """
        name = of or ""
        if self._check.by_hand is None or not self._source:
            return ""
        if name not in self._said:
            self._said[name] = self._look(self._check.by_hand, name)
        return self._said[name]

    def _look(self, rule: ByHand, of: str) -> str:
        who = f"`{of}`" if of else "your code"
        name = of or self._check.name
        if isinstance(self._source, Written):
            written = self._source
            if name not in written.bindings and name not in written.declared:
                came = Hidden(name, "which no cell defines where it could be read")
                return _about_hidden(who, came, rule)
        else:
            code = self._source if isinstance(self._source, str) else self._source.get(of, "")
            written = Written([code])
            name = name if name in written.bindings else ""
        try:
            found = reading(written, name, rule)
        except RecursionError:
            came = Hidden(name, "which is nested too deeply to be read")
            return _about_hidden(who, came, rule)
        except Exception:  # no learner's code may end the grading
            return _about_hidden(who, Hidden(name, "which could not be read"), rule)
        used = [use for use in found.uses if refused(rule, use)]
        if used:
            return _about_use(who, used[0], rule)
        if found.hidden:
            return _about_hidden(who, found.hidden[0], rule)
        for danger in dangers(written, rule):
            return _about_danger(who, danger, rule)
        if rule.max_lines is not None and (count := written.lines_behind(name)) > rule.max_lines:
            return (
                f"{who} has {count} lines, without blank ones, comments and docstrings, and may "
                f"have {rule.max_lines}; {rule.because}"
            )
        return ""


def reading(written: Written, name: str, rule: ByHand) -> Reading:
    """Analyse the code behind a name: return what it uses."""

    def asked(path: str) -> str:
        return "" if allowed(rule, path) else hostile(path, written.files)

    return read(
        written,
        name,
        tensors=rule.tensors,
        looks_up=rule.looks_up,
        attributes=rule.attributes,
        hostile=asked,
    )


def refused_names(rule: ByHand, source: str, name: str = "") -> list[str]:
    """Return the names that some code uses although the rule forbids them, in order, each once."""
    uses = reading(Written([source]), name, rule).uses
    return list(dict.fromkeys(_last(use.path) for use in uses if refused(rule, use)))


def refused(rule: ByHand, use: Use) -> bool:
    """Return whether a rule forbids the use of something of a library."""
    root, *parts = use.path.split(".")
    if root not in LIBRARIES and root != "":
        return False
    if allowed(rule, use.path):
        return False
    for pattern in rule.forbid_names:
        if "." in pattern:
            if _fits(use.path, pattern):
                return True
        elif root != "numpy" and any(fnmatchcase(part, pattern) for part in parts):
            return True
    return False


def allowed(rule: ByHand, path: str) -> bool:
    """Return whether a rule allows a path explicitly, which overrides everything else."""
    return any(_fits(path, pattern) for pattern in rule.allow_names)


def _fits(path: str, pattern: str) -> bool:
    """Return whether a path matches a pattern, or is below a path that matches."""
    return fnmatchcase(path, pattern) or fnmatchcase(path, f"{pattern}.*")


def _last(path: str) -> str:
    return path.rpartition(".")[2]


def hostile(path: str, files: frozenset[str] = frozenset()) -> str:
    """Return why an answer that uses a path cannot be analysed; empty if it can.

    Args:
        path: dotted, from the module on.
        files: names of the modules beside the notebook.
    """
    root = path.partition(".")[0]
    if not root or (root in files and not _installed(root)):
        return OWN_FILE
    for whole, why in HOSTILE.items():
        if path == whole or path.startswith(f"{whole}."):
            return why
    undone = _undoes(path)
    if undone:
        return undone
    if root not in KNOWN:
        return "a module that is not for an answer by hand"
    return ""


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


# ---- the rest of the notebook


def dangers(written: Written, rule: ByHand) -> Iterator[Hidden]:
    """Yield code anywhere in the learner's cells that may change the meaning of names unseen.

    Args:
        written: the cells that ran.
        rule: the rule of the exercise, which may allow some paths.
    """
    seen = [_facts(cell) for cell, _, _ in written.cells]
    modules: dict[str, str] = {}
    for facts in seen:
        modules |= facts.imported
    for _ in range(3):
        for facts in seen:
            for name, other in facts.aliases:
                root, _, rest = other.partition(".")
                if root in modules and name not in modules:
                    modules[name] = f"{modules[root]}.{rest}".rstrip(".")
    files = written.files.union(*(facts.files for facts in seen))
    for (cell, given, finished), facts in zip(written.cells, seen, strict=True):
        if given:
            continue
        if cell.unread and finished:
            yield Hidden("…", "a cell that is nested too deeply to be read")
        for magic in cell.magics:
            yield Hidden(magic, "a line for IPython that may run anything")
        for root, tried, hidden in facts.imports:
            if _installed(root):  # the learner's folder is last in sys.path, so it hides no module
                continue
            if root in files:
                yield Hidden(hidden.code, OWN_FILE, hidden.line)
            elif finished and not tried:  # the import succeeded, so the module exists somewhere
                yield hidden
        yield from facts.hidden
        yield from (hidden for path, hidden in facts.refused if not allowed(rule, path))
        for name, hidden in facts.names:
            if name not in written.bindings:
                yield hidden
        for root, rest, stored, hidden in facts.chains:
            if root not in modules:
                continue
            path = f"{modules[root]}.{rest}".rstrip(".")
            if stored and not path.startswith(SETTINGS):
                yield Hidden(hidden.code, "which changes what a library has for everybody")
            elif path.startswith(HARMLESS) or allowed(rule, path):
                continue
            elif why := _elsewhere(path):
                yield Hidden(hidden.code, why)


def _elsewhere(path: str) -> str:
    """Return why a path must not be used in any cell; empty if it may be."""
    for whole, why in HOSTILE.items():
        if path == whole or path.startswith(f"{whole}."):
            return why
    return _undoes(path)


@lru_cache(maxsize=256)
def _installed(root: str) -> bool:
    """Return whether a module comes with Python or the course's environment."""
    if root in sys.stdlib_module_names or root in KNOWN or root == "grader":
        return True
    try:
        spec = importlib.util.find_spec(root)
    except (ImportError, ValueError, AttributeError):
        return False
    return spec is not None and "-packages" in (spec.origin or str(spec.submodule_search_locations))


class _Facts:
    """What a cell contains that may affect other cells. Each item has the code, as Hidden.

    Attributes:
        hidden: code that is always refused.
        imported: the paths of imported things, by the names that the cell gives them.
        imports: for each import, the outermost module and whether it stands in a ``try``.
        refused: the paths of imports that are refused unless the rule allows them.
        files: names of modules whose file name occurs in a string of the cell.
        aliases: pairs of a name and the dotted name that is assigned to it.
        names: uses of built-in names that run text as code or return all names.
        tried: ids of the nodes inside a ``try``.
        chains: for each dotted name its first part, the rest, and whether it is assigned to.
    """

    def __init__(self) -> None:
        self.hidden: list[Hidden] = []
        self.imported: dict[str, str] = {}
        self.imports: list[tuple[str, bool, Hidden]] = []
        self.refused: list[tuple[str, Hidden]] = []
        self.files: set[str] = set()
        self.aliases: list[tuple[str, str]] = []
        self.names: list[tuple[str, Hidden]] = []
        self.tried: set[int] = set()
        self.chains: list[tuple[str, str, bool, Hidden]] = []


@lru_cache(maxsize=512)
def _facts(cell: CodeCell) -> _Facts:
    facts = _Facts()
    blocks: dict[int, list[ast.AST]] = {}
    for unit in cell.units:  # the parts of a compound statement are units too; visit each once
        blocks.setdefault(unit.block, []).append(unit.node)
    seen: set[int] = set()
    for unit in cell.units:
        if isinstance(unit.node, (ast.Try, ast.TryStar)):
            facts.tried |= {id(node) for node in ast.walk(unit.node)}
            facts.tried |= {
                id(alias)
                for node in ast.walk(unit.node)
                if isinstance(node, (ast.Import, ast.ImportFrom))
                for alias in node.names
            }
    for nodes in blocks.values():
        for statement in nodes:
            waiting: list[ast.AST] = [statement]
            while waiting:
                node = waiting.pop()
                if id(node) in seen:
                    continue
                seen.add(id(node))
                _look_at(node, facts)
                waiting += ast.iter_child_nodes(node)
    return facts


def _look_at(node: ast.AST, facts: _Facts) -> None:
    if isinstance(node, ast.Import):
        for alias in node.names:
            root = alias.name.partition(".")[0]
            facts.imported[alias.asname or root] = alias.name if alias.asname else root
            _imports(alias.name, alias, node, facts)
    elif isinstance(node, ast.ImportFrom):
        for alias in node.names:
            path = f"{'.' * node.level}{node.module or ''}.{alias.name}"
            facts.imported[alias.asname or alias.name] = path
            _imports(path, alias, node, facts)
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, str):
            facts.files |= set(FILES.findall(node.value))
    elif isinstance(node, ast.Name):
        if node.id in DUNDERS:
            facts.hidden.append(Hidden(node.id, INSIDE, node.lineno))
        if node.id in RUNS_TEXT and isinstance(node.ctx, ast.Load):
            why = HOSTILE[f"builtins.{node.id}"]
            facts.names.append((node.id, Hidden(node.id, why, node.lineno)))
    elif isinstance(node, ast.Attribute):
        if node.attr in INSIDES or node.attr in DUNDERS:
            facts.hidden.append(Hidden(shorten(node), INSIDE, node.lineno))
        root, rest = _dotted(node)
        if root:
            stored = not isinstance(node.ctx, ast.Load)
            facts.chains.append((root, rest, stored, Hidden(shorten(node), "", node.lineno)))
    elif isinstance(node, ast.Assign):
        root, rest = _dotted(node.value)
        if root:
            dotted = f"{root}.{rest}".rstrip(".")
            facts.aliases += [(t.id, dotted) for t in node.targets if isinstance(t, ast.Name)]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        _look_at_call(node, facts)


def _look_at_call(node: ast.Call, facts: _Facts) -> None:
    assert isinstance(node.func, ast.Name)
    name = node.func.id
    if name in ("vars", "locals") and not node.args:
        facts.names.append((name, Hidden(shorten(node), ALL_NAMES, node.lineno)))
    elif name in ("setattr", "delattr", "vars") and node.args:
        root, rest = _dotted(node.args[0])
        if root:
            facts.chains.append((root, f"{rest}.?", True, Hidden(shorten(node), "", node.lineno)))
    elif name == "getattr" and len(node.args) > 1 and isinstance(node.args[1], ast.Constant):
        root, rest = _dotted(node.args[0])
        if root:
            looked_up: Any = node.args[1].value
            whole = f"{rest}.{looked_up}".lstrip(".")
            facts.chains.append((root, whole, False, Hidden(shorten(node), "", node.lineno)))


def _imports(path: str, alias: ast.alias, node: ast.stmt, facts: _Facts) -> None:
    hidden = Hidden(shorten(node), "which is no module of the course or of Python", node.lineno)
    facts.imports.append((path.partition(".")[0], id(alias) in facts.tried, hidden))
    if not path.startswith(HARMLESS) and (why := _elsewhere(path)):
        facts.refused.append((path, Hidden(shorten(node), why, node.lineno)))


def _dotted(node: ast.AST) -> tuple[str, str]:
    """Split a dotted name into its first part and the rest; empty strings for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return (node.id, ".".join(reversed(parts))) if isinstance(node, ast.Name) else ("", "")


# ---- in words


def _about_use(who: str, use: Use, rule: ByHand) -> str:
    name = _last(use.path)
    if use.kept:
        return f"{who} reads what `{name}` made in another cell; {rule.because}"
    return f"{who} uses `{name}`; {rule.because}"


def _about_hidden(who: str, hidden: Hidden, rule: ByHand) -> str:
    return (
        f"expected code whose every name can be followed in the cells; {who} has "
        f"`{hidden.code}`, {hidden.why}. Write it out without that; {rule.because}"
    )


def _about_danger(who: str, hidden: Hidden, rule: ByHand) -> str:
    return (
        f"expected a notebook in which names mean what its cells say; a cell has "
        f"`{hidden.code}`, {hidden.why}, so that what {who} uses can't be told. "
        f"Take that line out; {rule.because}"
    )
