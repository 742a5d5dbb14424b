"""The lock installs what pyproject.toml declares, and what the code imports is declared."""

import ast
import itertools
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from importlib.metadata import distribution, packages_distributions, version
from pathlib import Path

import pytest
import yaml
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LOCK = {path.stem: path.read_text(encoding="utf-8") for path in (ROOT / "lock").glob("*.txt")}
OURS = ("utils", "hood", "phases", "tests", "benchmarks", "lock")
SHARED = ("packages", "extras")
BUILDS = ("torch-cuda", "torch-cpu")
SYSTEMS = (
    ("linux", "Linux", "x86_64"),
    ("linux", "Linux", "aarch64"),
    ("darwin", "Darwin", "arm64"),
)

# These packages are used by their command or as a plug-in, and never imported by name. No module of
# ours imports these: tools, and accelerate, which the Trainer of transformers needs.
TOOLS = {
    *("accelerate", "furo", "ipykernel", "jupyterlab", "mypy", "myst-parser", "psycopg"),
    *("pytest-xdist", "ruff"),
}


def declared(pyproject: dict) -> list[Requirement]:
    """What pyproject.toml asks for directly: to build, to run, and in each extra."""
    project = pyproject["project"]
    extras = project["optional-dependencies"].values()
    lines = [*project["dependencies"], *(line for extra in extras for line in extra)]
    return [Requirement(line) for line in [*lines, *pyproject["build-system"]["requires"]]]


def locked(lines: str) -> list[Requirement]:
    """The packages that a file of the lock names."""
    return [Requirement(line) for line in re.findall(r"^([a-z0-9].*?) \\$", lines, re.MULTILINE)]


def machines(pyproject: dict) -> Iterator[dict[str, str]]:
    """The marker environment of each promised platform and Python."""
    allowed = SpecifierSet(pyproject["project"]["requires-python"])
    versions = [f"3.{minor}" for minor in range(30) if f"3.{minor}" in allowed]
    each = itertools.product(versions, ("0", "99"), SYSTEMS)
    for python, patch, (platform, system, machine) in each:
        yield default_environment() | {
            "python_version": python,
            "python_full_version": f"{python}.{patch}",
            "sys_platform": platform,
            "platform_system": system,
            "platform_machine": machine,
        }


def chosen(requirements: Iterable[Requirement], machine: dict[str, str]) -> dict[str, Requirement]:
    """The packages for a machine, by name; no name twice."""
    taken = [each for each in requirements if not each.marker or each.marker.evaluate(machine)]
    by_name = {canonicalize_name(each.name): each for each in taken}
    assert len(by_name) == len(taken), f"a package is locked twice for {machine}"
    return by_name


def out_of_step(pyproject: dict, lock: dict[str, str]) -> list[str]:
    """One line for each direct dependency that some machine would not get from the lock."""
    found, direct = [], declared(pyproject)
    files = {name: locked(text) for name, text in lock.items()}
    for machine, build in itertools.product(machines(pyproject), BUILDS):
        there = chosen((pin for name in (*SHARED, build) for pin in files[name]), machine)
        for wanted in direct:
            if wanted.marker and not wanted.marker.evaluate(machine):
                continue
            pin = there.get(canonicalize_name(wanted.name))
            if pin is None or not wanted.specifier.contains(str(pin.specifier).lstrip("=")):
                where = "{sys_platform} {platform_machine}, Python {python_version}"
                found.append(
                    f"{wanted.name}: pyproject.toml says {wanted.specifier}, the lock says "
                    f"{pin.specifier if pin else 'nothing'} ({where.format(**machine)}, {build})"
                )
    names = {canonicalize_name(each.name) for each in direct}
    asked_for = r"^([a-z0-9-]+)==[^#]*# via(?:\n +# )? +open-the-hood\b"
    in_lock = set(re.findall(asked_for, "".join(lock.values()), re.MULTILINE))
    found += [f"{name}: the lock still has it for pyproject.toml" for name in in_lock - names]
    return found


def test_the_lock_is_in_step_with_pyproject():
    assert out_of_step(PYPROJECT, LOCK) == [], "run `make lock`"


def changed(*, old: str = "einops==0.8.2", new: str) -> dict:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert old in text
    return tomllib.loads(text.replace(old, new))


