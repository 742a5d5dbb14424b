"""What modules and classes have that they did not have of themselves."""

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
    """As before any learner's code, whatever was remembered or replaced in this process."""
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
def test_what_was_added_or_replaced_is_told_by_its_shortest_path(
    monkeypatch, place, name, path, by
):
    assert originals.replaced() == []
    monkeypatch.setattr(place, name, by, raising=False)
    [found] = originals.replaced()
    assert found.endswith(path)
    monkeypatch.undo()


def test_settings_and_what_a_library_does_itself_are_not_told(monkeypatch):
    monkeypatch.setattr(torch, "a_setting", 3, raising=False)
    importlib.import_module("torch.utils.model_zoo")  # which nothing imports before

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
def test_what_torch_replaces_as_it_compiles_is_its_own():
    asked = [sys.executable, "-c", COMPILES]
    done = subprocess.run(asked, capture_output=True, text=True, cwd=course_code.ENGINE, check=True)
    assert done.stdout.splitlines() == ["patched_init []", "['torch.exp']"]


def test_many_are_cut_off(monkeypatch):
    for number in range(2 * originals.MOST):
        monkeypatch.setattr(torch, f"tool_{number}", another, raising=False)
    assert len(originals.replaced()) == originals.MOST + 1


def test_modules_from_files_of_ones_own_are_told(monkeypatch, tmp_path):
    (tmp_path / "a_helper_of_mine.py").write_text("x = 1")
    monkeypatch.syspath_prepend(tmp_path)
    before = originals.own_files()
    made = importlib.import_module("a_helper_of_mine")
    assert set(originals.own_files()) - set(before) == {made.__name__}
    assert not {"torch", "math", "json", "hood", "utils", "pytest"} & set(before)
    del sys.modules["a_helper_of_mine"]


def test_a_folder_that_a_pth_file_names_is_a_librarys(monkeypatch, tmp_path):
    packages, elsewhere = tmp_path / "site-packages", tmp_path / "elsewhere"
    packages.mkdir()
    elsewhere.mkdir()
    (packages / "more.pth").write_text(f"import os\n{elsewhere}\n\n")
    monkeypatch.setattr(originals.site, "getsitepackages", lambda: [str(packages)])
    assert str(elsewhere) in originals._library_folders()
