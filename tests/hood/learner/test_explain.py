"""The text about an exercise for a chat, and what a coding assistant reads beside it."""

import argparse

import nbformat
import pytest
from nbformat.v4 import new_output

from hood import UserError
from hood.learner import agents, explain
from hood.metadata import stamp
from hood.phase_paths import ROOT
from hood.verdict import VERDICT_MIME
from tests.hood.tiny import write

LAB = "00_hello"
RELEASE = ROOT / "release" / LAB / f"{LAB}.ipynb"
ANSWER = "def grid_size(n, block):\n    return n // block  # ```"


@pytest.fixture
def root(tmp_path):
    (tmp_path / "course.toml").write_bytes((ROOT / "course.toml").read_bytes())
    return tmp_path


def explained(root, capsys, hints=0, name="grid_size"):
    assert explain.run(argparse.Namespace(exercise=name, hints=hints), root) == 0
    return capsys.readouterr().out


def answered(root, judged=ANSWER):
    """Write a copy with a verdict on the given text of the answer."""
    nb = nbformat.read(RELEASE, as_version=4)
    stub = next(c for c in nb.cells if c.cell_type == "code" and "def grid_size(" in c.source)
    stub.source = ANSWER
    graded = next(c for c in nb.cells if 'check("grid_size")' in c.source)
    data = {"text/plain": "grid_size: 1 of 3", VERDICT_MIME: {"status": "wrong", "earned": 1}}
    graded.outputs = [new_output("display_data", data=data, metadata=stamp([judged]))]
    return write(nb, root / "work" / LAB / f"{LAB}.ipynb")


def test_it_has_the_question_the_code_and_the_last_verdict(root, capsys):
    answered(root)
    text = explained(root, capsys)
    question, _, rest = text.partition("\n\nMy answer:\n\n````python\n")
    assert question.startswith("## 1 ")
    assert rest.startswith(ANSWER)
    assert rest.endswith("What its check said:\n\n```text\ngrid_size: 1 of 3\n```\n")
    assert "changed my answer" not in text


def test_a_verdict_of_another_answer_says_so(root, capsys):
    answered(root, judged="def grid_size(n, block): ...")
    assert explained(root, capsys).endswith("I have changed my answer since this check.\n")


def test_hints_come_one_at_a_time_and_never_an_answer(root, capsys):
    write(nbformat.read(RELEASE, as_version=4), root / "release" / LAB / f"{LAB}.ipynb")
    source = nbformat.read(ROOT / "source" / LAB / f"{LAB}.ipynb", as_version=4)
    (question,) = [c.source for c in source.cells if c.source.startswith("## 1 ")]
    hints = explain.HINT.findall(question)
    assert hints
    for shown in range(len(hints) + 2):
        text = explained(root, capsys, hints=shown)
        assert [hint.strip() in text for hint in hints] == [n < shown for n in range(len(hints))]
        left = max(len(hints) - shown, 0)
        assert (f"({left} hint" in text) == bool(left)
        assert "has not run on this answer" in text
        assert "BEGIN" not in text


def test_an_unknown_name_brings_similar_names(root):
    answered(root)
    with pytest.raises(UserError, match=r"'grid_sise'; did you mean grid_size\?"):
        explain.run(argparse.Namespace(exercise="grid_sise", hints=0), root)
    with pytest.raises(UserError, match="no lab here has an exercise called 'zzz'$"):
        explain.run(argparse.Namespace(exercise="zzz", hints=0), root)


@pytest.mark.parametrize("checks", [False, True])
def test_the_file_for_assistants_never_replaces_a_learners_file(root, checks):
    (root / "work").mkdir()
    if checks:
        (root / "phases").mkdir()
    agents.write(root)
    text = (root / "work" / "AGENTS.md").read_text()
    assert ("phases/" in text) is checks
    assert (root / "work" / "CLAUDE.md").read_text() == "@AGENTS.md\n"
    (root / "work" / "AGENTS.md").write_text(agents.FIRST + "of an older version")
    (root / "work" / "CLAUDE.md").write_text(f"{agents.POINTER}And a line of mine.")
    agents.write(root)
    assert (root / "work" / "AGENTS.md").read_text() == text
    assert (root / "work" / "CLAUDE.md").read_text().endswith("And a line of mine.")
    (root / "work" / "AGENTS.md").write_bytes(b"\xff mine")
    agents.write(root)
    assert (root / "work" / "AGENTS.md").read_bytes() == b"\xff mine"
