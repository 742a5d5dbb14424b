"""The references of lab 03 compared with their originals, and the parity parts with a record."""

import copy
import json
from random import Random

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from hood.judge.catalogue import find_check
from hood.judge.source.learner_source import LearnerSource
from hood.judge.verdicts.answer_key import answer_key
from hood.judge.verdicts.judge import judge
from utils.instruments import records
from utils.minigpt import MiniGPT, MiniGPTConfig, load_minigpt, load_weights, numpy_forward

pytestmark = pytest.mark.slow(8)


@pytest.fixture(autouse=True)
def _no_gpu(monkeypatch):
    """The cases of a check depend on the machine, so a key for another machine is not used here."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    answer_key.cache_clear()
    yield
    answer_key.cache_clear()


@pytest.fixture
def recorded(tmp_path, monkeypatch):
    """A record of MiniGPT's logits, made on the CPU as if on a GPU."""
    tokens = torch.randint(600, (2, 32), generator=torch.Generator().manual_seed(0))
    arrays = {"tokens": tokens.numpy()}
    with torch.no_grad():
        for dtype in (torch.float32, torch.float16):
            logits = copy.deepcopy(load_minigpt()).to(dtype)(tokens)
            arrays[str(dtype).removeprefix("torch.")] = logits.numpy()
    (tmp_path / "gpu").mkdir()
    np.savez(tmp_path / "gpu" / "logits.npz", **arrays)
    origin = {"dry_run": False, "gpu": {"name": "NVIDIA H200"}, "date": "2026-01-01"}
    document = {
        "section": "minigpt",
        "complete": True,
        "failures": [],
        "provenance": origin,
        "result": {"file": "logits.npz"},
    }
    (tmp_path / "gpu" / "minigpt.json").write_text(json.dumps(document))
    monkeypatch.setattr(records, "RECORDS", tmp_path)


def test_with_a_record_candidates_earn_the_predicted_points(recorded, full, seeds):
    """All candidates at full width; otherwise the right ones, and four wrong ones that the seed
    selects.

    test_checks.py judges all candidates without a GPU.
    """
    check = find_check("minigpt_logits")[1]
    assert check.not_run() == {}
    assert judge(check, check.right, "r").earned == check.points == 5
    wrong = check.misconceptions
    some = wrong if full else Random(seeds[-1]).sample(wrong, 4)
    for candidate in (*check.alternates, *some):
        # a partial answer has only its own functions, and no cell with the others
        code = None if candidate.partial else LearnerSource([candidate.source()])
        verdict = judge(check, candidate.thing, "r", source=code)
        assert verdict.earned == candidate.earns == check.expects(candidate), candidate.name
        held = {part.against for part in verdict.parts if "GPU" in part.name}
        assert held == {"the run recorded on an NVIDIA H200 (2026-01-01)"}


def test_without_a_record_the_gpu_parts_are_not_run(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "RECORDS", tmp_path)
    check = find_check("minigpt_logits")[1]
    verdict = judge(check, check.right, "r")
    assert (verdict.status, verdict.earned) == ("right as far as run", 3)
    assert [part.status for part in verdict.parts][3:] == ["not run", "not run"]
    assert "recorded GPU run" in verdict.parts[3].problem


def test_the_port_is_numpys_and_torchs():
    port = find_check("minigpt_logits")[1].right
    config = MiniGPTConfig(vocab_size=30, d_model=12, n_heads=3, n_layers=2, d_ff=20, context=7)
    torch.manual_seed(0)
    model = MiniGPT(config)
    weights = {name: 3 * p.detach().numpy() for name, p in model.named_parameters()}
    model.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})
    tokens = torch.randint(30, (3, 7))
    for w, c, theirs in (
        (weights, config, model(tokens)),
        (load_weights(), MiniGPTConfig(), load_minigpt()(tokens)),
    ):
        ours = port(w, tokens, c)
        assert torch.allclose(ours, theirs, 1e-5, 1e-5)
        logits = numpy_forward.forward(w, tokens.numpy(), c).logits
        assert torch.allclose(ours, torch.from_numpy(logits), 1e-5, 1e-5)


def test_bytes_are_those_that_a_move_copies():
    bytes_moved = find_check("bytes_moved")[1].right
    copied = []

    class Count(TorchDispatchMode):
        def __torch_dispatch__(self, op, types, args=(), kwargs=None):
            if "_to_copy" in str(op):
                copied.append(args[0].numel() * args[0].element_size())
            return op(*args, **(kwargs or {}))

    model = nn.ModuleDict({"words": nn.Embedding(9, 4), "head": nn.Linear(4, 9)})
    model["head"].weight = model["words"].weight
    mask = torch.ones(5)
    for part in model.values():
        part.register_buffer("mask", mask, persistent=False)
    model["words"].weight.grad = torch.ones(9, 4)
    expected = bytes_moved(model)
    with Count():
        model.to(torch.float64)
    assert sum(copied) == expected
