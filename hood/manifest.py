"""Record what a result depends on: versions of packages, the code that ran, the data that it read.

A grade, an executed lesson, a page of the site and a worker of a cluster each have a manifest.
Equal manifests mean equal results. Before a result is computed again, the differences are listed in
words.

Code is hashed by its syntax tree, without comments and docstrings. A module counts if a worker's
program or a lab's checks import it directly or indirectly. Code that draws or writes a page does
not count, because no judging code imports it.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import metadata
from pathlib import Path

from hood.course import ENGINE, course, course_folder
from hood.phase_paths import PhasePaths

PYTHON = "Python"
GRADERS = ("nbgrader", "ipykernel")  # packages of the engine that decide a grade
# The programs of a worker. All modules that run in a sandbox count, too: a worker does not import
# them, but starts them by name.
ENTRIES = (
    "hood.grader.batch.worker",
    "hood.grader.batch.grading",
    "hood.grader.cleaning.sanitize",  # a step of `nbgrader autograde` in nbgrader_config.py
    "hood.judge.connection.rpc_server",
)
CELL = re.compile(r"^# %%.*$", re.MULTILINE)  # above each cell of a text
INSIDE = "hood.grader.inside"
ABSENT = "not installed"
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
# "dispatch:log_ops" in a check is the function `log_ops` of the module `dispatch` of the drivers.
DRIVER = re.compile(r"(\w+):\w+")


@dataclass(frozen=True)
class Manifest:
    """What a grade depends on, in addition to the lab, the submission and nbgrader's settings."""

    versions: Mapping[str, str]  # versions of Python and of packages, by name
    grader: str  # a hash of the code that grades
    checks: str  # a hash of the lab's checks, of what they import, and of the data that they read

    @property
    def packages(self) -> str:
        """A hash of the versions."""
        return digest_of([json.dumps(dict(self.versions), sort_keys=True).encode()])

    def compared_with(self, other: Manifest) -> list[str]:
        """Return the differences from another manifest, in words."""
        found = [f"{now} instead of {was}" for was, now in differing(other.versions, self.versions)]
        if self.grader != other.grader:
            found.append("another version of the grader")
        if self.checks != other.checks:
            found.append("another version of the lab's checks or of what they import")
        return found


def of_grades(lab: str, root: Path | None = None) -> Manifest:
    """Return what a grade of a lab depends on now; a lab outside of ``phases/`` has no checks."""
    root = root or course_folder()
    return Manifest(versions(root, GRADERS), grader_code(), checks_code(lab, root))


def versions(root: Path | None = None, more: Iterable[str] = ()) -> dict[str, str]:
    """Return the installed versions of Python and of the packages that decide a result.

    The packages are ``more`` and the packages that ``course.toml`` lists under ``versions``.
    Python's version is its series, such as "3.11". A build's suffix, such as "+cpu", is left out.
    """
    names = [*course(root or course_folder()).versions, *more]
    found = {PYTHON: f"{sys.version_info.major}.{sys.version_info.minor}"}
    return found | {name: _installed(name) for name in names}


def _installed(package: str) -> str:
    try:
        return metadata.version(package).partition("+")[0]
    except metadata.PackageNotFoundError:
        return ABSENT


