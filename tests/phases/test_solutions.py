"""Worked solutions: one for each exercise and each question in words, and other ways."""

import pytest

from hood.authoring.notebooks.text import parse
from hood.judge.catalogue import load_checks
from hood.judge.solutions import (
    FILE,
    model_answer,
    question_in_words,
    read_words,
    solution_of,
    worked,
)
from hood.phase_paths import ROOT, phases

LABS = [phase for phase in phases(ROOT) if phase.checks]
SHORTEST, LONGEST = 50, 290  # words of a section


@pytest.mark.parametrize("phase", LABS, ids=lambda phase: phase.name)
def test_each_exercise_has_a_worked_solution_in_the_labs_order(phase):
    cells = parse(phase.lab.name, phase.lab.read_text()).cells
    checks = load_checks(phase.folder)
    words = read_words(phase.folder / FILE)
    tasks = {cell.header["task"] for cell in cells if "task" in cell.header}
    exercises = [cell.name for cell in cells if {"test", "task"} & set(cell.header)]
    assert list(words) == [name for name in exercises if name in checks or name in tasks]
    for name, section in words.items():
        assert SHORTEST <= len(section.why.split()) <= LONGEST, name
        alternates = checks[name].alternates if name in checks else ()
        assert set(section.others) <= {one.name for one in alternates}, name
        assert all(section.others.values()), name


@pytest.mark.parametrize("phase", LABS, ids=lambda phase: phase.name)
def test_a_worked_solution_has_the_labs_code_reasons_and_other_ways(phase):
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


TASKS = [
    (phase, cell.header["task"])
    for phase in LABS
    for cell in parse(phase.lab.name, phase.lab.read_text()).cells
    if "task" in cell.header
]


@pytest.mark.parametrize(("phase", "name"), TASKS, ids=[name for _, name in TASKS])
def test_a_question_in_words_has_a_model_answer_and_its_rubric_behind_a_fold(phase, name):
    shown = solution_of(name)
    assert question_in_words(name) == phase
    assert shown.startswith(f"<details><summary>A model answer to <code>{name}</code>")
    assert shown.endswith("</details>")
    assert "MARK SCHEME" not in shown
    answer, rubric = shown.split("**How it is marked**")
    assert read_words(phase.folder / FILE)[name].why.split()[-1] in answer
    assert rubric.count("\n- ") >= 3


def test_an_exercise_is_no_question_in_words():
    assert question_in_words("bytes_of") is None
    assert "A worked solution of <code>bytes_of</code>" in solution_of("bytes_of")
    with pytest.raises(LookupError, match="no model answer"):
        model_answer(LABS[1], "bytes_of")
