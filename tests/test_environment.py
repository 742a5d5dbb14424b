"""pyproject.toml and environment.yml say the same, and what the code imports is declared."""

import ast
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
ENVIRONMENT = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))

# Used by their command or as a plug-in, never imported by name.
# Used by no module of ours: tools, and accelerate, without which transformers has no Trainer.
TOOLS = {
    *("accelerate", "furo", "ipykernel", "jupyterlab", "mypy", "psycopg", "pytest-xdist", "ruff"),
}

# What conda brings and pip can't: compilers, for torch.compile.
CONDAS = {"cxx-compiler"}


def declared(pyproject: dict) -> dict[str, str]:
    """Name to version and marker of each direct dependency; "python" is the range."""
    project = pyproject["project"]
    extras = project["optional-dependencies"].values()
    lines = [*project["dependencies"], *(line for extra in extras for line in extra)]
    return {"python": project["requires-python"]} | dict(map(entry, lines))


def offered(environment: dict) -> dict[str, str]:
    """The same for environment.yml; whatever is no requirement is kept under its own text."""
    found = {}
    for line in environment["dependencies"]:
        if isinstance(line, dict):
            found |= dict(map(entry, (e for e in line["pip"] if not e.startswith("-"))))
        elif line.startswith("python "):
            found["python"] = line.removeprefix("python ")
        elif line not in {"pip", *CONDAS}:
            found |= [entry(line)]
    return found


def entry(line: str) -> tuple[str, str]:
    """'torch==2.13.0 ; marker' as ('torch', '==2.13.0; marker')."""
    requirement = Requirement(line)
    marker = f"; {requirement.marker}" if requirement.marker else ""
    return canonicalize_name(requirement.name), f"{requirement.specifier}{marker}"


def differences(pyproject: dict, environment: dict) -> list[str]:
    """One line for each entry that the two do not share."""
    left, right = declared(pyproject), offered(environment)
    return [
        f"{name}: pyproject.toml says {left.get(name, 'nothing')}, "
        f"environment.yml says {right.get(name, 'nothing')}"
        for name in sorted(left | right)
        if left.get(name) != right.get(name)
    ]


def test_environment_and_pyproject_agree_entry_by_entry():
    assert differences(PYPROJECT, ENVIRONMENT) == []


@pytest.mark.parametrize(
    ("entries", "says"),
    [
        (["torch==2.12.0"], "torch: pyproject.toml says ==2.13.0, environment.yml says ==2.12.0"),
        ([], "torch: pyproject.toml says ==2.13.0, environment.yml says nothing"),
        (["torch==2.13.0", "x==1"], "x: pyproject.toml says nothing, environment.yml says ==1"),
    ],
    ids=["another version", "missing", "more"],
)
def test_a_difference_is_found_and_named(entries, says):
    pyproject = {
        "project": {
            "requires-python": ">=3.11",
            "dependencies": ["torch==2.13.0"],
            "optional-dependencies": {"dev": []},
        }
    }
    environment = {"dependencies": ["python >=3.11", "pip", {"pip": [*entries, "--editable ."]}]}
    assert differences(pyproject, environment) == [says]


def test_a_python_range_or_marker_that_differs_is_found():
    pyproject = {
        "project": {
            "requires-python": ">=3.11",
            "dependencies": ["triton==3.7.1 ; platform_system == 'Linux'"],
            "optional-dependencies": {"dev": []},
        }
    }
    environment = {"dependencies": ["python >=3.10", {"pip": ["triton==3.7.1"]}]}
    assert len(differences(pyproject, environment)) == 2


def test_the_conda_environment_installs_the_project_itself():
    pip = next(line["pip"] for line in ENVIRONMENT["dependencies"] if isinstance(line, dict))
    assert "--editable ." in pip
    assert set(ENVIRONMENT["dependencies"][:-1]) >= CONDAS


def test_every_direct_dependency_is_pinned_exactly():
    loose = {
        name: version
        for name, version in declared(PYPROJECT).items()
        if name != "python" and not version.startswith("==")
    }
    assert loose == {}


def imported() -> Iterator[tuple[str, Path]]:
    """Each top-level module that a Python file of the project imports, with the file."""
    for folder in ("utils", "grader", "phases", "tests", "benchmarks"):
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Import):
                    yield from ((alias.name.partition(".")[0], path) for alias in node.names)
                elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                    yield node.module.partition(".")[0], path


@pytest.mark.slow(3)
def test_what_is_imported_is_declared_and_what_is_declared_is_used():
    ours = {"utils", "grader", "phases", "tests", "benchmarks"}
    owners = packages_distributions()
    used = {
        canonicalize_name(owner): path.relative_to(ROOT)
        for module, path in imported()
        if module not in ours and module not in sys.stdlib_module_names
        for owner in owners.get(module, [module])
    }
    names = set(declared(PYPROJECT)) - {"python"}
    undeclared = {name: str(path) for name, path in used.items() if name not in names}
    assert undeclared == {}, "imported, but not in pyproject.toml"
    assert names - set(used) - TOOLS == set(), "in pyproject.toml, but used nowhere"
