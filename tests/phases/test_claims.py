"""Values that are the same in every draw do not count as a learner's results.

A learner who has seen such a value can repeat it without a correct function. So a driver declares
it as observed, and the verdict says that it is a claim.
"""

import collections

import pytest

from hood.judge.catalogue import load_checks
from hood.judge.connection.drivers import WHOLE, Declared
from hood.judge.verdicts.answer_key import AnswerKey
from hood.judge.verdicts.judge import claims_of
from hood.judge.verdicts.subject import Subject
from hood.phase_paths import phases

PHASES = [phase for phase in phases() if load_checks(phase.folder)]


def plain(value):
    """A value that a learner could repeat after seeing it."""
    return repr(value) if isinstance(value, (bool, int, float, str, type(None))) else None


@pytest.mark.of_labs
@pytest.mark.parametrize("phase", PHASES, ids=[phase.name for phase in PHASES])
def test_constant_values_are_declared_as_observed(phase, seeds, monkeypatch):
    found, names = collections.defaultdict(set), {}
    drive, fits = Subject._declared, Declared.fits

    def noted(self, driver):
        whole, says = drive(self, driver)
        names[id(says)] = driver
        return whole, says

    def seen(says, came):
        named = (says.returned | says.observed.keys()) - {WHOLE}
        for key, value in came.items() if named else [(WHOLE, came)]:
            if key not in says.observed:
                found[names[id(says)], key].add(plain(value))
        return fits(says, came)

    monkeypatch.setattr(Subject, "_declared", noted)
    monkeypatch.setattr(Declared, "fits", seen)
    for check in load_checks(phase.folder).values():
        for seed in (f"{seeds[0]} once", f"{seeds[0]} again"):
            claims_of(AnswerKey(check, seed))
    assert [
        place for place, values in found.items() if len(values) == 1 and None not in values
    ] == []
