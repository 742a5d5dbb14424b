"""Limits come from a lab's metadata, and errors in it are reported."""

from __future__ import annotations

import pytest

from hood import UserError
from hood.grader.sandbox import Limits


def test_a_lab_that_asks_for_nothing_has_the_defaults() -> None:
    assert Limits.of({}) == Limits()
    assert Limits.of({"open_the_hood": {"seed": "x"}}) == Limits()


def test_a_lab_chooses_in_the_units_that_it_names() -> None:
    chosen = Limits.of(
        {"open_the_hood": {"cell_seconds": 7, "limits": {"memory_mb": 3, "output_kb": 2}}}
    )
    assert (chosen.cell_seconds, chosen.memory, chosen.output) == (7, 3 * 2**20, 2048)
    assert chosen.total_seconds == Limits().total_seconds


@pytest.mark.parametrize(
    ("ours", "said"),
    [
        ({"limits": {"memory": 3}}, "no such setting 'memory'; expected one of: memory_mb"),
        ({"limits": {"memory_mb": "3"}}, "memory_mb: expected a whole number above 0, got '3'"),
        ({"limits": {"processes": 0}}, "processes: expected a whole number above 0, got 0"),
        ({"limits": {"processes": True}}, "got True"),
        ({"limits": [1]}, "expected names and numbers"),
        ({"cell_seconds": 1.5}, "cell_seconds: expected a whole number above 0, got 1.5"),
    ],
)
def test_an_invalid_limit_is_refused(ours: dict[str, object], said: str) -> None:
    with pytest.raises(UserError, match=said):
        Limits.of({"open_the_hood": ours})
