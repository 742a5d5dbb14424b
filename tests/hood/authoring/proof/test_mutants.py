"""Surviving mutants, and the lines that declare a change equivalent."""

import argparse
import contextlib
import gc
import io
import signal
import time
from functools import lru_cache

import pytest
from rich.console import Console

from hood import UserError
from hood.authoring.proof.cpu_limit import limited_to
from hood.authoring.proof.mutants import LATE, _Judge, add_arguments, rights, run, survey
from hood.authoring.proof.mutate import mutants
from hood.authoring.proof.selftest import LabCode
from hood.judge.checks.answers import Equivalent
from hood.judge.checks.exercise import Case, Check, case
from hood.judge.connection.rpc_client import InProcess
from hood.judge.verdicts.answer_key import answer_key
from hood.judge.verdicts.judge import first_failure, judge
from tests.hood.judge.candidates import alternate

LAB = '''# %% [markdown]
# # A lab

# %% given="setup"
import math

# %% solution="clipped"
def clipped(x: int, top: int) -> int:
    """`x`, or `top` where x is more."""
    limit = top
    ### BEGIN SOLUTION
    if x > limit:
        return limit
    return x
    ### END SOLUTION
'''
SEEDS = ["a", "b", "c"]


@pytest.fixture
def lab(tmp_path):
    path = tmp_path / "lab.py"
    path.write_text(LAB)
    return path


def make_check(*, at_top=True):
    check = Check("clipped", parts={"p": 1}, reads="r")
    check.reference(lambda x, top: min(x, top))

    @check.cases
    def _(draw):
        yield case("p", draw.integer(1, 5), 9)
        yield case("p", draw.integer(10, 15), 9)
        if at_top:
            yield case("p", -3, -3)

    return check


def changes(trials):
    return {(trial.mutant.was, trial.mutant.now) for trial in trials}


NO_MATTER = {("if x > limit:", "if x >= limit:")}


def test_an_equivalent_change_survives_until_it_is_explained(lab):
    check = make_check()
    found = survey(check, SEEDS, lab)
    assert changes(found.survivors) == NO_MATTER
    assert (found.made, found.killed, found.equivalent, found.stale) == (11, 10, [], [])
    (trial,) = found.survivors
    assert trial.survived == len(SEEDS)
    assert LAB.splitlines()[int(trial.place().split(":")[1]) - 1] == "    if x > limit:"

    check.equivalents.append(Equivalent(">", ">=", "at the limit both are the limit"))
    found = survey(check, SEEDS, lab)
    assert (changes(found.equivalent), found.survivors, found.stale) == (NO_MATTER, [], [])


def test_only_the_learners_lines_are_changed(lab):
    solution, *others = rights(make_check(), lab)
    assert [solution.cell.splitlines()[n - 1] for n in sorted(solution.lines)] == [
        "    ### BEGIN SOLUTION",
        "    if x > limit:",
        "        return limit",
        "    return x",
    ]
    assert others == []


def test_alternates_are_changed_too(lab):
    check = make_check()

    @alternate(check, "smaller of two")
    def _(x, top):
        return top if top < x else x

    found = survey(check, SEEDS, lab)
    (survivor,) = [t for t in found.survivors if t.right.name == "smaller of two"]
    assert survivor.mutant.now == "return top if top <= x else x"
    assert survivor.place() == "alternate “smaller of two”, line 2"
    check.equivalents.append(Equivalent("<", "<=", "they are equal", "the lab's solution"))
    assert survey(check, SEEDS, lab).stale == [
        "`<` → `<=` is not one of the changes that are tried"
    ]


def test_an_explanation_that_matches_no_change_is_stale(lab):
    check = make_check()
    check.equivalents.append(Equivalent("x > limit", "x >> limit", "it isn't"))
    assert "not one of the changes" in survey(check, SEEDS, lab).stale[0]


def test_an_explanation_of_a_killed_change_is_stale(lab):
    check = make_check()
    check.equivalents.append(Equivalent(">", "<=", "it isn't"))
    (said,) = survey(check, SEEDS, lab).stale
    assert said == "`>` → `<=` is killed on 3 of 3 seeds: lab.py:12"


def test_a_change_that_survives_on_one_seed_is_a_survivor(lab):
    check = make_check()
    check.cases(lambda draw: [case("p", 3, 9), case("p", 11 if draw.integer(0, 1) else 4, 9)])
    seeds = [f"{k}" for k in range(12)]
    found = survey(check, seeds, lab)
    assert found.stale == []
    often = {t.mutant.now: t.survived for t in found.survivors}
    assert 0 < often["if False:"] < 12

    check.equivalents.append(Equivalent("x > limit", "False", "luck"))
    (said,) = survey(check, seeds, lab).stale
    assert said.startswith("`x > limit` → `False` is killed on")
    check.equivalents.clear()
    check.equivalents.append(Equivalent("x > limit", None, "luck"))
    found = survey(check, seeds, lab)
    assert found.stale == []
    assert [t.survived for t in found.equivalent if t.mutant.now == "if False:"] == [1]
    assert {t.mutant.now for t in found.survivors}.isdisjoint({"if x >= limit:", "if False:"})
    check.equivalents.append(Equivalent("y < limit", None, "it is not there"))
    assert survey(check, seeds, lab).stale == [
        "free `y < limit` is not one of the changes that are tried"
    ]
    assert often["if x >= limit:"] == 12


def test_an_endless_loop_is_stopped_and_counts_as_wrong(lab):
    lab.write_text(LAB.replace("if x > limit:", "while x > limit:\n        x -= 1\n    if False:"))
    began = time.process_time()
    found = survey(make_check(), SEEDS[:1], lab)
    assert time.process_time() - began < 20
    assert found.killed > 10
    assert not any("x = 1" in now or "x += 1" in now for _, now in changes(found.survivors))


