"""Names and pseudonyms."""

import stat
from concurrent.futures import ThreadPoolExecutor

import pytest

from hood import UserError
from hood.classroom.gradebook.graded import Graded, Reason, ReasonKind
from hood.classroom.gradebook.pseudonyms import LearnerNames, pseudonyms
from hood.verdict import UNDEFINED, Cause, PartResult, Status, Verdict

LUCIA = Graded("lalonso7", "Lucía Alonso", {}, {})
KEYED = LearnerNames(b"key")


def test_names_are_shown_unchanged():
    assert LearnerNames().of(LUCIA) == "Lucía Alonso"
    assert LearnerNames().problem(part("raised A: Lucía", "Lucía"), LUCIA) == "raised A: Lucía"


def test_a_pseudonym_is_stable_and_unique():
    assert KEYED.of(LUCIA) == KEYED.of(LUCIA)
    assert len({KEYED.order(f"s{k}") for k in range(20_000)}) == 20_000
    assert "alonso" not in KEYED.of(LUCIA)


def test_another_key_gives_other_pseudonyms():
    assert LearnerNames(b"other").of(LUCIA) != KEYED.of(LUCIA)


def test_the_key_is_made_once_and_readable_by_its_owner_alone(tmp_path):
    first, second = pseudonyms(tmp_path), pseudonyms(tmp_path)
    assert first.key == second.key
    assert len(first.key) == 32
    assert stat.S_IMODE((tmp_path / ".pseudonyms").stat().st_mode) == 0o600


@pytest.mark.parametrize("text", ["", "ab12", "no key at all"])
def test_a_file_without_a_whole_key_is_refused(tmp_path, text):
    """An empty key is no secret, because everybody can guess it."""
    (tmp_path / ".pseudonyms").write_text(text)
    with pytest.raises(UserError, match="64 hexadecimal digits"):
        pseudonyms(tmp_path)
    assert (tmp_path / ".pseudonyms").read_text() == text


def test_reports_that_start_together_have_one_key(tmp_path):
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(pseudonyms, [tmp_path] * 32))
    assert len({one.key for one in found}) == 1
    assert [path.name for path in tmp_path.iterdir()] == [".pseudonyms"]


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
def test_learners_own_text_is_left_out(about, shown):
    assert KEYED.problem(about, LUCIA) == shown


def test_a_reason_is_shown_without_the_learners_text():
    reason = Reason(ReasonKind.UNDEFINED, "name 'lu' is not defined: ...", "twice", "a name, ...")
    assert KEYED.reason(reason, LUCIA).text == "a name, ..."
    assert KEYED.reason(Reason(ReasonKind.STOPPED, "Alonso's kernel"), LUCIA).text == "…'s kernel"
    assert LearnerNames().reason(reason, LUCIA) == reason
