"""`verify` as the hidden line in a learner's notebook calls it."""

import pytest
import torch
from IPython.core.formatters import DisplayFormatter
from nbformat.v4 import new_output
from nbgrader.utils import get_partial_grade

from hood.judge import history
from hood.judge.verify import SEED_VARIABLE, verify


def bytes_of(t: torch.Tensor) -> tuple[int, int]:
    return t.numel() * t.element_size(), t.untyped_storage().nbytes()


def test_points_come_back_as_a_float_and_a_report_is_printed(capsys):
    earned = verify("bytes_of", bytes_of)
    assert isinstance(earned, float)
    assert earned == 2.0
    assert "bytes_of: 2 of 2 points" in capsys.readouterr().out


def test_a_page_shows_nothing_of_the_number_that_nbgrader_reads():
    earned = verify("bytes_of", bytes_of)
    data, _ = DisplayFormatter().format(earned)
    assert data == {"text/plain": "2.0", "text/html": ""}
    output = new_output("execute_result", data=data, execution_count=1)
    assert get_partial_grade(output, 3.0) == 2.0


def test_the_seed_comes_from_the_environment(monkeypatch):
    drawn = []

    def remember(t):
        drawn.append(t.shape)
        return bytes_of(t)

    shapes = []
    for seed in ("aa", "aa", "bb"):
        monkeypatch.setenv(SEED_VARIABLE, seed)
        verify("bytes_of", remember)
        shapes.append(tuple(drawn))
        drawn.clear()
    assert shapes[0] == shapes[1] != shapes[2]


def test_without_a_seed_every_run_draws_new_cases(monkeypatch):
    monkeypatch.delenv(SEED_VARIABLE, raising=False)
    drawn = []
    for _ in range(2):
        verify("bytes_of", lambda t: drawn.append(t.shape))
    half = len(drawn) // 2
    assert drawn[:half] != drawn[half:]


def test_several_functions_are_given_by_name(capsys):
    def linear_cost(batch, d_in, d_out, itemsize):
        elements = batch * d_in + d_out * d_in + d_out + batch * d_out
        return {"flops": 2 * batch * d_in * d_out, "bytes": elements * itemsize}

    def minigpt_flops(config, batch, length):
        raise NotImplementedError

    earned = verify("model_costs", linear_cost=linear_cost, minigpt_flops=minigpt_flops)
    assert earned == 3.0
    assert "raised NotImplementedError" in capsys.readouterr().out


def test_rules_see_the_code_of_a_function(capsys, monkeypatch):
    cell = "def row_major_strides(shape):\n    return torch.rand(shape).stride()\n"
    monkeypatch.setattr(history, "_cells", {"a": history.Ran(cell)})
    assert verify("row_major_strides", lambda shape: torch.rand(shape).stride()) == 0.0
    assert "uses `stride`" in capsys.readouterr().out


@pytest.mark.parametrize("thing", [None, 3, "text", print, torch.nn.Linear, [bytes_of]])
def test_every_submission_is_judged(thing):
    assert verify("bytes_of", thing) == 0.0


def test_an_unknown_check_is_named():
    with pytest.raises(LookupError, match="no check is named 'nothing'"):
        verify("nothing", bytes_of)
