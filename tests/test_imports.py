"""Which part of the project may import which: the wall can be read in the tree."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
# A package to the packages of this project that its modules may import.
ALLOWED = {
    "utils": {"utils", "hood.judge"},
    # A process that is told of no course asks `hood.course`; a sandbox does not have it.
    "hood/judge/connection": {"hood.judge.connection", "hood.judge.values", "hood.course"},
    "hood/judge/values": {"hood.judge.values"},
    "hood/grader/inside": {"hood.grader.inside", "hood.judge.connection"},
}


def imported(path: Path) -> set[str]:
    """The modules of this project that a file imports, those inside of its functions included."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name for name in found if name.split(".")[0] in ("hood", "utils", "tests", "phases")}


@pytest.mark.parametrize("package", ALLOWED)
def test_a_package_imports_only_what_it_may(package):
    files = sorted((ROOT / package).rglob("*.py"))
    assert len(files) > 4
    for path in files:
        for name in imported(path):
            assert any(f"{name}.".startswith(f"{one}.") for one in ALLOWED[package]), (path, name)
