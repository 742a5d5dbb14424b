"""Worked solutions: one for each exercise, and other ways that its check knows."""

import pytest

from grader.authoring.text import parse
from grader.judging.catalogue import load_checks
from grader.phase_paths import ROOT, phases
from grader.solutions import FILE, read_words, worked

LABS = [phase for phase in phases(ROOT) if phase.checks]
SHORTEST, LONGEST = 50, 260  # words of a section


@pytest.mark.parametrize("phase", LABS, ids=lambda phase: phase.name)
def test_each_exercise_has_a_worked_solution_in_the_labs_order(phase):
    cells = parse(phase.lab.name, phase.lab.read_text()).cells
    exercises = [cell.header["test"] for cell in cells if "test" in cell.header]
    checks = load_checks(phase.folder)
    words = read_words(phase.folder / FILE)
    assert list(words) == [name for name in exercises if name in checks]
    for name, section in words.items():
        assert SHORTEST <= len(section.why.split()) <= LONGEST, name
        assert set(section.others) <= {one.name for one in checks[name].alternates}, name
        assert all(section.others.values()), name


@pytest.mark.parametrize("phase", LABS, ids=lambda phase: phase.name)
def test_a_worked_solution_is_the_labs_code_the_reasons_and_other_ways(phase):
    for check in load_checks(phase.folder).values():
        shown = worked(phase, check)
        others = read_words(phase.folder / FILE)[check.name].others
        assert shown.startswith("<details><summary>")
        assert shown.endswith("</details>")
        assert "SOLUTION" not in shown
        assert shown.count("```python") == 1 + len(others) == shown.count("**Another way: ") + 1
        assert "](../" not in shown, "links of the lab lead nowhere from here"
        for name in check.names:
            assert f" {name}" in shown


def test_an_exercise_without_words_has_none():
    phase = LABS[0]
    check = next(iter(load_checks(LABS[1].folder).values()))
    with pytest.raises(LookupError, match="no worked solution"):
        worked(phase, check)
