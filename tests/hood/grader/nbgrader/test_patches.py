"""The pinned nbgrader has everything that is patched, and each patch replaces it."""

import ast
import importlib
import tomllib
from importlib import metadata
from pathlib import Path

from nbgrader import api
from nbgrader.apps.baseapp import NbGrader

from hood.grader.nbgrader import patches
from hood.grader.nbgrader.literal_paths import found
from hood.phase_paths import ROOT


def tree_of(module):
    """Return the syntax tree of a module of nbgrader, as its file has it."""
    return ast.parse(Path(importlib.import_module(module).__file__).read_text(encoding="utf-8"))


def test_the_patches_are_for_the_nbgrader_that_is_pinned_and_installed():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert f"nbgrader=={patches.VERSION}" in project["optional-dependencies"]["grader"]
    assert metadata.version("nbgrader") == patches.VERSION


def test_nbgrader_has_all_replaced_names():
    names = {node.name for node in tree_of("nbgrader.api").body if hasattr(node, "name")}
    names |= {
        alias.asname or alias.name
        for node in tree_of("nbgrader.api").body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert "get_alembic_version" in names
    for name in patches.SEARCHING:
        tree = tree_of(f"nbgrader.{name}")
        calls = [ast.unparse(one.func) for one in ast.walk(tree) if isinstance(one, ast.Call)]
        assert "glob.glob" in calls, name
    assert "start" in vars(NbGrader)


def test_patching_again_changes_nothing():
    patches.patch_commands()
    before = NbGrader.start
    patches.patch_commands()
    assert NbGrader.start is before
    assert before.gathers
    assert api.get_alembic_version is patches.newest_tables
    for name in patches.SEARCHING:
        assert importlib.import_module(f"nbgrader.{name}").glob.glob is found


def test_no_module_of_nbgrader_that_looks_for_files_is_forgotten():
    folder = Path(importlib.import_module("nbgrader").__file__).parent
    looking = set()
    for path in folder.rglob("*.py"):
        name = path.relative_to(folder).with_suffix("").as_posix().replace("/", ".")
        if not name.startswith(("tests.", "docs.")) and "glob.glob(" in path.read_text("utf-8"):
            looking.add(name)
    typed = {"apps.validateapp"}  # a user's input is a pattern there
    assert looking - set(patches.SEARCHING) == typed