@pytest.mark.slow(2)
def test_an_endless_loop_is_run_on_three_seeds_and_not_on_the_others(lab, monkeypatch):
    rung = []

    @contextlib.contextmanager
    def counted(seconds):
        with limited_to(seconds) as rang:
            yield rang
        rung.append(bool(rang))

    monkeypatch.setattr("hood.authoring.proof.mutants.limited_to", counted)
    lab.write_text(LAB.replace("if x > limit:", "while x > limit:\n        x -= 1\n    if False:"))
    check = make_check()
    (right,) = rights(check, lab)
    judged = _Judge(check, list("abcdef"), LabCode.read(lab), right)
    times = []
    for mutant in mutants(right.cell, right.lines):
        rung.clear()
        judged.survived(mutant)
        times.append(sum(rung))
    assert max(times) == LATE


@pytest.mark.slow(2)
def test_the_time_limit_holds_if_a_cache_lacks_some_seeds(lab, monkeypatch):
    monkeypatch.setattr("hood.authoring.proof.mutants.LEAST_SECONDS", 0.01)

    @lru_cache(maxsize=1)
    def prepared(number):
        end = time.process_time() + 0.04
        while time.process_time() < end:
            pass
        return number

    check = Check("clipped", parts={"p": 1}, reads="r")
    check.reference(lambda x, top: min(x, top))

    @check.cases
    def _(draw):
        number = draw.integer(1, 10**9)
        for x, top in ((draw.integer(1, 5), 9), (draw.integer(10, 15), 9), (-3, -3)):
            yield Case("p", lambda subject, x=x, top=top: (prepared(number), subject(x, top)))

    survivors = survey(check, SEEDS, lab).survivors
    assert changes(survivors) == NO_MATTER
    assert all(trial.survived == len(SEEDS) for trial in survivors)


def test_time_in_given_cells_does_not_count(lab, monkeypatch):
    monkeypatch.setattr("hood.authoring.proof.mutants.LEAST_SECONDS", 0.01)
    lab.write_text(LAB.replace("import math", "total = sum(range(1_000_000))"))
    assert changes(survey(make_check(), SEEDS[:1], lab).survivors) == NO_MATTER


def test_code_that_is_wrong_before_any_change_is_refused(lab):
    lab.write_text(LAB.replace("x > limit", "x < limit"))
    with pytest.raises(UserError, match="clipped: the lab's solution fails a case"):
        survey(make_check(), SEEDS, lab)


def test_it_agrees_with_the_judge_about_every_mutant(lab):
    check, seed = make_check(at_top=False), "s"
    (right,) = rights(check, lab)
    verdicts = set()
    for mutant in mutants(right.cell, right.lines):
        thing = LabCode.read(lab).names_after(mutant.code)["clipped"]
        passed = first_failure(answer_key(check, seed), InProcess(thing)) is None
        verdicts.add(passed)
        assert passed == (judge(check, thing, seed).earned == check.points), str(mutant)
    assert verdicts == {True, False}


def test_the_case_that_failed_last_time_is_asked_first():
    check = make_check()
    asked = []
    thing = lambda x, top: asked.append(x) or 0  # noqa: E731
    assert first_failure(answer_key(check, "s"), InProcess(thing), suspect=2) == 2
    assert asked == [-3]


def test_a_keyboard_interrupt_is_not_taken_for_the_alarm():
    with pytest.raises(KeyboardInterrupt), limited_to(60):
        signal.raise_signal(signal.SIGINT)
    assert signal.getitimer(signal.ITIMER_PROF) == (0, 0)


def test_the_alarm_leaves_no_trace():
    before = signal.getsignal(signal.SIGPROF)
    reached = False
    with limited_to(0.05):
        while True:
            pass
        reached = True
    assert not reached
    assert signal.getsignal(signal.SIGPROF) is before
    assert gc.isenabled()


@pytest.fixture
def command(lab, tmp_path, monkeypatch):
    """Runs the command on a course of one lab; returns its status and output."""
    check = make_check()
    folder = tmp_path / "phases" / "01_small"
    folder.mkdir(parents=True)
    lab.rename(folder / "lab.py")
    monkeypatch.setattr(
        "hood.authoring.proof.selftest.load_checks", lambda folder: {check.name: check}
    )

    def run_with(*words):
        parser = argparse.ArgumentParser()
        add_arguments(parser)
        console = Console(width=200, record=True, file=io.StringIO())
        return run(parser.parse_args(words), tmp_path, console), console.export_text()

    return check, run_with


def test_the_command_fails_on_survivors_and_stale_explanations(command):
    check, run_with = command
    status, printed = run_with("01", "--seeds", "2")
    assert status == 1
    assert (
        "survived clipped, lab.py:12, on 2 of 2 seeds: "
        "`if x > limit:` became `if x >= limit:`" in printed
    )
    check.equivalents.append(Equivalent(">", ">=", "at the limit both are the limit"))
    status, printed = run_with("01")
    assert status == 0
    assert "survived" not in printed
    check.equivalents.append(Equivalent("x", "y", "no"))
    status, printed = run_with("01")
    assert status == 1
    assert "stale clipped" in printed


def test_the_command_refuses_impossible_arguments(command):
    _, run_with = command
    with pytest.raises(UserError, match="no exercise has that name"):
        run_with("--exercise", "clapped")
    with pytest.raises(UserError, match="at least 1"):
        run_with("--seeds", "0")
