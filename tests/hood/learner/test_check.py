"""`check` in a lab: when it judges, and when it stays silent."""

import pytest
from IPython.core.interactiveshell import InteractiveShell

from hood.audience import NBGRADER
from hood.judge import history
from hood.learner import check as asking


@pytest.fixture
def asked(monkeypatch):
    """Names that the grader judged."""
    names = []
    monkeypatch.delenv(NBGRADER, raising=False)
    monkeypatch.setattr("hood.learner.local_judge.show_verdict", names.append)
    return names


@pytest.fixture
def shell(monkeypatch):
    made = InteractiveShell()
    for module in (asking, history):
        monkeypatch.setattr(module, "get_ipython", lambda: made)
    monkeypatch.setattr(history, "_cells", {})
    history.install(made)
    monkeypatch.delenv(NBGRADER, raising=False)
    return made


def test_the_grader_is_asked(asked):
    asking.check("byte_offset")
    assert asked == ["byte_offset"]


@pytest.mark.parametrize("by", ["autograde", "validate"])
def test_nothing_is_judged_while_nbgrader_runs_the_notebook(asked, monkeypatch, by):
    monkeypatch.setenv(NBGRADER, by)
    asking.check("byte_offset")
    assert asked == []


def test_the_instructors_copy_judges_once(asked, shell):
    shell.user_ns.update(check=asking.check, verify=lambda *_: 2.0)
    shell.run_cell('check("f")\nverify("f", 1)', store_history=True)
    assert asked == []
    shell.run_cell('check("f")', store_history=True)
    assert asked == ["f"]


def test_a_lab_opened_in_the_release_links_the_copy(shell, monkeypatch, tmp_path):
    shown = []
    monkeypatch.setattr(asking, "display", lambda words: shown.append(words.data))
    released, mine = (tmp_path / name / "01_tensors" for name in ("release", "work"))
    for folder in (released, mine, tmp_path / "elsewhere" / "release" / "01_tensors"):
        folder.mkdir(parents=True)
        monkeypatch.chdir(folder)
        asking.say_where_to_work(tmp_path)
    [words] = shown
    assert "`python -m hood.learner.copies`" in words
    (mine / "01_tensors.ipynb").write_text("{}")
    monkeypatch.chdir(released)
    asking.say_where_to_work(tmp_path)
    assert "[work/01_tensors](../../work/01_tensors/01_tensors.ipynb)" in shown[1]
    monkeypatch.setenv(NBGRADER, "validate")
    asking.say_where_to_work(tmp_path)
    assert len(shown) == 2
