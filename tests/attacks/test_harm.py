"""Attacks that aim at more than points: secrets, escape, exhaustion, another person's browser."""

import pytest

from tests.attacks.trial import attacks_of, withstand

pytestmark = pytest.mark.slow(40)

FAMILIES = ("reading", "escape", "folder", "exhaustion", "costs", "endings", "feedback")


@pytest.mark.parametrize("attack", attacks_of(*FAMILIES))
def test_attack(attack, ground, honest):
    withstand(attack, ground, honest)
