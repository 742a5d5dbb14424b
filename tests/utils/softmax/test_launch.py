"""The table covers every shape; its rules bind and compile without spills, without a GPU."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from utils.softmax.launch import TABLE, Launch, choose, choose_interpreted, power_of_two

pytestmark = pytest.mark.slow(9)

EVERYTHING = Path(__file__).with_name("compile_everything.py")


@pytest.mark.parametrize(("direction", "itemsize"), TABLE)
def test_every_width_has_a_launch_that_can_hold_it(direction, itemsize):
    for columns in (1, 600, 1024, 1025, 4096, 5000, 32768, 40000, 10**7):
        for rows in (1, 64, 10**6):
            launch = choose(direction, itemsize, rows, columns)
            assert launch.loop or power_of_two(columns) <= launch.tile
            assert launch.tile == power_of_two(launch.tile)
            assert launch.warps in (1, 2, 4, 8, 16, 32)
            # a multiprocessor has 65536 registers for all its threads; an element takes one or two
            assert launch.tile * max(1, itemsize // 4) <= 65536


def test_no_rule_is_hidden_by_an_earlier_one():
    for rules in TABLE.values():
        for i, rule in enumerate(rules):
            for earlier in rules[:i]:
                assert earlier.rows < rule.rows or earlier.columns < rule.columns


def test_the_interpreter_takes_many_rows_at_once_and_wide_rows_in_tiles():
    assert choose_interpreted(600) == Launch(False, 65536, 4)
    assert choose_interpreted(4097) == Launch(True, 4096, 4)


@pytest.mark.parametrize(
    ("number", "power"), [(1, 1), (2, 2), (3, 4), (600, 1024), (1024, 1024), (1025, 2048)]
)
def test_power_of_two(number, power):
    assert power_of_two(number) == power


def test_a_gpu_could_launch_every_rule_and_no_register_would_be_spilled():
    root = EVERYTHING.parents[3]
    environment = os.environ | {"PYTHONPATH": str(root), "TRITON_INTERPRET": "0"}
    command = [sys.executable, EVERYTHING]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert len(found) == sum(map(len, TABLE.values()))
    assert {line: report for line, report in found.items() if report["stack"]} == {}
    scalar = {line for line, report in found.items() if report["loads"] != report["wide loads"]}
    assert scalar == set()
