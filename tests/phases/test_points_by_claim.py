"""The table in docs/explanation/walls.md says how many points depend on a claim or a rule."""

import pytest

from hood.authoring.proof.claims import COMMAND, PAGE, Count, count, rows_of, with_rows
from hood.judge.catalogue import load_checks
from hood.phase_paths import ROOT, phases

CONTENT = (ROOT / PAGE).read_text(encoding="utf-8")
PHASES = [phase for phase in phases() if load_checks(phase.folder)]


@pytest.mark.slow(5)
@pytest.mark.parametrize("phase", PHASES, ids=[phase.name for phase in PHASES])
def test_the_table_has_the_current_counts(phase, seeds):
    checks = load_checks(phase.folder).values()
    if any(check.not_run() for check in checks):
        pytest.skip("this machine can't run all of its parts")
    counted = sum((count(check, seeds[0]) for check in checks), Count())
    assert rows_of(CONTENT)[phase.name] == counted, (
        f"{PAGE} has an old count; `{COMMAND} {phase.number}` writes the new one"
    )


def test_the_table_has_all_labs_and_their_sum():
    assert [*rows_of(CONTENT)] == [phase.name for phase in PHASES]
    assert with_rows(CONTENT, {}) == CONTENT, f"`{COMMAND}` writes the sums"
