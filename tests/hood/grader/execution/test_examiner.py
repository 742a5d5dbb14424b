"""A worker's message about a check that does not match its cell."""

import pytest

from hood import UserError
from hood.grader.execution import examiner
from hood.grader.execution.examiner import Examiner
from hood.judge.catalogue import find_check
from hood.judge.source.learner_source import LearnerSource


@pytest.mark.parametrize(
    ("hidden", "points", "says"),
    [
        (
            'verify("grid_size", grid_size)',
            4.0,
            "gives 3 points, but its cell in source/ has 4. ",
        ),
        ('verify("nobody_has_it", f)', 3.0, "a check cannot be used: LookupError: no check is"),
        ("f()", 3.0, "a check cannot be used: ValueError: expected `verify"),
    ],
)
def test_a_mismatched_check_is_the_courses_fault(hidden, points, says):
    with pytest.raises(UserError, match=says):
        Examiner(hidden, points, "seed", LearnerSource([]), None)


def test_checks_that_cannot_be_loaded_are_named_and_stop_no_other_phase(tmp_path):
    good = (
        "from hood.judge.checks.exercise import Check\n\n"
        'mine = Check("mine", parts={"a": 1}, reads="A")\n'
    )
    broken = {"checks/__init__.py": "'theirs'\nraise ValueError('x')"}
    for name, files in {"70_a": {"checks.py": good}, "71_b": broken}.items():
        for file, code in {"lab.py": "", **files}.items():
            path = tmp_path / "phases" / name / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(code)
    assert find_check("mine", tmp_path)[0].name == "70_a"
    why = "'theirs' can't be used, because phases/71_b/checks/__init__.py can't be loaded: Value"
    with pytest.raises(UserError, match=why):
        find_check("theirs", tmp_path)


def test_a_machine_out_of_memory_is_not_the_checks_fault(monkeypatch):
    def refuses(check, seed):
        raise RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried")

    monkeypatch.setattr(examiner, "answer_key", refuses)
    with pytest.raises(MemoryError):
        Examiner('verify("grid_size", grid_size)', 3.0, "seed", LearnerSource([]), None)
