"""The page about wrong verdicts agrees with the record, and the record with the judged answers."""

import dataclasses
import re

import pytest

from hood import UserError
from hood.authoring.proof import claims
from hood.judge.catalogue import load_checks
from hood.phase_paths import ROOT, phases
from tests.phases import verdict_errors
from tests.phases.bank import BANKS
from tests.phases.verdict_errors import PAGE, Row, main, recorded, with_tables

CONTENT = (ROOT / PAGE).read_text(encoding="utf-8")
ROW = Row(
    *("01_tensors", "broadcast", "2030-01-02", "0123abcdef", 3, 60),
    *(2, 21, 3, 7, 250, 40, 1, 4.0, 0.0, 0.0, 1.0, 1.0),
)


@pytest.fixture
def of_its_own(tmp_path, monkeypatch):
    """An empty record."""
    monkeypatch.setattr(verdict_errors, "RECORD", tmp_path / "record.csv")
    return tmp_path / "record.csv"


def test_the_page_is_made_from_the_record():
    command = "python -m tests.phases.verdict_errors --page"
    assert with_tables(CONTENT, recorded()) == CONTENT, f"`{command}` writes it again"


def test_every_lab_and_exercise_is_in_the_page():
    for number, bank in BANKS.items():
        _, found, of_lab = CONTENT.partition(f"\n### {bank.phase.name}\n")
        assert found
        of_lab = of_lab.partition("\n### ")[0]
        names = list(load_checks(bank.phase.folder))
        assert sorted(names) == bank.exercises
        for name in names:
            assert f"\n| {name}: [author](" in of_lab, f"{number}, {name}"


def test_the_record_counts_the_points_that_the_walls_do():
    rows = recorded().values()
    counted = claims.rows_of((ROOT / claims.PAGE).read_text(encoding="utf-8"))
    for phase in phases():
        own = [row for row in rows if row.lab == phase.name]
        if len(own) == len(load_checks(phase.folder)) and not any(row.not_run for row in own):
            found = [(row.points, row.on_claims, row.on_rules, row.on_either) for row in own]
            total = sum((claims.Count(*numbers) for numbers in found), claims.Count())
            again = f"`{verdict_errors.COMMAND} {phase.number}` counts them again"
            assert total == counted[phase.name], again


def test_a_row_comes_back_from_the_record(of_its_own):
    wrong = dataclasses.replace(ROW, refused=('one, "or" two', "a; b"), missed=("lab.py:3: a | b",))
    other = dataclasses.replace(ROW, exercise="bytes_of", seeds=1)
    for row in (ROW, other, wrong):
        verdict_errors.record(row)
    assert list(recorded().values()) == [wrong, other]


def test_an_answer_that_is_judged_wrongly_is_named_with_its_file():
    row = dataclasses.replace(ROW, misjudged=("a*b",), missed=("lab.py:3: `a_b` became `c`",))
    said = with_tables(CONTENT, {(row.lab, row.exercise): row})
    begins = "\n- 01_tensors, [broadcast](../../phases/01_tensors/answers/broadcast.toml): the "
    assert (
        f"{begins}author's wrong answer “a\\*b” gets the wrong points or the wrong name.\n" in said
    )
    assert f"{begins}mutant “lab.py:3: `a_b` became `c`” earns all points.\n" in said
    assert "| 38 of 40, sampled from 250 (95.0 %) | 1 | 1 |" in said


def test_what_is_not_measured_has_no_numbers():
    said = with_tables(CONTENT, {("01_tensors", "broadcast"): ROW})
    assert said.count("\nThis lab is not measured yet.\n") == len(BANKS) - 1
    row = next(line for line in said.splitlines() if line.startswith("| bytes_of: "))
    assert row.split(" | ", 1)[1].strip("| ") == "not measured yet"
    line = next(line for line in said.splitlines() if line.startswith("| [02_autograd]"))
    assert line.split(" | ")[1:4] == ["0 of 12", "not measured yet", ""]


def test_a_page_without_a_place_for_the_tables_is_refused():
    with pytest.raises(UserError, match="expected the lines"):
        with_tables("# A page\n", {})


def test_a_row_is_fresh_until_what_decides_it_changes_or_more_seeds_are_asked(monkeypatch):
    phase = BANKS["01"].phase
    monkeypatch.setattr(verdict_errors, "commit", lambda phase: "0123abcdef")
    assert verdict_errors.is_fresh(ROW, phase, 3)
    assert not verdict_errors.is_fresh(ROW, phase, 4)
    assert not verdict_errors.is_fresh(None, phase, 3)
    monkeypatch.setattr(verdict_errors, "commit", lambda phase: "0123abcdef+")
    assert not verdict_errors.is_fresh(dataclasses.replace(ROW, commit="0123abcdef+"), phase, 3)
    assert not verdict_errors.is_fresh(ROW, phase, 3)


def test_what_decides_a_row_has_a_commit():
    phase = BANKS["01"].phase
    assert all((ROOT / path).exists() for path in verdict_errors._decides(phase))
    assert re.fullmatch(r"[0-9a-f]{10,}\+?", verdict_errors.commit(phase))


@pytest.mark.slow(3)
def test_the_command_judges_an_exercise_and_records_nothing_unless_told(capsys, of_its_own):
    assert main(["00", "--exercise", "grid_size", "--seeds", "1"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("lab '00_hello'; exercise 'grid_size'; ")
    assert "seeds '1'" in said
    assert "refused ''; misjudged ''; refused_of_others ''; let_through_of_others ''" in said
    assert not of_its_own.exists()


@pytest.mark.slow(2)
def test_a_wrong_verdict_is_counted(monkeypatch):
    """The checks accept each wrong answer of the bank, and mutants earn all points."""
    phase = BANKS["00"].phase
    check = load_checks(phase.folder)["grid_size"]
    bank = BANKS["00"]
    monkeypatch.setattr(type(bank), "earns_everything", lambda *_: True)
    row = verdict_errors.measure(phase, check, ["errors-0"])
    wrong = tuple(answer.name for answer in bank.of("grid_size") if not answer.right)
    assert row.let_through_of_others == wrong
    assert row.refused_of_others == ()
