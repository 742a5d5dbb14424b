"""The drivers that export: what they say of refusals, ranges, and sizes that are too large."""

import pytest
import torch
from torch.export import Dim, export

from utils.drivers import exporting as driver

X, TABLE, LONG = torch.ones(3, 2), torch.ones(5, 2), torch.ones(6, 2)
TOKENS = torch.zeros(2, 3, dtype=torch.long)
SIZES = 7, 4, 1, 1, 4, 6  # a MiniGPT with a context of 6


def indexed(x, table):
    return x + table[torch.arange(x.shape[0])]


def branching(x):
    return x if x.sum() > 0 else -x


def counting(x):
    return x * len(x)


@pytest.mark.parametrize(("function", "why"), [(branching, "branch"), (counting, "constant")])
def test_a_refusal_is_one_sentence_and_nothing_is_printed(function, why, capsys):
    came = driver.exported(function, [X], [X])
    assert driver.refusal(came.pop("complaint")) == why
    assert came == {"values": [], "longest": None}
    assert capsys.readouterr() == ("", "")


def test_a_program_has_the_range_of_its_first_argument():
    came = driver.exported(indexed, [X, TABLE])
    assert came == {"values": [], "complaint": None, "longest": None}
    came = driver.exported(lambda x, table: x + table[: x.shape[0]], [X, TABLE], [LONG, TABLE])
    assert came == {"values": [None], "complaint": None, "longest": 5}


def test_an_error_within_the_program_is_raised():
    with pytest.raises(IndexError):
        driver.exported(indexed, [X, TABLE], [LONG, TABLE])


def test_a_program_takes_an_argument_by_its_name_if_the_example_did():
    def by_name(model):
        sizes = {"tokens": {0: Dim("B"), 1: Dim("T", max=6)}}
        return export(model, (), {"tokens": TOKENS}, dynamic_shapes=sizes)

    came = driver.exported_minigpt(by_name, [torch.zeros(4, 6, dtype=torch.long)], SIZES)
    assert [tuple(logits.shape) for logits in came["values"]] == [(4, 6, 7)]


def test_what_export_minigpt_may_not_do():
    with pytest.raises(TypeError, match="expected an `ExportedProgram`"):
        driver.exported_minigpt(lambda model: model, [TOKENS], SIZES)
    too_long = Dim("T", max=7)
    came = driver.exported_minigpt(
        lambda model: export(model, (TOKENS,), dynamic_shapes=({1: too_long},)), [TOKENS], SIZES
    )
    assert driver.refusal(came["complaint"]) == "range"
    one, dynamic = TOKENS[:1], {0: Dim.DYNAMIC}
    came = driver.exported_minigpt(
        lambda model: export(model, (one,), dynamic_shapes=(dynamic,)), [TOKENS], SIZES
    )
    assert driver.refusal(came["complaint"]) == "constant"
    with pytest.raises(ValueError, match="at most 6 tokens"):
        driver.exported_minigpt(lambda model: model(torch.zeros(1, 7).long()), [TOKENS], SIZES)
    with pytest.raises(torch._dynamo.exc.UserError, match="top-level keys"):
        driver.exported_minigpt(
            lambda model: export(model, (TOKENS,), dynamic_shapes={"x": None}), [TOKENS], SIZES
        )
