"""What a result rests on: the versions of packages, the code that ran, and the data that it read.

A grade, an executed lesson, a page of the site and a worker of a cluster all have one. What is the
same here is the same result; what is not is said in words, before anything is done again.

Code is read by its syntax tree, without comments and docstrings, and which modules count follows
from their imports: from the program of a worker, and from the checks of a lab. What draws or words
a page decides no grade, because nothing that judges imports it.
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
GRADERS = ("nbgrader", "ipykernel")  # packages of the engine's own that decide a grade
# What a worker starts with. What is inside of a sandbox is started by name, so all of it counts.
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
    """What a grade of a lab rests on, beside the lab, the submission and nbgrader's settings."""

    versions: Mapping[str, str]  # by package, and of Python
    grader: str  # a hash of the code that grades
    checks: str  # of the lab's checks, of what they import, and of the data that they read

    @property
    def packages(self) -> str:
        """A hash of the versions."""
        return digest_of([json.dumps(dict(self.versions), sort_keys=True).encode()])

    def compared_with(self, other: Manifest) -> list[str]:
        """Return in words what is not the same here as in another manifest."""
        found = [f"{now} instead of {was}" for was, now in differing(other.versions, self.versions)]
        if self.grader != other.grader:
            found.append("another version of the grader")
        if self.checks != other.checks:
            found.append("another version of the lab's checks or of what they import")
        return found


def of_grades(lab: str, root: Path | None = None) -> Manifest:
    """Return what a grade of a lab rests on now; of a lab that is no phase, without its checks."""
    root = root or course_folder()
    return Manifest(versions(root, GRADERS), grader_code(), checks_code(lab, root))


def versions(root: Path | None = None, more: Iterable[str] = ()) -> dict[str, str]:
    """Return the versions of Python and of the packages that decide, as they are installed here.

    Which ones, the key ``versions`` of ``course.toml`` says, and ``more``. Of Python it is the
    series, such as "3.11"; what a build adds to a version, such as "+cpu", is left out.
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
    """Return each package whose version is another one, with both: "torch 2.12.0", "torch 2.13.0".

    One that only one side has counts, too; the other side then has it "not installed".
    """
    return [
        (f"{name} {before.get(name, ABSENT)}", f"{name} {now.get(name, ABSENT)}")
        for name in dict.fromkeys([*before, *now])
        if before.get(name, ABSENT) != now.get(name, ABSENT)
    ]


def in_words(versions: Mapping[str, str]) -> str:
    """Return versions as a sentence lists them: "Python 3.11, torch 2.13.0 and numpy 2.3.1"."""
    *some, last = [f"{name} {version}" for name, version in versions.items()] or [""]
    return f"{', '.join(some)} and {last}" if some else last


def grader_code() -> str:
    """Return a hash of the modules that a worker reaches by imports."""
    return digest_of(_named(grader_modules().values(), ENGINE))


def grader_modules() -> dict[str, Path]:
    """Return by name the modules of the engine that a worker reaches by imports."""
    modules = Modules({"hood": ENGINE})
    inside = modules.file(INSIDE).parent.glob("[!_]*.py")
    return modules.reached([*ENTRIES, *(f"{INSIDE}.{path.stem}" for path in inside)])


def checks_code(lab: str, root: Path) -> str:
    """Return a hash of a lab's checks, of what they reach of the course, and of their answers."""
    phase = PhasePaths(root, lab)
    answers = map(deciding, sorted(phase.answers.glob("*.toml")))
    return digest_of([*_named(checks_files(phase), root, ENGINE), *answers])


