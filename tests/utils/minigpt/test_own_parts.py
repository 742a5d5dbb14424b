"""MiniGPT from a learner's own layers: the parts that are used or left out, and the picture."""

import importlib
import json

import pytest
import torch
from torch import nn

from tests.utils.views.sheets import check
from utils.minigpt import generate, load_minigpt, own_parts
from utils.minigpt.own_parts import UNWRITTEN, assemble, from_labs

view = importlib.import_module("utils.views.my_minigpt")


class Linear(nn.Module):
    def __init__(self, into, out):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.randn(out, into)), nn.Parameter(torch.ones(out))

    def forward(self, x):
        return x @ self.weight.T + self.bias


class Embedding(nn.Embedding):
    """A layer whose first weights differ from those of torch's layer."""


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        for name in ("query", "key", "value", "output"):
            setattr(self, name, nn.Linear(width, width))

    def forward(self, x, allowed=None):
        parts = (self.query(x), self.key(x), self.value(x))
        q, k, v = (one.unflatten(-1, (self.heads, -1)).transpose(1, 2) for one in parts)
        mask = None if allowed is None else allowed[:, None]
        out = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.output(out.transpose(1, 2).flatten(2))


class SeesAll(Attention):
    def forward(self, x, allowed=None):
        return super().forward(x)


class Unwritten(nn.Module):
    def __init__(self, *sizes):
        raise NotImplementedError("write your answer here")


def softmax(x, y):
    y.copy_(x.softmax(-1))


def half_written(x, y):
    y[:, :300] = x.softmax(-1)[:, :300]


def flash(q, k, v, causal, block):
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if causal:
        future = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        scores = scores.masked_fill(future, -torch.inf)
    lse = scores.logsumexp(-1)
    return (scores - lse[..., None]).exp() @ v, lse


def looks_ahead(q, k, v, causal, block):
    return flash(q, k, v, False, block)


RIGHT = {
    "Linear": Linear,
    "Embedding": Embedding,
    "LayerNorm": nn.LayerNorm,
    "MultiHead": Attention,
    "softmax": softmax,
    "flash": flash,
}


def test_all_parts_speak_as_the_trained_model_does():
    made = assemble(RIGHT)
    assert made.own == set(RIGHT)
    assert made.why_not == {}
    assert made.numbers() == (179_544, 179_544)
    ask = {"verb": "tener", "tense": "imperfect"}
    assert generate("ella", **ask, model=made.model) == generate("ella", **ask)
    layers = [type(one) for one in made.model.modules()]
    assert layers.count(Linear) == 13
    assert nn.Linear not in layers


def test_numbers_are_counted_where_they_lie():
    made = assemble({"Linear": Linear})
    linear = [one for one in load_minigpt().modules() if isinstance(one, nn.Linear)]
    assert made.numbers()[0] == sum(p.numel() for one in linear for p in one.parameters())
    assert assemble({}).numbers() == (0, 179_544)
    # a learner's attention with torch's linear layers: no number is the learner's
    assert assemble({"MultiHead": Attention}).numbers() == (0, 179_544)


def test_tiles_work_in_either_attention():
    for parts in ({"flash": flash}, {"flash": flash, "MultiHead": Attention}):
        calls = []

        def counted(*given, calls=calls):
            calls.append(given[3:])
            return flash(*given)

        made = assemble(parts | {"flash": counted})
        assert made.own == set(parts)
        calls.clear()
        generate("yo", verb="hablar", tense="past", model=made.model)
        assert set(calls) == {(True, own_parts.TILE)}


@pytest.mark.parametrize(
    ("part", "why"),
    [
        ({"Linear": Unwritten}, UNWRITTEN),
        ({"LayerNorm": nn.Identity}, "raises RuntimeError: Error(s) in loading state_dict"),
        ({"Embedding": print}, "raises AttributeError"),
        ({"MultiHead": SeesAll}, "gives other numbers than PyTorch's"),
        ({"softmax": half_written}, "gives other numbers than PyTorch's"),
        ({"flash": looks_ahead}, "gives other numbers than PyTorch's"),
    ],
)
def test_a_part_that_does_not_fit_is_left_out_and_named(part, why):
    made = assemble(part | {"LayerNorm": nn.LayerNorm} if "LayerNorm" not in part else part)
    (name,) = part
    assert name not in made.own
    assert made.why_not[name].startswith(why)
    assert generate("yo", verb="ser", tense="past", model=made.model) == generate(
        "yo", verb="ser", tense="past"
    )


def test_an_unknown_part_and_the_random_state():
    with pytest.raises(ValueError, match="expected parts of Linear, .*, got MLP"):
        assemble({"MLP": nn.Linear})
    before = torch.get_rng_state()
    assemble(RIGHT)
    assert torch.equal(torch.get_rng_state(), before)


def notebook(path, *cells):
    code = [{"cell_type": "code", "source": cell, "metadata": {}} for cell in cells]
    path.write_text(json.dumps({"cells": code}))
    return path


def test_parts_of_saved_labs_are_defined_and_nothing_else_runs(tmp_path, monkeypatch):
    ran = tmp_path / "ran"
    lab = notebook(
        tmp_path / "03.ipynb",
        "import torch\nfrom torch import nn\nimport there_is_none_such",
        "%matplotlib inline",
        f"open({str(ran)!r}, 'w')\nbroken = 1 / 0\nlong = open({str(ran)!r}, 'w')",
        "scale = 1.0\n"
        "class Linear(nn.Linear):\n"
        "    def forward(self, x): return super().forward(x) * scale",
        "class LayerNorm(nn.LayerNorm): pass",
    )
    places = {3: [lab], 5: [tmp_path / "missing.ipynb"]}
    monkeypatch.setattr(own_parts, "labs_of", lambda phase: places.get(phase.number, []))
    found = from_labs(["Linear", "Embedding", "MultiHead", "softmax"])
    assert set(found) == {"Linear"}
    assert not ran.exists()
    assert assemble(found).own == {"Linear"}


def test_a_kernel_of_a_saved_lab_has_its_text(tmp_path, monkeypatch):
    text = "import inspect\ndef triton_softmax(x, y):\n    y.copy_(x.softmax(-1))"
    places = {5: [notebook(tmp_path / "05.ipynb", text)]}
    monkeypatch.setattr(own_parts, "labs_of", lambda phase: places.get(phase.number, []))
    import inspect

    assert "x.softmax" in inspect.getsource(from_labs(["softmax"])["softmax"])


def test_the_picture():
    words = ["“Yo hablé", "All 179,544 of its numbers", "Yours: Embedding, LayerNorm, Linear, Mul"]
    check(*view.draw(assemble(RIGHT), generate("yo", verb="hablar", tense="past")), *words)
    some = assemble({"Linear": Linear, "Embedding": Unwritten, "MultiHead": SeesAll})
    words = ["138,456 of its 179,544", "Your MultiHead gives other numbers than PyTorch's."]
    words += ["Not written yet: Embedding (lab 03), LayerNorm (lab 03), softmax (lab 05)"]
    words += [" and flash (lab 11)."]
    check(*view.draw(some, "yo hablé"), *words)
    check(*view.draw(assemble({}), "yo hablé"), "You have not written any of its parts yet.")


def test_nothing_is_put_together_while_work_is_graded(monkeypatch):
    monkeypatch.setattr(view, "text_only", lambda: True)
    monkeypatch.setattr(view, "assemble", None)
    view.my_minigpt(Linear=Linear)
