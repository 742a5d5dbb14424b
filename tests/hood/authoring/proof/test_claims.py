"""Points that depend on a claim, on a rule, or on both; and the table about them."""

import argparse

import pytest

from hood import UserError
from hood.authoring.proof.claims import (
    BEGIN,
    END,
    Count,
    add_arguments,
    count,
    rows_of,
    run,
    with_rows,
)
from hood.judge.checks.exercise import ByHand, Case, Check, case, not_run
from hood.judge.connection.drivers import INPUTS_KEPT, driver
from utils.drivers import functions

PAGE = f"# A page\n\n{BEGIN}{END}\nThe rest.\n"


def make_check(claimed=(), **settings):
    """Return a check of two parts. The parts in ``claimed`` depend on a claim."""
    check = Check("twice", parts={"one": 1, "two": 2}, reads="r", **settings)
    check.reference(lambda x: 2 * x)

    def play(part):
        def ask(subject):
            if part in claimed:
                subject.claim("that it was quick")
            return subject(3)

        return ask

    @check.cases
    def _(draw):
        for part in check.parts:
            yield case(part, draw.integer(1, 9))
            yield Case(part, play(part))

    return check


@pytest.mark.parametrize(
    ("claimed", "settings", "expected"),
    [
        ((), {}, Count(3)),
        (("two",), {}, Count(3, 2, 0, 2)),
        ((), {"by_hand": ByHand("by hand")}, Count(3, 0, 3, 3)),
        (("one",), {"by_hand": ByHand("by hand")}, Count(3, 1, 3, 3)),
        (("one",), {"by_hand": ByHand("by hand", parts=frozenset({"two"}))}, Count(3, 1, 2, 3)),
        (("two",), {"by_hand": ByHand("by hand", parts=frozenset({"two"}))}, Count(3, 2, 2, 2)),
    ],
    ids=[
        "values alone",
        "a claim in one part",
        "a rule",
        "a rule and a claim",
        "a rule for one part, a claim in the other",
        "a rule for one part, a claim in the same",
    ],
)
def test_points_of_a_part_count_once(claimed, settings, expected):
    assert count(make_check(claimed, **settings), "seed") == expected


def test_sharing_is_a_claim_if_tensors_are_returned():
    check = Check("same", parts={"one": 1, "two": 2}, reads="r", sharing=True)
    check.reference(lambda x: x)
    check.cases(lambda draw: [case("one", draw.tensor((2,))), case("two", 3)])
    assert count(check, "seed") == Count(3, 1, 0, 1)


@pytest.mark.parametrize(("words", "claims"), [("that it was quick", 1), (INPUTS_KEPT, 0)])
def test_a_drivers_observation_is_a_claim_unless_it_says_that_inputs_were_kept(
    words, claims, monkeypatch
):
    watched = driver("result", observed={"seen": words})(lambda thing: {"result": 1, "seen": 2})
    monkeypatch.setattr(functions, "watched", watched, raising=False)
    check = Check("one", parts={"p": 1}, reads="r")
    check.reference(lambda: 1)
    check.cases(lambda draw: [Case("p", lambda subject: subject.drive("functions:watched"))])
    assert count(check, "seed") == Count(1, claims, 0, claims)


def test_a_part_that_this_machine_cannot_run_is_not_counted():
    check = Check("one", parts={"p": 1}, reads="r")
    check.reference(lambda: 1)
    check.cases(lambda draw: [not_run("p", "needs a GPU")])
    with pytest.raises(UserError, match="one can't be counted on this machine: p: needs a GPU"):
        count(check, "seed")


def test_a_recounted_lab_gets_a_new_row_and_the_others_stay():
    page = with_rows(PAGE, {"02_b": Count(4, 1, 2, 3), "01_a": Count(6, 0.5, 0, 0.5)})
    page = with_rows(page, {"02_b": Count(4, 0, 0, 0)})
    assert rows_of(page) == {"01_a": Count(6, 0.5, 0, 0.5), "02_b": Count(4)}
    assert "| **all labs** | 10 | 0.5 | 0 | 0.5 (5 %) |\n" in page
    assert page.startswith("# A page\n")
    assert page.endswith("The rest.\n")


def test_a_page_without_a_place_for_the_table_is_refused():
    with pytest.raises(UserError, match="around the table"):
        with_rows("# A page\n", {})


def test_the_command_only_writes_whole_labs(tmp_path):
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    with pytest.raises(UserError, match="leave --exercise out"):
        run(parser.parse_args(["01", "--exercise", "bytes_of", "--write"]), tmp_path)
