"""Readers say which records exist, and how to make missing ones."""

import json

import pytest

from utils.instruments.records import NoRecord, how_to_make, load


def write(root, gpu, date, **document):
    folder = root / gpu
    folder.mkdir(parents=True, exist_ok=True)
    origin = {"dry_run": False, "gpu": {"name": gpu.upper()}, "date": date}
    whole = {"section": "trace", "complete": True, "failures": [], "provenance": origin}
    (folder / "trace.json").write_text(json.dumps(whole | {"result": {}} | document))


def test_a_missing_record_is_reported_in_one_sentence(tmp_path):
    sentence = "no record yet: run `python -m benchmarks.gpu` on a machine with a GPU"
    for root in (tmp_path, tmp_path / "absent"):
        with pytest.raises(NoRecord) as error:
            load(root=root)
        assert str(error.value) == sentence


def test_only_commands_in_a_learners_archive_are_named(tmp_path):
    assert "python" not in how_to_make(tmp_path / "benchmarks")


def test_the_newest_record_is_used_unless_one_is_named(tmp_path):
    write(tmp_path, "nvidia-h200", "2026-02-01")
    write(tmp_path, "nvidia-a100", "2026-01-01")
    assert load(root=tmp_path).gpu == "NVIDIA-H200"
    assert load("nvidia-a100", root=tmp_path).gpu == "NVIDIA-A100"
    with pytest.raises(NoRecord, match="no record of nvidia-l4 yet, only of nvidia-a100, nvidia-"):
        load("nvidia-l4", root=tmp_path)


@pytest.mark.parametrize(
    ("document", "says"),
    [
        ({"section": "softmax"}, r"no record of trace for NVIDIA-L4 yet: run `python -m"),
        ({"complete": False}, r"no record of trace for NVIDIA-L4 yet: run"),
        ({"complete": False, "not_run": "no model"}, r"yet \(no model\): run"),
        ({"complete": False, "failures": ["a", "b"]}, r"yet \(a; b\): run"),
    ],
)
def test_an_incomplete_section_is_no_record(tmp_path, document, says):
    write(tmp_path, "nvidia-l4", "2026-01-01", **document)
    with pytest.raises(NoRecord, match=says):
        load(root=tmp_path).result("trace")


def test_a_missing_text_is_named_with_the_existing_ones(tmp_path):
    write(tmp_path, "nvidia-l4", "2026-01-01")
    (tmp_path / "nvidia-l4" / "softmax.ptx").write_text("text")
    record = load(root=tmp_path)
    assert record.text("softmax.ptx") == "text"
    with pytest.raises(NoRecord, match=r"no x\.ptx in the record of NVIDIA-L4, .* softmax\.ptx"):
        record.text("x.ptx")
