"""Some errors are shown in one line; all others keep their traceback."""

import json

import pytest
from IPython.core.interactiveshell import InteractiveShell

from hood.judge import history
from hood.learner import one_line
from utils.notebook import compile_errors

STUB = 'def f(x):\n    raise NotImplementedError("write your answer here")'
COMPILES = "import torch; torch._dynamo.reset(); torch.compile(lambda x: x * 3 + 1)(torch.ones(5))"


@pytest.fixture
def shell(monkeypatch):
    made = InteractiveShell()
    monkeypatch.setattr(one_line, "get_ipython", lambda: made)
    monkeypatch.delenv(one_line.NBGRADER, raising=False)
    one_line.install()
    return made


def test_an_unwritten_answer_is_one_line(shell, capsys):
    shell.run_cell(STUB)
    capsys.readouterr()
    result = shell.run_cell("f(1)")
    assert isinstance(result.error_in_exec, NotImplementedError)  # so Run All stops
    said = capsys.readouterr().out.strip()
    assert said == "f: not written yet. Replace its `raise` line with your answer."


def test_an_unwritten_method_is_named_with_its_class(shell, capsys):
    shell.run_cell("class A:\n" + "\n".join(f"    {line}" for line in STUB.splitlines()))
    shell.run_cell("A.f(1)")
    assert capsys.readouterr().out.strip().startswith("A.f: not written yet.")


@pytest.mark.slow(3)
@pytest.mark.usefixtures("nothing_compiles")
def test_a_missing_compiler_is_one_line_with_the_command(shell, capsys):
    for code in (COMPILES, "from utils.instruments import toolchain; toolchain.require_compiler()"):
        result = shell.run_cell(code)
        assert isinstance(result.error_in_exec, RuntimeError)
        said = capsys.readouterr().out.strip()
        assert said.startswith("not run, because torch.compile writes C++ and there is no g++")
        assert "\n" not in said


@pytest.mark.parametrize(
    "error", ['NotImplementedError("no kernel for this dtype")', 'RuntimeError("CppCompileError")']
)
def test_other_errors_keep_their_traceback(shell, capsys, error, monkeypatch):
    monkeypatch.setattr(compile_errors, "inductor_lacks", lambda: None)
    shell.run_cell(f"raise {error}")
    said = capsys.readouterr().out
    assert "Traceback" in said
    assert error.split('"')[1] in said


def test_below_a_verdict_the_answers_error_is_one_line(shell, capsys, monkeypatch):
    """The traceback is in the cell above, and the verdict says what went wrong."""
    shell.run_cell("def double(x):\n    return 2 * x.absent")
    cell = "after_verdict()\ndouble(1)"
    monkeypatch.setattr(history, "running", lambda: cell)
    monkeypatch.setattr(one_line, "_judged", [""])
    shell.user_ns["after_verdict"] = one_line.after_verdict
    result = shell.run_cell(cell)
    assert isinstance(result.error_in_exec, AttributeError)
    assert capsys.readouterr().out.strip() == (
        "AttributeError: 'int' object has no attribute 'absent' (in `double`). "
        "The rest of this cell did not run."
    )


def test_the_next_cell_has_its_traceback_again(shell, capsys, monkeypatch):
    monkeypatch.setattr(one_line, "_judged", ["the cell before"])
    monkeypatch.setattr(history, "running", lambda: "1 / 0")
    shell.run_cell("1 / 0")
    assert "Traceback" in capsys.readouterr().out


@pytest.fixture
def notebook(shell, monkeypatch, tmp_path):
    """Runs cells of a saved notebook of the course by their ids."""
    texts = {
        "setup": "from math import pi as check",
        "answer": "def twice(x):\n    return 2 * x",
        "magic": "%matplotlib agg\nhidden = 1",
        "graded": "twice(check)",
        "typo": "cheque",
        "late": "later",
        "after": "later = 1",
    }
    path = tmp_path / "lab.ipynb"
    cells = [{"cell_type": "code", "id": name, "source": text} for name, text in texts.items()]
    path.write_text(json.dumps({"cells": cells}))
    monkeypatch.setattr(one_line, "own_notebook", lambda: path)
    monkeypatch.setattr(history, "get_ipython", lambda: shell)
    monkeypatch.setattr(history, "_cells", {})
    history.install(shell)

    def run(name, text=None):
        shell.run_cell(text or texts[name], store_history=True, cell_id=name)

    run.path = path
    return run


def test_a_name_from_a_cell_that_has_not_run_is_reported_with_the_cell(notebook, capsys):
    notebook("graded")
    said = capsys.readouterr().out
    assert said.startswith("`twice` is not defined: a cell above defines it, but has not run")
    assert "Run All Above Selected Cell" in said.replace("\n", " ")
    assert "Traceback" not in said
    assert max(map(len, said.splitlines())) <= one_line.COLUMNS
    notebook("answer")
    capsys.readouterr()
    notebook("graded")
    assert capsys.readouterr().out.startswith("`check` is not defined: a cell above defines it")
    notebook("setup")
    capsys.readouterr()
    notebook("graded")
    assert "6.28" in capsys.readouterr().out


def test_a_cell_that_ended_in_an_error_has_not_run_to_its_end(notebook, capsys):
    notebook("setup", "raise SystemError")
    capsys.readouterr()
    notebook("answer")
    notebook("graded")
    assert capsys.readouterr().out.startswith("`check` is not defined: a cell above defines it")


@pytest.mark.parametrize("name", ["typo", "late"])
def test_a_name_that_no_cell_above_defines_keeps_its_traceback(notebook, capsys, name):
    notebook(name)
    said = capsys.readouterr().out
    assert "Traceback" in said
    assert "NameError" in said


@pytest.mark.parametrize("content", ["{", '{"cells": 3}', '{"cells": [{}]}'])
def test_a_notebook_that_cannot_be_read_changes_nothing(notebook, capsys, content):
    notebook.path.write_text(content)
    notebook("graded")
    assert "Traceback" in capsys.readouterr().out
