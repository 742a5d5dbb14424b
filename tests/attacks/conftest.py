"""A place to attack for each module of tests, and what an honest submission comes to in it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.attacks.ground import Ground, Outcome

pytest.register_assert_rewrite("tests.attacks.trial")


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    """A grading machine in small."""
    place = Ground(tmp_path_factory.mktemp("ground"))
    yield place
    place.close()


@pytest.fixture(scope="module")
def honest(ground: Ground) -> Outcome:
    """What an honest submission comes to before anybody attacks."""
    from tests.attacks.trial import FULL, grade_honest

    outcome = grade_honest(ground, with_page=True)
    assert outcome.scores == FULL
    return outcome
