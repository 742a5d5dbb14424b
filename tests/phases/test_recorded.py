"""Sentences of lessons about a record are true. A new record shows which to rewrite."""

from __future__ import annotations

import pytest

from hood.phase_paths import ROOT
from utils.instruments import records
from utils.softmax.launch import Launch, choose

RECORD = records.load("nvidia-h100-80gb-hbm3")
BANDWIDTH = 3.35e12  # B/s, by the data sheet


def us(rows, columns, dtype, direction="forward"):
    """Microseconds of each contender for a softmax of such a shape."""
    asked = {"rows": rows, "columns": columns, "dtype": dtype, "direction": direction}
    (case,) = (one for one in RECORD.result("softmax")["cases"] if asked.items() <= one.items())
    return {name: timing["seconds"] * 1e6 for name, timing in case["timings"].items()}


def tuned():
    """(direction, bytes an element, rows, columns) -> the seconds of each launch."""
    found = {}
    for one in RECORD.result("tune")["measured"]:
        shape = one["direction"], one["itemsize"], one["rows"], one["columns"]
        launch = Launch(one["loop"], one["tile"], one["warps"])
        found.setdefault(shape, {})[launch] = one["seconds"]
    return found


def lost(times, launch):
    return times[launch] / min(times.values())


def attention(way):
    return {one["length"]: one for one in RECORD.result("attention")["cases"] if one["way"] == way}


TUNED = tuned()
WIDE = "forward", 2, 4096, 32768
KEPT, LOOP = Launch(False, 32768, 32), Launch(True, 16384, 32)
REASONED = [
    lost(times, KEPT if shape == WIDE else choose(*shape)) for shape, times in TUNED.items()
]
FULL, HALF = us(65536, 600, "float32"), us(65536, 600, "bfloat16")
BACK = [us(65536, 600, dtype, "backward") for dtype in ("float32", "bfloat16")]
REACHED = RECORD.result("products")["FLOP/s"]
TABLE, FUSED = attention("table"), attention("flash")
WAYS = RECORD.result("precision")["ways"]
PAIRED = [
    us(65536, 600, dtype, direction)
    for dtype in ("float32", "float16")
    for direction in ("forward", "backward")
]
LONG = [us(rows, columns, "float16") for rows, columns in ((8192, 4096), (4096, 32768))]

SAYS = {
    ("01_tensors", "fp8 comes to 1.6 times bfloat16"): (
        REACHED["float8_e4m3fn"] / REACHED["bfloat16"] == pytest.approx(1.6, abs=0.05)
    ),
    ("01_tensors", "float64 is *faster* than float32"): REACHED["float64"] > REACHED["float32"],
    ("01_tensors", "seven times as fast"): 7 < REACHED["float32 as tf32"] / REACHED["float32"] < 8,
    ("05_custom_op", "Not one failed. A drill"): all(
        check["outcome"] == "passed" for check in RECORD.result("checks").values()
    ),
    ("05_custom_op", "On 40 kinds of tensor"): len(TUNED) == 40,
    ("05_custom_op", "441 in all"): sum(map(len, TUNED.values())) == 441,
    ("05_custom_op", "37 of 40"): sum(share <= 1.03 for share in REASONED) == 37,
    ("05_custom_op", "up to a factor of 2.4"): (
        max(lost(times, max(times, key=times.get)) for times in TUNED.values())
        == pytest.approx(2.4, abs=0.05)
    ),
    ("05_custom_op", "5 % faster than the kernel that keeps the row"): (
        TUNED[WIDE][KEPT] / TUNED[WIDE][LOOP] == pytest.approx(1.05, abs=0.01)
    ),
    ("05_custom_op", "a softmax takes as long as a copy"): max(FULL.values()) < 1.03 * FULL["copy"],
    ("05_custom_op", "one and a half times as long as a copy"): (
        HALF["torch"] / HALF["copy"] == pytest.approx(1.5, abs=0.05)
    ),
    ("05_custom_op", "In both backwards PyTorch takes twice as long as a copy"): all(
        1.9 < times["torch"] / times["copy"] < 2.3 for times in BACK
    ),
    ("05_custom_op", "faster than the memory could be"): all(
        us(1024, 131072, dtype)["triton"] < 3 * 1024 * 131072 * size / BANDWIDTH * 1e6
        for dtype, size in (("float32", 4), ("bfloat16", 2))
    ),
    ("06_compile", "the two times are equal within 4 %"): all(
        abs(times["compiled"] / times["triton"] - 1) < 0.045 for times in PAIRED
    ),
    ("06_compile", "about one and a half times as long"): all(
        1.4 < times["compiled"] / times["triton"] < 1.7 for times in LONG
    ),
    ("07_training", "the peak is only 4 to 6 % smaller"): all(
        0.035 < 1 - WAYS[name]["peak"] / WAYS["float32"]["peak"] < 0.065
        for name in ("bfloat16", "float16 with a scaler")
    ),
    ("08_transformer", "Together that is 40 GB"): (
        TABLE[16384]["bytes"] == pytest.approx(40e9, rel=0.01)
    ),
    ("08_transformer", "a forty-seventh of the table's time"): (
        TABLE[16384]["seconds"] / FUSED[16384]["seconds"] == pytest.approx(47, abs=0.5)
    ),
    ("08_transformer", "34,603,008 bytes"): FUSED[16384]["bytes"] == 34_603_008 + 1024,
    ("11_tiles", "More than three quarters of the roof"): 0.75 < REACHED["bfloat16"] / 989e12 < 0.9,
    ("11_tiles", "tf32 has half the speed of bfloat16"): (
        REACHED["float32 as tf32"] / REACHED["bfloat16"] == pytest.approx(0.5, abs=0.05)
    ),
}


@pytest.mark.parametrize(("said", "holds"), SAYS.items(), ids=[words for _, words in SAYS])
def test_sentences_about_a_record_are_true(said, holds):
    phase, words = said
    assert words in (ROOT / "phases" / phase / "lesson.py").read_text(encoding="utf-8")
    assert holds
