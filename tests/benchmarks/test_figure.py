"""The pictures of a record say in words what they show, and never take a dry run for one."""

import copy

import pytest

from benchmarks.figure import draw_bandwidth, show_bandwidth, show_roofline
from utils.records import Record

pytestmark = pytest.mark.slow(15)  # the dry run


def test_a_dry_run_is_named_as_one_in_title_and_alternative_text(dry_run):
    figure, alt = draw_bandwidth(dry_run, "forward", "float32")
    assert figure.axes[0].get_title(loc="left").startswith("A dry run on a CPU, not a measurement")
    assert alt.startswith("A dry run on a CPU, not a measurement")
    assert "4 × 60: our Triton kernel" in alt


def measured(dry_run) -> Record:
    """A record with round numbers, for the arithmetic: 1 GB/s is a copy's speed."""
    record = copy.deepcopy(dry_run)
    result = record.result("softmax")
    result["peak copy"]["bytes per second"] = 1e9
    for case in result["cases"]:
        for name, factor in {"triton": 2.0, "torch": 4.0, "compiled": 3.0}.items():
            case["timings"][name]["seconds"] = factor * case["bytes"] / 1e9
    for section in record.sections.values():
        section["provenance"] |= {
            "dry_run": False,
            "gpu": {"name": "NVIDIA H200", "peak float32 FLOP/s": 6e13},
        }
    return record


def test_shares_and_ratios_are_right(dry_run):
    figure, alt = draw_bandwidth(measured(dry_run), "backward", "bfloat16")
    title = "Softmax backward, bfloat16: 50% of a copy's speed on the largest shape"
    assert figure.axes[0].get_title(loc="left") == title
    assert "NVIDIA H200" in alt
    assert (
        "2 × 5000: our Triton kernel 50%, torch.softmax 25%, torch.compile 33%; ours 1.50 times "
        "the better one."
    ) in alt


def test_both_are_shown_with_alternative_text(dry_run, capsys):
    record = measured(dry_run)
    show_bandwidth(record)
    show_roofline(record)
    said = capsys.readouterr().out
    assert "[figure] Softmax forward, float32" in said
    assert "Roofline. Softmax forward, NVIDIA H200: memory is the bound" in said
    assert "4 × 60, bfloat16: 1.25 FLOP per byte" in said


pytestmark = pytest.mark.slow(15)  # the dry run


def test_a_dry_run_is_named_as_one_in_the_roofline(dry_run, capsys):
    show_roofline(dry_run)
    assert "dry run on a CPU, not a measurement" in capsys.readouterr().out


def test_a_dtype_that_was_not_timed_is_refused(dry_run):
    with pytest.raises(ValueError, match="no timings of 'forward' in 'float64'"):
        draw_bandwidth(dry_run, "forward", "float64")
