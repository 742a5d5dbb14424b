"""The whole benchmark, with the fewest submissions that give a figure."""

import json
import shutil

import pytest

from benchmarks.grading.__main__ import main, parser
from benchmarks.grading.runs import Run

pytestmark = [
    pytest.mark.full,  # this only proves that the benchmark runs
    pytest.mark.slow(60),
    pytest.mark.skipif(shutil.which("bwrap") is None, reason="not run: bubblewrap is missing"),
]


def test_a_quick_run_measures_everything(tmp_path, capsys):
    path = tmp_path / "figures.json"
    assert main(["--quick", "--lab", "00_hello", "--json", str(path)]) == 0
    figures = json.loads(path.read_text())
    [lab] = figures["labs"]
    runs = {name: [Run(**run) for run in found] for name, found in lab["runs"].items()}
    plain, batch = (
        found[1].beyond(found[0])
        for found in (runs["plain nbgrader"], runs["hood grade, 1 worker"])
    )
    assert plain.count > 0
    assert batch.count > 0
    assert lab["cells"]["cpu"] > 0
    assert lab["cells with pictures"]["cpu"] > 0
    assert 1e6 < lab["bytes of a further kernel"] < 1e8
    [large] = figures["classes"]
    assert large["size"] == 400
    assert 0 < large["record"] < large["whole"]
    said = capsys.readouterr().out
    assert "throughput relative to plain nbgrader" in said
    assert "ms to record one" in said


@pytest.mark.parametrize("count", ["0", "1", "many"])
def test_a_class_of_one_is_refused(count):
    with pytest.raises(SystemExit):
        parser().parse_args(["--count", count])
