"""A cell's settings change no verdict, and an answer may change settings for itself."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Iterator
from typing import Any

import nbformat
import numpy as np
import pytest
import torch
from nbformat.v4 import new_code_cell

from hood.grader.execution.execute import Execute
from hood.grader.execution.graded_cell import read_verdicts
from hood.judge.checks.exercise import Check, case
from hood.judge.connection.settings import OF_NUMPY, of_torch, usual_settings, variable
from hood.judge.verdicts.judge import judge
from hood.phase_paths import phases

ELSEWHERE = """
import os, warnings
import numpy, torch
os.environ["TRITON_INTERPRET"] = "1"
torch.set_default_dtype(torch.float64)
torch.set_default_device("meta")
torch.set_grad_enabled(False)
torch.set_autocast_enabled("cpu", True)
torch.set_float32_matmul_precision("medium")
torch.set_num_threads(2)
numpy.seterr(all="raise")
warnings.simplefilter("error")
torch.inference_mode().__enter__()
"""


@contextlib.contextmanager
def all_as_it_was() -> Iterator[None]:
    before = [(write, read()) for read, write, _ in (*of_torch(), *OF_NUMPY)]
    with warnings.catch_warnings(), variable("TRITON_INTERPRET", None):
        try:
            yield
        finally:
            for write, value in before:
                write(value)


mean = Check("mean", parts={"values": 1}, reads="Somewhere")


@mean.reference
def _(x):
    y = torch.zeros(3) + x @ x.mT
    y.requires_grad_()
    (slope,) = torch.autograd.grad((2 * y).sum(), y)
    warnings.warn("nothing to fear", stacklevel=1)
    return y.detach(), slope, float(np.float32(1e-30) * np.float32(1e-30))


@mean.cases
def _(draw):
    for _ in range(2):
        yield case("values", draw.tensor((3, 2)))


LINES = [line for line in ELSEWHERE.splitlines() if "(" in line or "environ" in line][:-1]


@pytest.mark.parametrize("line", LINES)
def test_a_setting_changes_no_verdict_and_stays_for_its_cell(line: str) -> None:
    with all_as_it_was():
        warnings.simplefilter("ignore")
        verdict = judge(mean, mean.right, "s")
        exec(line, {"os": os, "torch": torch, "numpy": np, "warnings": warnings})
        meant = all_settings()
        assert judge(mean, mean.right, "s") == verdict
        assert verdict.status == "right"
        assert all_settings() == meant


def all_settings() -> list[str]:
    found = [read() for read, _, _ in (*of_torch(), *OF_NUMPY)]
    return [*map(str, found), str(warnings.filters), os.environ.get("TRITON_INTERPRET", "")]


def test_an_answers_settings_hold_only_during_its_own_call() -> None:
    def answer(x: torch.Tensor) -> Any:
        assert torch.zeros(1).dtype is torch.float32, "an earlier call's"
        torch.set_default_dtype(torch.float64)
        made = torch.zeros(3)
        assert made.dtype is torch.float64
        os.environ["TRITON_INTERPRET"] = "1"
        np.seterr(all="ignore")
        return mean.right(x)

    def wide(x: torch.Tensor) -> Any:
        torch.set_default_dtype(torch.float64)
        return mean.right(x)

    assert "wrong dtype" in judge(mean, wide, "s").parts[0].problem
    assert "wrong dtype" in judge(mean, answer, "s").parts[0].problem
    assert torch.get_default_dtype() is torch.float32
    assert "TRITON_INTERPRET" not in os.environ
    assert np.geterr()["under"] == "ignore"
    assert np.geterr()["over"] == "warn"


def test_an_active_inference_mode_is_left_and_entered_again() -> None:
    with torch.inference_mode():
        with usual_settings():
            assert torch.ones(1, requires_grad=True).requires_grad
            assert not torch.is_inference(torch.ones(1))
        assert torch.is_inference(torch.ones(1))


@pytest.mark.slow(20)
@pytest.mark.usefixtures("sandbox")
@pytest.mark.parametrize("number", ["01", "02", "05"])
def test_a_right_answer_keeps_its_points_under_any_settings_above_it(number: str) -> None:
    [lab] = [phase.source for phase in phases() if phase.source.stem.startswith(number)]
    nb = nbformat.read(lab, 4)
    first = next(at for at, cell in enumerate(nb.cells) if cell.cell_type == "code")
    nb.cells.insert(first + 1, new_code_cell(ELSEWHERE))
    nb.metadata.open_the_hood.examples = False
    nb, _ = Execute().preprocess(nb, {})
    lost = {name: v.parts for name, v in read_verdicts(nb).items() if v.earned < v.points}
    assert not lost