@pytest.mark.parametrize(
    ("pyproject", "says"),
    [
        (
            changed(new="einops==0.8.1"),
            "einops: pyproject.toml says ==0.8.1, the lock says ==0.8.2",
        ),
        (
            changed(new='einops==0.8.2",\n"flax==1'),
            "flax: pyproject.toml says ==1, the lock says nothing",
        ),
        (changed(old='"einops==0.8.2",', new=""), "einops: the lock still has it"),
        (changed(old="torch==2.13.0", new="torch==2.13.1"), "torch: pyproject.toml says ==2.13.1"),
        (
            changed(old="triton==3.7.1 ; platform_system == 'Linux'", new="triton==3.7.1"),
            "triton: pyproject.toml says ==3.7.1, the lock says nothing (darwin arm64, Python 3.1",
        ),
    ],
    ids=["another version", "missing", "more", "torch", "on more platforms"],
)
def test_a_lock_out_of_step_is_found_and_named(pyproject, says):
    found = out_of_step(pyproject, LOCK)
    assert found
    assert all(line.startswith(says) for line in found)


def test_each_installable_file_has_a_hash_and_no_address():
    for name, text in LOCK.items():
        entries = re.split(r"^(?=[a-z0-9])", text, flags=re.MULTILINE)[1:]
        assert len(entries) == len(locked(text)), name
        assert [entry for entry in entries if "--hash=sha256:" not in entry] == []
        assert re.findall(r"https?://\S+", text) == (
            ["https://download.pytorch.org/whl/cpu"] if name == "torch-cpu" else []
        )


def test_the_installed_packages_are_the_locked_ones_and_complete():
    build = "torch-cpu" if version("torch").endswith("+cpu") else "torch-cuda"
    files = [LOCK[name] for name in (*SHARED, build)]
    there = chosen(itertools.chain(*map(locked, files)), default_environment())
    other = {
        name: version(name) for name, pin in there.items() if version(name) not in pin.specifier
    }
    assert other == {}, "run `make build`"
    unmet = [
        f"{name} needs {line}"
        for name in there
        for line in distribution(name).requires or ()
        if (need := Requirement(line)).marker is None or need.marker.evaluate({"extra": ""})
        if (pin := there.get(canonicalize_name(need.name))) is None
        or not need.specifier.contains(str(pin.specifier).lstrip("="), prereleases=True)
    ]
    assert unmet == []


def test_conda_gets_the_same_python_and_the_same_lock():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    assert environment["variables"] == {"OMP_WAIT_POLICY": "passive"}
    *conda, packages = environment["dependencies"]
    python = f"python {PYPROJECT['project']['requires-python']}"
    assert conda == [python, "pip", "cxx-compiler"]
    assert packages == {"pip": [f"-r lock/{name}.txt" for name in ("torch-cpu", *SHARED)]}


def test_every_direct_dependency_is_pinned_exactly():
    project = {**PYPROJECT, "build-system": {"requires": []}}
    loose = [str(each) for each in declared(project) if not str(each.specifier).startswith("==")]
    assert loose == []


def imported() -> Iterator[tuple[str, Path]]:
    """Each top-level module that a Python file of the project imports, with the file."""
    for folder in OURS:
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Import):
                    yield from ((alias.name.partition(".")[0], path) for alias in node.names)
                elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                    yield node.module.partition(".")[0], path


@pytest.mark.slow(3)
def test_imports_are_declared_and_declared_packages_are_used():
    owners = packages_distributions()
    used = {
        canonicalize_name(owner): path.relative_to(ROOT)
        for module, path in imported()
        if module not in OURS and module not in sys.stdlib_module_names
        for owner in owners.get(module, [module])
    }
    names = {canonicalize_name(each.name) for each in declared(PYPROJECT)}
    undeclared = {name: str(path) for name, path in used.items() if name not in names}
    assert undeclared == {}, "imported, but not in pyproject.toml"
    assert names - set(used) - TOOLS == set(), "in pyproject.toml, but used nowhere"


def test_nothing_says_to_install_this_project_from_an_index():
    """On a package index, anybody may own this name."""
    words = [
        "git",
        "grep",
        "-nIE",
        f"install.*[ '\"\\`]{PYPROJECT['project']['name']}([][ '\"\\`=<>~]|$)",
    ]
    said = subprocess.run([*words, "--", ":!tests"], cwd=ROOT, capture_output=True, text=True)
    assert said.stdout == ""
