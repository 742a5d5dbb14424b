"""The whole command on a CPU: its records, its refusals, and its files after a failure."""

import json
import re

import pytest
import torch

from benchmarks import gpu, sections
from benchmarks.context import NotRun
from benchmarks.provenance import provenance, slug, source_hash
from utils.instruments.records import RECORDS, load
from utils.instruments.traces import of_chrome_trace

pytestmark = pytest.mark.slow(15)


def test_a_dry_run_is_marked_and_names_its_origin(dry_run):
    origin = dry_run.provenance
    assert dry_run.dry_run
    assert origin["gpu"] is None
    assert origin["torch"] == torch.__version__
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", origin["date"])
    assert origin["command"].startswith("python -m benchmarks.gpu --dry-run")
    assert re.fullmatch(r"[0-9a-f]{64}", origin["sources"])
    assert dry_run.folder.name == "dry-run"


def test_the_softmax_is_checked_and_then_timed_against_three_others(dry_run):
    cases = dry_run.result("softmax")["cases"]
    assert len(cases) == 2 * 3 * 2  # shapes, dtypes, directions
    for case in cases:
        assert set(case["timings"]) == {"triton", "torch", "compiled", "copy"}
        assert 0 < case["errors"]["triton"] <= 1
        for timing in case["timings"].values():
            assert 0 < timing["low"] <= timing["seconds"] <= timing["high"]


def test_kernels_in_tiles_give_pytorchs_results_and_are_timed(dry_run):
    cases = dry_run.result("tiles")["cases"]
    assert {(case["work"], case["way"] == "torch") for case in cases} == {
        (work, torchs) for work in ("product", "attention") for torchs in (True, False)
    }
    for case in cases:
        assert case["seconds"] > 0
        assert case["relative norm of the difference"] < 1e-5


@pytest.mark.usefixtures("compiler")
def test_inductors_code_is_kept_without_this_machines_paths(dry_run):
    graphs = dry_run.result("inductor")
    assert set(graphs) == {
        f"{name} {way}" for name in ("torch", "operator") for way in ("forward", "backward")
    }
    for entry in graphs.values():
        text = dry_run.text(entry["file"])
        assert "def call(" in text or "class Runner" in text
        assert str(RECORDS.parents[1]) not in text
    assert "open_the_hood.softmax" in dry_run.text(graphs["operator forward"]["file"])


def test_minigpt_is_recorded_or_the_missing_package_is_named(dry_run):
    document = json.loads((dry_run.folder / "minigpt.json").read_text())
    if not document["complete"]:
        assert "load_minigpt" in document["not_run"]
        pytest.skip(document["not_run"])
    logits = dry_run.logits()
    assert logits["tokens"].shape == (2, 32)
    assert logits["float32"].shape == (2, 32, 600)
    far = document["result"]["distance from the CPU"]
    assert far["float32"]["largest"] == 0.0  # the same machine, twice
    assert 0 < far["float16"]["relative norm"] < far["bfloat16"]["relative norm"] < 0.1
    trace = dry_run.result("trace")
    for step in (trace, trace["large layers"]):
        events = of_chrome_trace(dry_run.folder / step["file"])
        assert "step" in {event.name for event in events}


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_without_a_gpu_nothing_is_measured(capsys):
    assert gpu.main([]) == 2
    assert "no GPU is seen here" in capsys.readouterr().err


def test_a_dry_run_never_writes_into_the_records():
    with pytest.raises(SystemExit, match="a dry run makes no record"):
        gpu.main(["--dry-run", "--out", str(RECORDS / "somewhere")])


def test_a_failed_section_sets_the_exit_status_and_the_others_still_run(monkeypatch, tmp_path):
    def broken(context):
        raise ValueError("no good")

    monkeypatch.setitem(gpu.SECTIONS, "trace", broken)
    monkeypatch.setitem(gpu.SECTIONS, "clocks", lambda context: {"a": 1})
    command = ["--dry-run", "--out", str(tmp_path), "--only", "trace", "clocks"]
    assert gpu.main(command) == 1
    assert load(root=tmp_path).result("clocks") == {"a": 1}
    document = json.loads((tmp_path / "dry-run" / "trace.json").read_text())
    assert (document["complete"], document["failures"]) == (False, ["ValueError: no good"])


def test_each_check_passes_fails_or_is_not_run_and_the_others_still_run(monkeypatch, tmp_path):
    def check_good(device):
        return "fine"

    def check_bad(device):
        raise AssertionError("off by one")

    def check_absent(device):
        raise NotRun("needs more memory")

    monkeypatch.setattr(sections, "CHECKS", (check_bad, check_absent, check_good))
    command = ["--dry-run", "--out", str(tmp_path), "--only", "checks"]
    assert gpu.main(command) == 1
    document = json.loads((tmp_path / "dry-run" / "checks.json").read_text())
    outcomes = {name: entry["outcome"] for name, entry in document["result"].items()}
    assert outcomes == {"bad": "failed", "absent": "not run", "good": "passed"}
    assert document["failures"] == ["bad: AssertionError: off by one"]


def test_a_slug_is_a_folders_name():
    assert slug("NVIDIA H200") == "nvidia-h200"
    assert slug("NVIDIA GeForce RTX 4090") == "nvidia-geforce-rtx-4090"


def test_the_commit_can_be_given_without_git():
    origin = provenance("x", dry_run=True, commit="abc")
    assert (origin["commit"], origin["uncommitted changes"]) == ("abc", None)
    assert origin["sources"] == source_hash()
