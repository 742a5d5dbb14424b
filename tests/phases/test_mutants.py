"""Every small change of a right solution is noticed by its check, or listed as equivalent."""

import pytest

from hood.authoring.proof.mutants import survey
from hood.judge.catalogue import load_checks
from hood.phase_paths import phases
from tests.phases import dear

SAMPLE = 40  # mutants of an exercise, drawn by the seed of the run; at full width all of them
FEWEST = 21  # changes that every exercise has
CHECKS = [
    pytest.param(
        phase,
        check,
        id=f"{phase.name}: {check.name}",
        marks=[pytest.mark.full] if check.name in dear.DEAREST else [],
    )
    for phase in phases()
    for check in load_checks(phase.folder).values()
]


@pytest.mark.of_labs
@pytest.mark.slow(5)
@pytest.mark.parametrize(("phase", "check"), CHECKS)
def test_every_small_change_is_noticed_or_explained(phase, check, seeds, full):
    most = 0 if full else dear.MUTANTS if check.name in dear.EXERCISES else SAMPLE
    found = survey(check, seeds, phase.lab, most=most)
    assert found.made >= min(most or FEWEST, FEWEST)
    assert [f"{trial.place()}: {trial.mutant}" for trial in found.survivors] == []
    assert found.stale == []