def checks_files(phase: PhasePaths) -> set[Path]:
    """Return a lab's checks, its solutions, the modules that they reach, and data.

    The drivers that they name are among the modules, and those of the engine that no worker reaches
    itself; the data is what lies beside the checks and beside modules of the course.
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
    solutions = [phase.lab] if phase.lab.exists() else []  # a reference may be one of them
    for path in solutions:
        names |= used_imports(path.read_text(encoding="utf-8"))
    reached = modules.reached(names)
    of_course = {path for name, path in reached.items() if name.partition(".")[0] != "hood"}
    of_engine = {reached[name] for name in reached.keys() - grader_modules().keys()}
    beside = data_in(phase.folder / "checks") if (phase.folder / "checks").is_dir() else ()
    data = {*beside, *data_of(of_course, root)}
    return {*phase.checks, *solutions, *of_engine, *of_course, *data}


def used_imports(lab: str) -> set[str]:
    """Return the whole names of what a lab imports and its functions and classes use.

    A cell that only calls something, such as a view, shows it, and no verdict depends on that.
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
    """Return the syntax tree of a cell, without lines for IPython; None if it is no Python."""
    lines = source.split("\n")
    plain = "\n".join(line for line in lines if not line.lstrip().startswith(("%", "!")))
    try:
        return ast.parse(plain)
    except (SyntaxError, ValueError):
        return None


def deciding(answers: Path) -> bytes:
    """Return what of an answers' file a verdict can depend on."""
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

    homes: Mapping[str, Path]  # by package, the folder that it lies in

    def file(self, name: str) -> Path:
        """Return the file of a module, such as "utils.minigpt". Raises LookupError without one."""
        first = name.partition(".")[0]
        if first in self.homes:
            place = self.homes[first].joinpath(*name.split("."))
            for path in (place / "__init__.py", place.with_suffix(".py")):
                if path.is_file():
                    return path
        raise LookupError(f"no module {name} in {', '.join(self.homes) or 'no package'}")

    def reached(self, names: Iterable[str]) -> dict[str, Path]:
        """Return by name the modules that an import of some loads, perhaps only when they run.

        Names of other packages and of things inside of modules are passed over, as are imports
        that only a type checker makes.
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
        """Return what a module imports, relative imports by their whole names."""
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        return imported(read_module(path.read_bytes()), package)


@dataclass(frozen=True)
class Module:
    """What counts of a module's text."""

    code: bytes  # a hash of its syntax tree without docstrings
    # of each import how many dots it begins with, from where, and the names that it imports
    imports: tuple[tuple[int, str, tuple[str, ...]], ...]
    words: frozenset[str]  # its strings that are no docstrings


def imported(module: Module, package: str = "") -> set[str]:
    """Return the whole names of what a module of a package imports."""
    found: set[str] = set()
    for level, base, names in module.imports:
        above = package.split(".")[: len(package.split(".")) + 1 - level] if level else []
        whole = ".".join([*above, *filter(None, [base])])
        found |= {whole, *(f"{whole}.{one}" for one in names)}
    return found


@lru_cache(maxsize=1024)
def read_module(text: bytes) -> Module:
    """Read a module's text; of one that is no Python all counts, and it imports nothing."""
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
    """Take the docstrings out of a tree; yield its nodes, without imports for a type checker.

    A module with a ``__getattr__`` imports what it gives when it is asked: there, these say what.
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
    """Return what of a file counts: a hash of a module's code, or of data."""
    content = path.read_bytes()
    return read_module(content).code if path.suffix == ".py" else hashlib.sha256(content).digest()


def data_of(modules: Iterable[Path], root: Path) -> set[Path]:
    """Return the data that modules read: files beside them, and the records that one names."""
    modules = list(modules)
    found = {path for folder in {one.parent for one in modules} for path in data_in(folder)}
    words = {word for path in modules for word in read_module(path.read_bytes()).words}
    for name in course(root).records:
        if Path(name).name in words and (root / name).is_dir():
            found |= {path for path in (root / name).rglob("*") if path.is_file()}
    return found


def data_in(folder: Path) -> Iterator[Path]:
    """Yield the files of a folder that are no Python, and those of folders in it without Python."""
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
