"""What lessons say in words about a record is still so: whoever replaces the record sees what to
write anew."""

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
    ("05_custom_op", "None. So was that drill"): all(
        check["outcome"] == "passed" for check in RECORD.result("checks").values()
    ),
    ("05_custom_op", "On 40 kinds of tensor"): len(TUNED) == 40,
    ("05_custom_op", "441 in all"): sum(map(len, TUNED.values())) == 441,
    ("05_custom_op", "37 of 40"): sum(share <= 1.03 for share in REASONED) == 37,
    ("05_custom_op", "up to a factor of 2.4"): (
        max(lost(times, max(times, key=times.get)) for times in TUNED.values())
        == pytest.approx(2.4, abs=0.05)
    ),
    ("05_custom_op", "beats the kernel that keeps it by 5 %"): (
        TUNED[WIDE][KEPT] / TUNED[WIDE][LOOP] == pytest.approx(1.05, abs=0.01)
    ),
    ("05_custom_op", "a softmax costs what a copy costs"): max(FULL.values()) < 1.03 * FULL["copy"],
    ("05_custom_op", "one and a half times as long as a copy"): (
        HALF["torch"] / HALF["copy"] == pytest.approx(1.5, abs=0.05)
    ),
    ("05_custom_op", "in both backwards twice as long"): all(
        1.9 < times["torch"] / times["copy"] < 2.3 for times in BACK
    ),
    ("05_custom_op", "Faster than the memory could be"): all(
        us(1024, 131072, dtype)["triton"] < 3 * 1024 * 131072 * size / BANDWIDTH * 1e6
        for dtype, size in (("float32", 4), ("bfloat16", 2))
    ),
    ("06_compile", "they are alike, to 4 %"): all(
        abs(times["compiled"] / times["triton"] - 1) < 0.045 for times in PAIRED
    ),
    ("06_compile", "about one and a half times as long"): all(
        1.4 < times["compiled"] / times["triton"] < 1.7 for times in LONG
    ),
    ("08_transformer", "comes to 40 GB"): TABLE[16384]["bytes"] == pytest.approx(40e9, rel=0.01),
    ("08_transformer", "a forty-seventh of the other"): (
        TABLE[16384]["seconds"] / FUSED[16384]["seconds"] == pytest.approx(47, abs=0.5)
    ),
    ("08_transformer", "34,603,008 bytes"): FUSED[16384]["bytes"] == 34_603_008 + 1024,
}


@pytest.mark.parametrize(("said", "holds"), SAYS.items(), ids=[words for _, words in SAYS])
def test_what_is_said_of_a_record_is_so(said, holds):
    phase, words = said
    assert words in (ROOT / "phases" / phase / "lesson.py").read_text(encoding="utf-8")
    assert holds
