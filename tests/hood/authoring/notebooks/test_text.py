"""Texts are parsed into cells, and written back byte for byte."""

import pytest

from hood.authoring.notebooks.notebook import to_cells, to_notebook
from hood.authoring.notebooks.text import TextCell, assemble, parse
from tests.hood.authoring.example import HEADER, LAB, LESSON, lab

ODD = (
    HEADER
    + '''\
# %%
text = """
# %% not a header
"""

# %% [markdown]
"""
# Prose in quotes
"""


# %% given="single"
x = 1


# %%
# %timeit x
!ls

# %% tags=["raises-exception"]
def f():
    return 1

f()
# %% [markdown]
# No line above this one, none below.
'''
)


def test_a_cell_has_kind_header_source_and_line():
    setup = lab().cells[1]
    assert (setup.kind, setup.header, setup.name) == ("code", {"given": "setup"}, "setup")
    assert setup.source == "import math\n\nimport utils\nfrom hood.learner.check import check"
    assert LAB.splitlines()[setup.line - 1] == '# %% given="setup"'


def test_a_header_line_inside_a_string_opens_no_cell():
    text = parse("t.py", ODD)
    assert text.problems == ()
    assert "# %% not a header" in text.cells[0].source
    assert [cell.kind for cell in text.cells][:3] == ["code", "markdown", "code"]


@pytest.mark.parametrize("content", [LAB, LESSON, ODD])
def test_text_to_notebook_to_text_is_the_identity(content):
    text = parse("t.py", content)
    cells, problems = to_cells("n.ipynb", to_notebook(text))
    assert problems == []
    assert list(text.cells) == cells
    assert assemble(text, cells) == content


def test_only_the_edited_cell_changes_its_bytes():
    text = parse("t.py", ODD)
    cells = list(text.cells)
    cells[2] = TextCell("code", "x = 2", {"given": "single"})
    assert assemble(text, cells) == ODD.replace(
        '# %% given="single"\nx = 1\n\n\n', '# %% given="single"\nx = 2\n\n'
    )


def test_a_cell_is_added_or_removed_at_the_end():
    text = parse("t.py", LESSON)
    longer = assemble(text, [*text.cells, TextCell("code", "x = 1")])
    assert longer == LESSON + "\n# %%\nx = 1\n"
    shorter = assemble(text, text.cells[:-1])
    assert shorter == LESSON[: LESSON.index("\n# %% tags")]


def test_header_keys_are_sorted():
    cell = TextCell("code", "x", {"tags": ["a"], "points": 2.5, "test": "t"})
    assert assemble(parse("t.py", HEADER), [cell]).endswith(
        '# %% test="t" points=2.5 tags=["a"]\nx\n'
    )


def test_fingerprints_depend_on_kind_header_and_source():
    cells = [
        TextCell("code", "x"),
        TextCell("markdown", "x"),
        TextCell("code", "y"),
        TextCell("code", "x", {"given": "x"}),
    ]
    assert len({cell.fingerprint for cell in cells}) == 4
    assert TextCell("code", "x", line=3).fingerprint == cells[0].fingerprint


@pytest.mark.parametrize(
    ("title", "says"),
    [("a\x01b", "special characters are not allowed"), ("2026-13-01", "month must be in 1..12")],
)
def test_a_header_that_yaml_cannot_read_is_a_problem(title, says):
    header = f"# ---\n# jupyter:\n#   open_the_hood:\n#     title: {title}\n# ---\n\n# %%\n1\n"
    [problem, *_] = parse("lesson.py", header).problems
    assert says in str(problem)
