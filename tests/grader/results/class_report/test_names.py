"""Names and pseudonyms."""

import stat

import pytest

from grader.results.class_report.names import Names, Pseudonyms, pseudonyms
from grader.results.gradebook import Graded, Reason, ReasonKind
from grader.verdict import UNDEFINED, Cause, PartResult, Status, Verdict

LUCIA = Graded("lalonso7", "Lucía Alonso", {}, {})
KEYED = Pseudonyms(key=b"key")


def test_names_are_shown_as_they_are():
    assert Names().of(LUCIA) == "Lucía Alonso"
    assert Names().problem(part("raised A: Lucía", "Lucía"), LUCIA) == "raised A: Lucía"


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


def part(problem, quoted=""):
    return PartResult("p", 1, 0.0, Status.WRONG, Cause.WRONG_RESULT, problem, quoted)


@pytest.mark.parametrize(
    ("about", "shown"),
    [
        (part("raised ValueError: Lucía was here", "Lucía was here"), "raised ValueError"),
        (part("got KeyError: alonso: 3", "alonso: 3"), "got KeyError"),
        (part("`LUCÍA` is not a tensor, says lalonso7"), "`…` is not a tensor, says …"),
        (part("of 3 values 2 differ"), "of 3 values 2 differ"),
        (
            Verdict("c", 1, Status.NOT_RUN, cause=Cause.UNDEFINED_NAME, problem="Lu is not"),
            UNDEFINED,
        ),
        (Verdict("c", 1, Status.NOT_RUN, cause=Cause.TIMEOUT, problem="Lucía: 3 s"), "…: 3 s"),
    ],
)
def test_what_learners_wrote_themselves_is_left_out(about, shown):
    assert KEYED.problem(about, LUCIA) == shown


def test_a_reason_is_shown_without_what_the_learner_wrote():
    reason = Reason(ReasonKind.UNDEFINED, "name 'lu' is not defined: ...", "twice", "a name, ...")
    assert KEYED.reason(reason, LUCIA).text == "a name, ..."
    assert KEYED.reason(Reason(ReasonKind.STOPPED, "Alonso's kernel"), LUCIA).text == "…'s kernel"
    assert Names().reason(reason, LUCIA) == reason
