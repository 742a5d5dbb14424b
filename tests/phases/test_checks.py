"""Every check of every phase: what is wrong is rejected and named, what is right passes."""

import pytest

from grader.judging.catalogue import load_checks
from grader.phase_paths import phases
from grader.proof.selftest import LabCode, prove
from tests.phases import dear

CHECKS = [
    pytest.param(phase, check, id=f"{phase.name}: {check.name}")
    for phase in phases()
    for check in load_checks(phase.folder).values()
]


@pytest.mark.parametrize(("phase", "check"), CHECKS)
def test_candidates_come_out_as_predicted(phase, check, seeds, proven, full):
    proven.skip_if_unchanged(phase.name, check.name)
    lab = LabCode.read(phase.lab)
    assert check.name in lab.solutions
    most = dear.FEW if check.name in dear.EXERCISES and not full else 0
    for seed in seeds:
        assert prove(check, seed, lab, most).faults == (), f"seed {seed}"
    proven.remember(phase.name, check.name)


@pytest.mark.parametrize(("phase", "check"), CHECKS)
def test_candidates_are_enough(phase, check):
    assert len(check.misconceptions) >= 3
    assert len(check.alternates) >= 1
    assert all(m.explanation.endswith(".") for m in check.misconceptions)
    assert len({c.name for c in check.misconceptions + check.alternates}) == len(
        check.misconceptions
    ) + len(check.alternates)
