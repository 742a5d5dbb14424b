"""Names and pseudonyms."""

import stat

import pytest

from grader.results.class_report.names import Names, Pseudonyms, pseudonyms
from grader.results.gradebook import Graded

LUCIA = Graded("lalonso7", "Lucía Alonso", {}, {})
KEYED = Pseudonyms(key=b"key")


def test_names_are_shown_as_they_are():
    assert Names().of(LUCIA) == "Lucía Alonso"
    assert Names().clean("raised ValueError: Lucía", LUCIA) == "raised ValueError: Lucía"


def test_a_pseudonym_is_stable_and_its_own():
    assert KEYED.of(LUCIA) == KEYED.of(LUCIA)
    assert len({KEYED.order(f"s{k}") for k in range(20_000)}) == 20_000
    assert "alonso" not in KEYED.of(LUCIA)


def test_another_key_gives_other_pseudonyms():
    assert Pseudonyms(key=b"other").of(LUCIA) != KEYED.of(LUCIA)


def test_the_key_is_made_once_and_only_its_owner_reads_it(tmp_path):
    first, second = pseudonyms(tmp_path), pseudonyms(tmp_path)
    assert first.key == second.key
    assert len(first.key) == 32
    assert stat.S_IMODE((tmp_path / ".pseudonyms").stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("raised ValueError: Lucía was here", "raised ValueError"),
        ("expected a ValueError, came KeyError: alonso", "expected a ValueError, came KeyError"),
        ("`LUCÍA` is not a tensor, says lalonso7", "`…` is not a tensor, says …"),
        ("of 3 values 2 differ", "of 3 values 2 differ"),
        ("Lucía: the cell that should define it did not run through",
         "a name is not defined: the cell that should define it did not run through"),
    ],
)  # fmt: skip
def test_what_learners_wrote_themselves_is_left_out(text, shown):
    assert KEYED.clean(text, LUCIA) == shown
