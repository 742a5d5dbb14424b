"""A GPU's recorded logits for comparison, and a clear sentence if there are none."""

import copy
import json

import numpy as np
import pytest
import torch

from utils.instruments import parity, records
from utils.instruments.records import NoRecord
from utils.minigpt import load_minigpt


@pytest.fixture
def record(tmp_path, monkeypatch):
    """A record as `python -m benchmarks.gpu` would write it, made on the CPU: (write, tokens)."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(records, "RECORDS", tmp_path)
    tokens = torch.randint(600, (2, 32), generator=torch.Generator().manual_seed(1))
    model, arrays = load_minigpt(), {"tokens": tokens.numpy()}
    with torch.no_grad():
        for dtype, name in ((torch.float32, "float32"), (torch.float16, "float16")):
            arrays[name] = copy.deepcopy(model).to(dtype)(tokens).numpy()

    def write(**changes):
        folder = tmp_path / "some-gpu"
        folder.mkdir(exist_ok=True)
        np.savez(folder / "logits.npz", **arrays)
        origin = {"dry_run": False, "gpu": {"name": "NVIDIA H200"}, "date": "2026-05-04T10:00:00"}
        document = {
            "section": "minigpt",
            "complete": True,
            "failures": [],
            "provenance": origin | changes,
            "result": {"file": "logits.npz"},
        }
        (folder / "minigpt.json").write_text(json.dumps(document))

    return write, tokens


def test_without_a_gpu_and_a_record_it_says_what_to_do(record):
    with pytest.raises(NoRecord, match=r"python -m benchmarks\.gpu"):
        parity.gpu_run()


def test_a_dry_run_is_no_record(record):
    write, _ = record
    write(dry_run=True)
    with pytest.raises(NoRecord, match="dry run"):
        parity.gpu_run()


def test_the_cpu_is_compared_with_a_record(record):
    write, tokens = record
    write()
    run = parity.gpu_run()
    assert (run.device, run.words) == ("cpu", "the run recorded on an NVIDIA H200 (2026-05-04)")
    assert np.array_equal(run.tokens, tokens.numpy())
    assert all(array.dtype == np.float32 for array in run.logits.values())
    with torch.no_grad():
        right = load_minigpt()(tokens)
        model = load_minigpt()
        for block in model.blocks:
            block.norm_1.eps = 1e-3
        wrong = model(tokens)
    for dtype in parity.TOLERANCES:
        assert run.agrees(right, dtype)
    assert not run.agrees(wrong, torch.float32)
    assert not run.agrees(right[:1], torch.float32)
    assert not run.agrees(wrong + 0.5, torch.float16)


def test_differences_are_relative_to_the_largest_logit():
    want = torch.tensor([100.0, 0.0])
    assert parity.agree(want + 9e-4, want, torch.float32)
    assert not parity.agree(want + 2e-3, want, torch.float32)
    assert parity.agree(want + 0.9, want, torch.float16)
    assert not parity.agree(torch.tensor([100.0, float("nan")]), want, torch.float16)


@pytest.mark.parametrize("folder", sorted(path.name for path in records.RECORDS.iterdir()))
def test_every_recorded_gpu_agrees_with_this_cpu(folder):
    record = records.load(folder)
    recorded = record.logits()
    tokens = torch.from_numpy(recorded["tokens"])
    for dtype in parity.TOLERANCES:
        with torch.inference_mode():
            logits = load_minigpt().to(dtype)(tokens).float()
        want = torch.from_numpy(recorded[str(dtype).removeprefix("torch.")]).float()
        assert parity.agree(logits, want, dtype)