def differing(before: Mapping[str, str], now: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the packages whose versions differ, with both versions.

    An example is "torch 2.12.0", "torch 2.13.0". If one side lacks a package, its version there is
    "not installed".
    """
    return [
        (f"{name} {before.get(name, ABSENT)}", f"{name} {now.get(name, ABSENT)}")
        for name in dict.fromkeys([*before, *now])
        if before.get(name, ABSENT) != now.get(name, ABSENT)
    ]


def in_words(versions: Mapping[str, str]) -> str:
    """Return versions as a list in a sentence: "Python 3.11, torch 2.13.0 and numpy 2.3.1"."""
    *some, last = [f"{name} {version}" for name, version in versions.items()] or [""]
    return f"{', '.join(some)} and {last}" if some else last


def grader_code() -> str:
    """Return a hash of the modules that a worker imports, directly or indirectly."""
    return digest_of(_named(grader_modules().values(), ENGINE))


def grader_modules() -> dict[str, Path]:
    """Return a dict of the engine's modules that a worker imports, directly or indirectly."""
    modules = Modules({"hood": ENGINE})
    inside = modules.file(INSIDE).parent.glob("[!_]*.py")
    return modules.reached([*ENTRIES, *(f"{INSIDE}.{path.stem}" for path in inside)])


def checks_code(lab: str, root: Path) -> str:
    """Return a hash of a lab's checks, of their imports from the course, and of their answers."""
    phase = PhasePaths(root, lab)
    answers = map(deciding, sorted(phase.answers.glob("*.toml")))
    return digest_of([*_named(checks_files(phase), root, ENGINE), *answers])


def checks_files(phase: PhasePaths) -> set[Path]:
    """Return a lab's checks and solutions, the modules that these import, and data.

    The modules include the drivers that checks name, and modules of the engine that workers do not
    import. The data is beside the checks and beside the course's modules.
    """
    if not phase.checks:
        return set()
    root, said = phase.root, course(phase.root)
    modules = Modules({"hood": ENGINE} | dict.fromkeys(said.packages, root))
    names, words = {said.drivers, said.sandbox}, set[str]()
    for path in phase.checks:
        names |= modules.imports(path, f"checks.{path.stem}")
        words |= read_module(path.read_bytes()).words
    names |= {f"{said.drivers}.{one[1]}" for word in words if (one := DRIVER.fullmatch(word))}
    solutions = [phase.lab] if phase.lab.exists() else []  # a check may compare with a solution
    for path in solutions:
        names |= used_imports(path.read_text(encoding="utf-8"))
    reached = modules.reached(names)
    of_course = {path for name, path in reached.items() if name.partition(".")[0] != "hood"}
    of_engine = {reached[name] for name in reached.keys() - grader_modules().keys()}
    beside = data_in(phase.folder / "checks") if (phase.folder / "checks").is_dir() else ()
    data = {*beside, *data_of(of_course, root)}
    return {*phase.checks, *solutions, *of_engine, *of_course, *data}


def used_imports(lab: str) -> set[str]:
    """Return the full names of those imports that a lab's functions and classes use.

    An import that only other code uses, for example a view, affects no verdict.
    """
    cells = [tree for text in CELL.split(lab) if (tree := parsed_cell(text))]
    defined = [one for cell in cells for one in ast.walk(cell) if isinstance(one, DOCUMENTED[1:])]
    used = {one.id for node in defined for one in ast.walk(node) if isinstance(one, ast.Name)}
    found = set()
    for node in (node for cell in cells for node in cell.body):
        if isinstance(node, ast.Import | ast.ImportFrom):
            base = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
            for one in node.names:
                if (one.asname or one.name).partition(".")[0] in used:
                    found.add(f"{base}{one.name}")
    return found


def parsed_cell(source: str) -> ast.Module | None:
    """Return the syntax tree of a cell without IPython's lines; None if it is not valid Python."""
    lines = source.split("\n")
    plain = "\n".join(line for line in lines if not line.lstrip().startswith(("%", "!")))
    try:
        return ast.parse(plain)
    except (SyntaxError, ValueError):
        return None


def deciding(answers: Path) -> bytes:
    """From a file of answers, return the entries that a verdict can depend on."""
    entries = tomllib.loads(answers.read_text(encoding="utf-8"))
    found = {
        kind: {
            name: {key: value for key, value in one.items() if key not in ("breaks", "uses")}
            for name, one in entries.get(kind, {}).items()
        }
        for kind in ("wrong", "right")
    }
    return json.dumps([answers.name, found]).encode()


@dataclass(frozen=True)
class Modules:
    """The modules of some packages."""

    homes: Mapping[str, Path]  # by package, the folder that contains it

    def file(self, name: str) -> Path:
        """Return the file of a module, such as "utils.minigpt".

        Raises LookupError if there is no such file.
        """
        first = name.partition(".")[0]
        if first in self.homes:
            place = self.homes[first].joinpath(*name.split("."))
            for path in (place / "__init__.py", place.with_suffix(".py")):
                if path.is_file():
                    return path
        raise LookupError(f"no module {name} in {', '.join(self.homes) or 'no package'}")

    def reached(self, names: Iterable[str]) -> dict[str, Path]:
        """Return a dict of the modules that are loaded when ``names`` are imported or run.

        Names of other packages and of objects in modules are skipped. Imports for a type
        checker (`if TYPE_CHECKING:`) are skipped, too, except in a module with a `__getattr__`.
        """
        found: dict[str, Path] = {}
        left = list(names)
        while left:
            parts = left.pop().split(".")
            for end in range(1, len(parts) + 1):
                name = ".".join(parts[:end])
                try:
                    path = self.file(name)
                except LookupError:
                    break
                if name not in found:
                    found[name] = path
                    left += self.imports(path, name)
        return found

    def imports(self, path: Path, name: str) -> set[str]:
        """Return the full names of a module's imports."""
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        return imported(read_module(path.read_bytes()), package)


@dataclass(frozen=True)
class Module:
    """The parts of a module that a result can depend on."""

    code: bytes  # a hash of its syntax tree without docstrings
    # for each import: the leading dots, the named module, and the imported names
    imports: tuple[tuple[int, str, tuple[str, ...]], ...]
    words: frozenset[str]  # its strings, except docstrings


def imported(module: Module, package: str = "") -> set[str]:
    """Return the full names of what a module of a package imports."""
    found: set[str] = set()
    for level, base, names in module.imports:
        above = package.split(".")[: len(package.split(".")) + 1 - level] if level else []
        whole = ".".join([*above, *filter(None, [base])])
        found |= {whole, *(f"{whole}.{one}" for one in names)}
    return found


@lru_cache(maxsize=1024)
def read_module(text: bytes) -> Module:
    """Parse a module. If a module is not valid Python, its whole text is hashed."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return Module(hashlib.sha256(text).digest(), (), frozenset())
    nodes = list(_without_docstrings(tree))
    imports: list[tuple[int, str, tuple[str, ...]]] = [
        (0, one.name, ()) for node in nodes if isinstance(node, ast.Import) for one in node.names
    ]
    imports += [
        (node.level, node.module or "", tuple(one.name for one in node.names))
        for node in nodes
        if isinstance(node, ast.ImportFrom)
    ]
    strings = (one.value for one in nodes if isinstance(one, ast.Constant))
    words = frozenset(word for word in strings if isinstance(word, str))
    return Module(hashlib.sha256(ast.dump(tree).encode()).digest(), tuple(imports), words)


def _without_docstrings(tree: ast.Module) -> Iterator[ast.AST]:
    """Remove a tree's docstrings; yield all other nodes except imports for a type checker.

    In a module with a ``__getattr__``, imports for a type checker are kept, because they name the
    module's lazy imports.
    """
    lazy = any(isinstance(one, ast.FunctionDef) and one.name == "__getattr__" for one in tree.body)
    left: list[ast.AST] = [tree]
    while left:
        node = left.pop()
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            del node.body[0]
        yield node
        if isinstance(node, ast.If) and _is_for_types(node) and not lazy:
            left += node.orelse
        else:
            left += ast.iter_child_nodes(node)


def _is_for_types(node: ast.If) -> bool:
    return ast.unparse(node.test).endswith("TYPE_CHECKING")


def code_of(path: Path) -> bytes:
    """Return a hash of a module's code without docstrings, or of any other file's bytes."""
    content = path.read_bytes()
    return read_module(content).code if path.suffix == ".py" else hashlib.sha256(content).digest()


def data_of(modules: Iterable[Path], root: Path) -> set[Path]:
    """Return the data that modules read: files beside the modules, and records that they name."""
    modules = list(modules)
    found = {path for folder in {one.parent for one in modules} for path in data_in(folder)}
    words = {word for path in modules for word in read_module(path.read_bytes()).words}
    for name in course(root).records:
        if Path(name).name in words and (root / name).is_dir():
            found |= {path for path in (root / name).rglob("*") if path.is_file()}
    return found


def data_in(folder: Path) -> Iterator[Path]:
    """Yield a folder's files that are not Python, also from subfolders without Python files."""
    for path in folder.iterdir():
        if path.name.startswith(".") or path.name == "__pycache__":
            continue
        if path.is_dir() and not any(path.glob("*.py")):
            yield from data_in(path)
        elif path.is_file() and path.suffix != ".py":
            yield path


def digest_of(parts: Iterable[bytes]) -> str:
    """Return the SHA-256 of some parts, each followed by a zero byte."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part + b"\0")
    return digest.hexdigest()


def _named(files: Iterable[Path], *roots: Path) -> Iterator[bytes]:
    for path in sorted(files):
        root = next(one for one in roots if path.is_relative_to(one))
        yield path.relative_to(root).as_posix().encode() + b"\0" + code_of(path)
