"""Execution: failures name the text's line; outputs contain no trace of this machine."""

import os
from pathlib import Path

import nbformat.v4 as v4
import pytest

from hood.authoring import execute
from hood.authoring.execute import (
    failing_line,
    kernel_environment,
    number_problems,
    output_problems,
    run_page,
    tidy,
)
from hood.authoring.notebooks.notebook import to_notebook
from hood.authoring.notebooks.text import Refused
from hood.course import ENGINE
from tests.hood.authoring.example import LESSON, lesson

# The header of the first code cell.
CODE_LINE = LESSON[: LESSON.index("# %%\n")].count("\n") + 1


def executed(**outputs):
    """Return the example's notebook as if executed, with these outputs in its second cell."""
    notebook = to_notebook(lesson())
    for count, node in enumerate(notebook.cells[1:], start=1):
        node.execution_count = count
    notebook.cells[1].outputs = [v4.new_output("display_data", data=outputs)] if outputs else []
    return notebook


def problems(notebook):
    """Return the messages about the outputs."""
    return [str(problem) for problem in output_problems(lesson(), notebook, 0)]


@pytest.mark.slow(1)
def test_a_failing_cell_is_reported_with_the_line_of_the_text(project):
    content = LESSON + "\n# %%\nimport tempfile\nprint(os.getpid(), tempfile.mkdtemp())\n\n1 / 0\n"
    notebook = to_notebook(lesson(content))
    with pytest.raises(Refused) as refused:
        run_page(notebook, lesson(content), project.root)
    line = content.split("\n").index("1 / 0") + 1
    assert str(refused.value) == (
        f"phases/01_rows/lesson.py:{line}: ZeroDivisionError: division by zero"
    )
    kernel, temporary = notebook.cells[-1].outputs[0].text.split()
    with pytest.raises(ProcessLookupError):
        os.kill(int(kernel), 0)
    assert not Path(temporary).exists()


@pytest.mark.slow(2)
def test_an_endless_cell_is_stopped(project, monkeypatch):
    monkeypatch.setattr(execute, "CELL_SECONDS", 1)
    content = LESSON[: LESSON.index("# %%\nimport os")] + "# %%\nwhile True: pass\n"
    with pytest.raises(Refused, match=rf"lesson.py:{CODE_LINE}: still running after 1 s"):
        run_page(to_notebook(lesson(content)), lesson(content), project.root)


@pytest.mark.slow(2)
def test_each_execution_has_an_empty_compile_cache(project, monkeypatch):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "/before")
    ask = (
        "# %%\nimport os\nprint(os.environ['TORCHINDUCTOR_CACHE_DIR'], os.path.exists('/before'))\n"
    )
    content = LESSON[: LESSON.index("# %%\nimport os")] + ask
    said = [
        run_page(to_notebook(lesson(content)), lesson(content), project.root)
        .cells[-1]
        .outputs[0]
        .text
        for _ in range(2)
    ]
    assert said[0] != said[1]
    assert all("/before " not in text for text in said)


def test_the_kernel_can_import_utils_and_knows_that_it_is_a_build(project, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "/before")
    environment = kernel_environment(project.root)
    assert environment["PYTHONPATH"] == f"{project.root}:{ENGINE}:/before"
    assert environment["OPEN_THE_HOOD_BUILD"] == "1"


def test_tidy_removes_timings_versions_and_paths(project):
    notebook = executed(**{"text/plain": f"{project.root}/utils/a.py"})
    notebook.cells[1].metadata["execution"] = {"iopub.status.busy": "now"}
    notebook.metadata["widgets"] = {}
    notebook.metadata["language_info"]["version"] = "3.11.7"
    warning = "/tmp/ipykernel_12/345.py:1: W\n/x/lib/python3.11/site-packages/torch/a.py:2: W"
    notebook.cells[2].outputs = [v4.new_output("stream", name="stderr", text=warning)]
    tidy(notebook, project.root)
    assert notebook.cells[1].outputs[0].data["text/plain"] == "./utils/a.py"
    assert notebook.cells[2].outputs[0].text == "cell.py:1: W\nsite-packages/torch/a.py:2: W"
    assert "execution" not in notebook.cells[1].metadata
    assert "widgets" not in notebook.metadata
    assert "version" not in notebook.metadata["language_info"]


def test_sound_outputs_are_accepted():
    assert problems(executed(**{"text/html": '<img alt="A strip.">', "text/plain": "x"})) == []


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"image/png": "aGk="}, "an image/png output has no alternative text"),
        ({"text/html": "<img src='x'>"}, "<img> without alternative text"),
        ({"application/vnd.jupyter.widget-view+json": {}}, "a live widget"),
    ],
)
def test_unsound_outputs_are_refused(data, message):
    (problem,) = problems(executed(**data))
    assert problem.startswith(f"phases/01_rows/lesson.py:{CODE_LINE}: ")
    assert message in problem


def test_a_cell_without_execution_and_an_unexpected_error_are_refused():
    notebook = executed()
    notebook.cells[2].execution_count = None
    notebook.cells[1].outputs = [
        v4.new_output(
            "error", ename="KeyError", evalue="'x'", traceback=["Cell In[1], line 5", "KeyError"]
        )
    ]
    error, missing = problems(notebook)
    assert error.endswith(f":{CODE_LINE + 5}: KeyError: 'x'")
    assert missing.endswith("was not executed")
    assert failing_line(notebook.cells[1]) == 4


def test_an_expected_error_is_accepted():
    notebook = executed()
    notebook.cells[2].outputs = [
        v4.new_output("error", ename="ValueError", evalue="", traceback=[])
    ]
    assert problems(notebook) == []


COUNTED = """
# %% [markdown]
# # Numbers

# %%
numbers

# %% [markdown] tags=["printed {}"]
# The row has 16,384 numbers, and the mean is 0.84. In 2.5 of them nothing is stored.
"""


@pytest.mark.parametrize(
    ("said", "shown", "refusal"),
    [
        ("16384", {"text/plain": "16384 numbers"}, None),
        ("0.84", {"text/html": "<p>the mean is <b>0.8416</b></p>"}, None),  # with more decimals
        ("0.84", {"text/plain": "0.85"}, "(the nearest are [0.85])"),
        ("16384", {"text/plain": "16384.7"}, "(the nearest are [16384.7])"),
        ("0.84", {"text/html": "<style>p { opacity: 0.84 }</style><p>0.9</p>"}, "[0.9]"),
        ("7", {"text/plain": "7"}, "the tag 'printed 7' names no number of this cell"),
        ("many", {"text/plain": "7"}, "the tag 'printed many' names no number of this cell"),
    ],
)
def test_a_number_that_a_text_repeats_must_be_in_an_output(said, shown, refusal):
    content = LESSON[: LESSON.index("# %%\n")] + COUNTED.format(said).lstrip("\n")
    notebook = to_notebook(lesson(content))
    notebook.cells[-2].outputs = [v4.new_output("display_data", data=shown)]
    found = [str(problem) for problem in number_problems(lesson(content), notebook)]
    assert len(found) == (refusal is not None)
    assert all(refusal in one for one in found)


def test_a_number_must_be_in_an_output_of_the_same_section():
    content = LESSON[: LESSON.index("# %%\n")] + COUNTED.format("0.84").lstrip("\n")
    content = content.replace("# The row has", "# ## Next\n#\n# The row has")
    notebook = to_notebook(lesson(content))
    notebook.cells[-2].outputs = [v4.new_output("display_data", data={"text/plain": "0.84"})]
    (problem,) = number_problems(lesson(content), notebook)
    assert "no output since the last heading has: correct" in str(problem)
