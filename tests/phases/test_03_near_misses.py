"""Verdicts on wrong answers to lab 03 that look like a listed one, or nearly right."""

import pytest
import torch
from torch import nn

from hood.judge.catalogue import find_check
from hood.judge.checks.answers import edited
from hood.judge.verdicts.answer_key import answer_key
from hood.judge.verdicts.judge import judge
from utils.instruments import records


@pytest.fixture(autouse=True, scope="module")
def _no_gpu_and_no_record(tmp_path_factory):
    """The cases of a check depend on the machine, so a key for another machine is not used here."""
    answer_key.cache_clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.cuda, "is_available", lambda: False)
        patch.setattr(records, "RECORDS", tmp_path_factory.mktemp("no records"))
        yield
    answer_key.cache_clear()


PORT = find_check("minigpt_logits")[1]
ELSEWHERE = {
    "one weight transposed": (
        "return linear(f'{name}.output', mixed)",
        "return mixed @ w[f'{name}.output.weight'] + w[f'{name}.output.bias']",
    ),
    "louder words": (
        "w['token_embedding.weight'][tokens]",
        "8 * w['token_embedding.weight'][tokens]",
    ),
    "the last position's row for all": ("[:length]", "[length - 1:length]"),
    "an eps of its own": ("eps=1e-05", "eps=0.3"),
    "no bias at the head": ("linear('lm_head',", "0.5 * linear('lm_head',"),
}


@pytest.mark.slow(1)
@pytest.mark.parametrize("edit", ELSEWHERE.values(), ids=ELSEWHERE)
def test_a_port_with_an_unlisted_mistake_gets_no_name(edit):
    verdict = judge(PORT, edited(PORT.right, edit), "s")
    assert (verdict.earned, verdict.misconceptions) == (0, [])
    assert "further from the float32 answer" in verdict.parts[2].problem


def test_a_port_with_two_mistakes_is_named_after_neither():
    """If one of two mistakes is small, the other mistake explains the difference only in part."""
    two = edited(PORT.right, ("approximate='tanh'", "approximate='none'"),
                 ("scores.masked_fill(future, -math.inf)", "scores"))  # fmt: skip
    assert judge(PORT, two, "s").misconceptions == []


def test_a_narrow_range_is_not_mistaken_for_another_one():
    check = find_check("MLP")[1]
    draw = "nn.init.kaiming_normal_(layer.weight, nonlinearity='relu')"
    half = edited(check.right, (draw, f"{draw}.data.mul_(0.5)"))
    verdict = judge(check, half, "s")
    assert (verdict.earned, verdict.misconceptions) == (3, [])
    assert "the deviation of the fresh `hidden.weight` is not √(2/n)." in verdict.parts[0].problem


def test_weights_of_one_sign_are_not_mistaken_for_uniform_ones():
    check = find_check("MLP")[1]
    draw = "nn.init.kaiming_normal_(layer.weight, nonlinearity='relu')"
    one_sign = edited(check.right, (draw, f"{draw}.data.abs_()"))
    verdict = judge(check, one_sign, "s")
    assert (verdict.earned, verdict.misconceptions) == (3, [])
    assert "the mean of the fresh `hidden.weight` is not 0." in verdict.parts[0].problem


def test_columns_are_not_rows():
    check = find_check("Dropout")[1]
    code = ("torch.rand_like(x.float()) >=", "torch.rand(x.shape[1]) >=")
    verdict = judge(check, edited(check.right, code), "s")
    # the other losses depend on which elements are dropped
    assert (verdict.parts[0].earned, verdict.misconceptions) == (0, [])
    assert verdict.parts[0].problem == "whole columns are dropped or kept together."


def test_a_dropout_that_asks_a_child_for_the_mode_is_right():
    class Inner(nn.Module):
        def forward(self, x, p):
            return x * (torch.rand(x.shape) >= p) / (1 - p) if self.training and p < 1 else x

    class Outer(nn.Module):
        def __init__(self, p=0.5):
            super().__init__()
            if not 0 <= p <= 1:
                raise ValueError(p)
            self.p, self.inner = p, Inner()

        def forward(self, x):
            return x * 0 if self.training and self.p == 1 else self.inner(x, self.p)

    assert judge(find_check("Dropout")[1], Outer, "s").status == "right"


@pytest.mark.parametrize(
    ("name", "edit", "words"),
    [
        ("Stack", ("torch.ones(width)", "torch.tensor(1.0)"), "the gain: wrong shape: expected"),
        ("run_module", ("yield from self._parameters.items()",
                        "yield from reversed(self._parameters.items())"),
         "`named_parameters()` gives wrong names, or a wrong order."),
        ("bytes_moved", ("moved, seen = (0, set())", "moved, seen = (1, set())"),
         "a few layers: the number of bytes is wrong."),
    ],
)  # fmt: skip
def test_paths_of_a_play_are_in_words(name, edit, words):
    check = find_check(name)[1]
    assert judge(check, edited(check.right, edit), "s").parts[0].problem.startswith(words)


def test_a_mismatched_state_is_described_by_its_names():
    check = find_check("Linear")[1]
    renamed = edited(check.right, ("self.weight = ", "self.w = "), ("self.weight.T", "self.w.T"))
    assert 'Missing key(s) in state_dict: "w"' in judge(check, renamed, "s").parts[1].problem


def test_a_single_number_of_a_fresh_layer_may_lie_near_0():
    """By chance, one number in a thousand lies near 0."""
    check = find_check("Stack")[1]
    register = "self.gain = nn.Parameter(torch.ones(width))"
    begin = "for p in self.layers.parameters() if width == 1"
    small = f"{register}\n        [nn.init.constant_(p, 5e-4) {begin}]"
    assert judge(check, edited(check.right, (register, small)), "s").status == "right"
    none = small.replace("5e-4", "0.0")
    assert judge(check, edited(check.right, (register, none)), "s").status != "right"
