"""Hostile submissions among those of a class do not affect the other submissions."""

import pytest

from tests.attacks.catalogue import every_attack
from tests.attacks.classroom import (
    add_attacks,
    compare,
    copy_of,
    figures,
    grade_class,
    grade_here,
    grade_on_cluster,
    make_class,
    one_of_each_family,
    own_limits,
)

# Cheap attacks, of eight families.
FEW = [
    "metadata: copies the test",
    "kernel: forges a verdict",
    "patches: makes everything close",
    "lies: equals everything",
    "folder: has links to secrets",
    "files: is deep",
    "endings: crashes the interpreter",
    "feedback: raises markup",
]


def graded_twice(folder, honest, attacks, how):
    """Grade the honest learners alone, and together with the hostile ones."""
    root = make_class(folder / "alone", honest)
    other = copy_of(root, folder / "mixed")
    hostile = add_attacks(other, attacks)
    alone, mixed = how(root), how(other)
    compare(alone, mixed, hostile)
    return alone, mixed


@pytest.mark.slow(15)
def test_a_few_hostile_learners_in_a_small_class_change_nothing(tmp_path):
    attacks = [attack for attack in every_attack() if str(attack) in FEW]
    assert len(attacks) == len(FEW)
    graded_twice(tmp_path, 6, attacks, grade_here)


@pytest.mark.full
@pytest.mark.slow(60)
def test_hostile_learners_on_a_cluster_change_nothing(tmp_path):
    pytest.importorskip("distributed", reason="the extra `cluster` is not installed")
    more = ("exhaustion: forks for ever", "exhaustion: takes memory slowly", "escape: ")
    attacks = [a for a in every_attack() if str(a) in FEW or str(a).startswith(more)]
    graded_twice(tmp_path, 6, attacks, grade_on_cluster)


BOMBS = [
    "exhaustion: forks for ever",
    "exhaustion: has a new session all the time",
    "exhaustion: is a fork bomb",
    "exhaustion: spins in many threads",
]


@pytest.mark.full
@pytest.mark.slow(200)
def test_fork_bombs_get_no_larger_share_of_the_machine(tmp_path):
    attacks = [attack for attack in every_attack() if str(attack) in BOMBS]
    assert len(attacks) == len(BOMBS)
    alone, mixed = graded_twice(tmp_path, 12, attacks, grade_class)
    print(figures(alone, mixed, attacks))
    assert mixed.seconds < 1.5 * alone.seconds + own_limits(attacks)


@pytest.mark.full
@pytest.mark.slow(400)
def test_twenty_hostile_learners_in_a_class_of_forty_change_nothing(tmp_path, request):
    attacks = one_of_each_family(20, request.config.option.seed)
    alone, mixed = graded_twice(tmp_path, 40, attacks, grade_class)
    print(figures(alone, mixed, attacks))
    assert mixed.seconds < 1.5 * alone.seconds + own_limits(attacks)
