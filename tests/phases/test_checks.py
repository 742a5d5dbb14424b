"""Every check of every phase: wrong answers are rejected and named, right ones pass."""

import contextlib

import pytest

from hood.authoring.proof.selftest import LabCode, prove
from hood.judge.catalogue import load_checks
from hood.judge.checks.draw import SmallDraw
from hood.judge.examples.example import REACHES
from hood.phase_paths import phases
from tests.phases import dear

CHECKS = [(phase, check) for phase in phases() for check in load_checks(phase.folder).values()]


def of_each(marked=frozenset()):
    """Return the parameters of a test of every check; those in ``marked`` are ``of_labs``."""
    return [
        pytest.param(
            phase,
            check,
            id=f"{phase.name}: {check.name}",
            marks=[pytest.mark.of_labs] if check.name in marked else [],
        )
        for phase, check in CHECKS
    ]


@pytest.mark.parametrize(("phase", "check"), of_each(dear.DEAREST))
def test_candidates_come_out_as_predicted(phase, check, seeds, full):
    lab = LabCode.read(phase.lab)
    assert check.name in lab.solutions
    for seed in seeds:
        assert prove(check, seed, lab, dear.few(check.name, full)).faults == (), f"seed {seed}"


@pytest.mark.parametrize(("phase", "check"), of_each())
def test_candidates_are_enough(phase, check):
    assert len(check.misconceptions) >= 3
    assert len(check.alternates) >= 1


@pytest.mark.parametrize(("phase", "check"), of_each(dear.DEAREST))
def test_small_cases_can_be_drawn(phase, check, seeds, full):
    """Learners' examples come from these cases. Sizes are as small as the generator allows."""
    for reach in REACHES if full or check.name not in dear.DEAREST else REACHES[:1]:
        with contextlib.suppress(ValueError):  # it needs more sizes than are available here
            check.draw_cases(seeds[-1], SmallDraw, reach=reach)
