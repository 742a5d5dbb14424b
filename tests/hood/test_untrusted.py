"""A learner's code may have written anything: each reader accepts one type, within bounds."""

import json
from dataclasses import asdict
from types import SimpleNamespace

import nbformat
import pytest

from hood import untrusted
from hood.classroom.gradebook.graded import read_graded
from hood.grader.run_record import RunRecord, problem_of
from hood.metadata import KEY
from hood.verdict import MAX_CALL, Cause, Example, Status, Verdict

ANYTHING = (None, True, 3, -2.5, "text", "x" * 10_000, [], [[]] * 999, {}, {"a": {"b": [1]}})
HOSTILE = (*ANYTHING, float("nan"), float("inf"), 10**400, {str(n): n for n in range(999)})


def test_a_value_of_the_type_is_returned():
    assert untrusted.mapping({"a": 1}) == {"a": 1}
    assert untrusted.sequence([1, "a"]) == [1, "a"]
    assert untrusted.text("seed") == "seed"
    assert untrusted.number(3) == 3.0
    assert untrusted.number(-2.5) == -2.5
    assert untrusted.truth(False) is False
    assert untrusted.member(Status, "wrong", Status.NOT_RUN) is Status.WRONG


@pytest.mark.parametrize(
    ("read", "missing", "right"),
    [
        (untrusted.mapping, {}, dict),
        (untrusted.sequence, [], list),
        (untrusted.text, "", str),
        (untrusted.number, None, (int, float)),
        (untrusted.truth, None, bool),
        (lambda raw: untrusted.member(Cause, raw, Cause.NONE), Cause.NONE, Cause),
    ],
    ids=["mapping", "sequence", "text", "number", "truth", "member"],
)
def test_a_value_of_another_type_counts_as_missing(read, missing, right):
    others = [raw for raw in HOSTILE if not isinstance(raw, right)]
    assert len(others) > 5
    for raw in others:
        assert read(raw) == missing, raw


def test_an_examples_call_is_read_whole():
    call = "f(\n" + "    [1.0, 2.0],\n" * 60 + ")"
    example = Example(call, "2", "3", before=("x = " + "1" * MAX_CALL,))
    assert len(call) > 2 * untrusted.MAX_TEXT
    assert Example.from_json(json.loads(json.dumps(asdict(example)))) == example
    assert len(Example.from_json({"call": "x" * 10_000}).call) == 2 * MAX_CALL


def test_sizes_are_bounded():
    assert untrusted.text("x" * 10_000) == "x" * untrusted.MAX_TEXT
    assert len(untrusted.sequence([0] * 10_000)) == untrusted.MAX_ENTRIES
    for raw in (float("nan"), float("inf"), 10**400, 1e9, -1e9, True):
        assert untrusted.number(raw) is None, raw


@pytest.mark.parametrize("raw", HOSTILE, ids=lambda raw: str(raw)[:12])
def test_records_and_verdicts_are_read_from_any_data(raw):
    """Any value may replace a field: no reader raises an error, and the types are right."""
    fields = ("check", "points", "status", "parts", "reads", "seed", "explanations", "claims")
    for data in (raw, dict.fromkeys(fields, raw), {"parts": [raw, {"example": raw}]}):
        verdict = Verdict.from_json(data)
        assert isinstance(verdict.points, float)
        assert len(json.dumps(verdict.to_json())) < 500_000
        assert all(isinstance(part.status, Status) for part in verdict.parts)
        run = RunRecord.of({KEY: data})
        assert isinstance(run.seed, str)
        assert run.sandbox is None or isinstance(run.sandbox, bool)
    run = RunRecord.of(
        {KEY: dict.fromkeys(("seed", "sandbox", "seconds", "notes", "earlier"), raw)}
    )
    assert run.seconds is None or isinstance(run.seconds, float)
    assert all(isinstance(note.message, str) for note in run.notes)
    assert all(isinstance(said, str) for said in run.earlier.values())
    cell = SimpleNamespace(metadata={KEY: {"seconds": raw, "problem": raw}})
    assert isinstance(problem_of(cell), str)


@pytest.mark.parametrize("raw", ANYTHING, ids=lambda raw: str(raw)[:12])
def test_a_graded_notebook_is_read_with_any_metadata(tmp_path, raw):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell()])
    notebook.cells[0].metadata = {"execution": raw, KEY: raw}
    notebook.metadata = {KEY: raw}
    path = tmp_path / "lab.ipynb"
    path.write_text(json.dumps(notebook))
    graded = read_graded(path)
    assert graded.problem == ""
    assert graded.seed == ""


@pytest.mark.parametrize(
    "said",
    [
        "\x1b[31mred\x1b[0m",
        "\x1b[38;5;1mred",
        "\x1b]8;;http://somewhere\x1b\\red\x1b]8;;\x1b\\",
        "\x1b]0;a title\x07red",
        "red\x1b[3",  # cut off
        "red\x1b]8;;http://so",
    ],
)
def test_terminal_control_codes_are_removed(said):
    assert untrusted.seen(said) == "red"
