"""Attributes of modules and classes that code has added or replaced."""

import importlib
import math
import subprocess
import sys
import types

import pytest
import torch
from torch import nn

from hood.judge.connection import course_code, originals, torch_calls


@pytest.fixture(autouse=True)
def remembered(monkeypatch):
    """The state before any learner's code, without what this process recorded or replaced."""
    monkeypatch.setattr(originals, "_had", [])
    monkeypatch.setattr(originals, "_libraries", [])
    originals.remember()


def another(*args):
    return args


@pytest.mark.parametrize(
    ("place", "name", "path"),
    [
        (torch, "exp", "torch.exp"),
        (torch, "tool", "torch.tool"),
        (math, "row_major_strides", "math.row_major_strides"),
        (torch.Tensor, "__matmul__", "torch.Tensor.__matmul__"),
        (nn.Linear, "forward", "torch.nn.Linear.forward"),
        (torch_calls.OpRecorder, "__torch_dispatch__", "OpRecorder.__torch_dispatch__"),
        (originals, "own_files", "hood.judge.connection.originals.own_files"),
    ],
)
@pytest.mark.parametrize("by", [another, property(another), staticmethod(another), torch.sin])
def test_additions_and_replacements_are_named_by_their_shortest_path(
    monkeypatch, place, name, path, by
):
    assert originals.replaced() == []
    monkeypatch.setattr(place, name, by, raising=False)
    [found] = originals.replaced()
    assert found.endswith(path)
    monkeypatch.undo()


def test_settings_and_a_librarys_own_changes_are_not_reported(monkeypatch):
    monkeypatch.setattr(torch, "a_setting", 3, raising=False)
    importlib.import_module("torch.utils.model_zoo")  # which was not imported before

    exec("def exp(): ...", made := {})
    file = torch.functional.__file__
    wrapped = types.FunctionType(made["exp"].__code__.replace(co_filename=file), {}, "exp")
    monkeypatch.setattr(torch, "exp", wrapped)
    assert originals.replaced() == []
    monkeypatch.setattr(torch, "exp", made["exp"])
    assert originals.replaced() == ["torch.exp"]


COMPILES = """
import torch
from hood.judge.connection import originals
originals.remember()
torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2))
torch.nn.Linear(2, 2)
print(torch.nn.Module.__init__.__name__, originals.replaced())
torch.exp = torch.func.grad
print(originals.replaced())
"""


@pytest.mark.slow(4)
def test_torchs_own_replacements_during_compilation_are_ignored():
    asked = [sys.executable, "-c", COMPILES]
    done = subprocess.run(asked, capture_output=True, text=True, cwd=course_code.ENGINE, check=True)
    assert done.stdout.splitlines() == ["patched_init []", "['torch.exp']"]


def test_a_long_list_is_cut_off(monkeypatch):
    for number in range(2 * originals.MOST):
        monkeypatch.setattr(torch, f"tool_{number}", another, raising=False)
    assert len(originals.replaced()) == originals.MOST + 1


def test_modules_from_the_learners_own_files_are_reported(monkeypatch, tmp_path):
    (tmp_path / "a_helper_of_mine.py").write_text("x = 1")
    monkeypatch.syspath_prepend(tmp_path)
    before = originals.own_files()
    made = importlib.import_module("a_helper_of_mine")
    assert set(originals.own_files()) - set(before) == {made.__name__}
    assert not {"torch", "math", "json", "hood", "utils", "pytest"} & set(before)
    del sys.modules["a_helper_of_mine"]


def test_a_folder_named_in_a_pth_file_counts_as_a_library(monkeypatch, tmp_path):
    packages, elsewhere = tmp_path / "site-packages", tmp_path / "elsewhere"
    packages.mkdir()
    elsewhere.mkdir()
    (packages / "more.pth").write_text(f"import os\n{elsewhere}\n\n")
    monkeypatch.setattr(originals.site, "getsitepackages", lambda: [str(packages)])
    assert str(elsewhere) in originals._library_folders()
