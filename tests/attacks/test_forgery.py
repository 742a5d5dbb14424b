"""Attacks that want points: metadata, kernel, patches, rules, connection, lies, files."""

import pytest

from tests.attacks.catalogue import every_attack
from tests.attacks.trial import attacks_of, withstand

pytestmark = pytest.mark.slow(25)

FAMILIES = ("metadata", "kernel", "patches", "rules", "connection", "lies", "files")


@pytest.mark.parametrize("attack", attacks_of(*FAMILIES))
def test_attack(attack, ground, honest):
    withstand(attack, ground, honest)


def test_the_catalogue_is_complete():
    """Each attack has a docstring, and no two attacks have the same name."""
    attacks = every_attack()
    assert len({str(attack) for attack in attacks}) == len(attacks) >= 60
    assert all(attack.tries.endswith(".") for attack in attacks)


def test_only_claims_earn_more_than_honest_answers():
    """If no points depend on a claim, an attack expects at most the points of honest answers."""
    for attack in every_attack():
        gained = {name for name in attack.earns if attack.earns[name] > attack.honest[name]}
        assert gained == set(attack.gains)
