"""A sweep's results become rules that can be pasted and that choose the same launches."""

import json

import pytest

from benchmarks.gpu import main
from benchmarks.tune import TUNED, Best, candidates, rules, rules_source
from utils.softmax import launch
from utils.softmax.launch import ANY, Launch, Rule

FOUND = [
    Best(4096, 600, Launch(False, 1024, 1), 1.0),
    Best(64, 600, Launch(False, 1024, 4), 1.0),
    Best(512, 600, Launch(False, 1024, 4), 1.0),
    Best(8192, 4096, Launch(False, 4096, 8), 1.0),
    Best(1024, 131072, Launch(True, 32768, 32), 1.0),
]


def test_neighbours_with_the_same_launch_share_a_rule():
    assert rules(FOUND) == [
        Rule(512, 1024, Launch(False, 1024, 4)),
        Rule(ANY, 1024, Launch(False, 1024, 1)),
        Rule(ANY, 4096, Launch(False, 4096, 8)),
        Rule(ANY, ANY, Launch(True, 32768, 32)),
    ]


def test_pasted_rules_choose_the_fastest_launches(monkeypatch):
    text = rules_source("forward", 4, rules(FOUND))
    table = eval("{" + text + "}", vars(launch))
    monkeypatch.setattr(launch, "TABLE", table)
    for best in FOUND:
        assert launch.choose("forward", 4, best.rows, best.columns) == best.launch


def test_a_sweep_tries_launches_that_can_hold_a_row():
    for shape in TUNED:
        tried = list(candidates(shape))
        assert 4 <= len(tried) <= 20
        assert len(set(tried)) == len(tried)
        for candidate in tried:
            assert candidate.loop or candidate.tile >= shape[1]


@pytest.mark.full
@pytest.mark.slow(35)
def test_a_dry_sweep_writes_its_times_and_rules(tmp_path):
    assert main(["--dry-run", "--tune", "--out", str(tmp_path)]) == 0
    found = json.loads((tmp_path / "dry-run" / "tune.json").read_text())["result"]
    assert {"seconds", "loop", "tile", "warps"} <= set(found["measured"][0])
    table = eval("{" + found["rules"] + "}", vars(launch))
    assert set(table) == {(way, size) for way in ("forward", "backward") for size in (2, 4)}
    assert all(found[-1].launch.loop for found in table.values())
