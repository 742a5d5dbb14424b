"""Fixtures: a small grading machine for each module of tests, and its honest result."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.attacks.ground import Ground, Outcome

pytest.register_assert_rewrite("tests.attacks.trial")


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    """Yield a small grading machine."""
    place = Ground(tmp_path_factory.mktemp("ground"))
    yield place
    place.close()


@pytest.fixture(scope="module")
def honest(ground: Ground) -> Outcome:
    """Return the result of an honest submission before any attack."""
    from tests.attacks.browser import dangers
    from tests.attacks.trial import FULL, grade_honest

    outcome = grade_honest(ground, with_page=True)
    assert outcome.scores == FULL
    assert not [found for found in dangers(outcome.page) if "loads" in found]
    return outcome
