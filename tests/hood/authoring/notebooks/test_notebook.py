"""Compact headers and nbgrader's metadata, verify's import, ids, regions."""

import subprocess
import sys
from dataclasses import replace

import pytest
from nbgrader.nbgraderformat import MetadataValidator

from hood.authoring.notebooks.notebook import (
    cell_ids,
    from_node,
    header_of,
    nbgrader_metadata,
    to_cells,
    to_node,
    to_notebook,
)
from hood.authoring.notebooks.regions import (
    BEGIN_HIDDEN,
    BEGIN_SOLUTION,
    END_HIDDEN,
    END_SOLUTION,
    regions,
)
from hood.authoring.notebooks.text import TextCell, parse
from hood.notebook_file import to_bytes
from hood.phase_paths import anchor
from tests.hood.authoring.example import lab

HIDDEN = f'assert f(1)\n{BEGIN_HIDDEN}\nverify("f", f)\n{END_HIDDEN}'


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ({}, None),
        ({"tags": ["a"]}, None),
        (
            {"given": "s"},
            {"grade_id": "s", "grade": False, "solution": False, "locked": True, "task": False},
        ),
        (
            {"solution": "x"},
            {"grade_id": "x_solution", "grade": False, "solution": True, "locked": False}
            | {"task": False},
        ),
        (
            {"test": "x", "points": 2},
            {"grade_id": "x", "grade": True, "solution": False, "locked": True, "task": False}
            | {"points": 2},
        ),
        (
            {"task": "x", "points": 3},
            {"grade_id": "x", "grade": False, "solution": False, "locked": True, "task": True}
            | {"points": 3},
        ),
    ],
)
def test_each_header_expands_and_contracts_unchanged(header, expected):
    assert nbgrader_metadata(header) == (expected and expected | {"schema_version": 3})
    kind = "markdown" if "task" in header else "code"
    assert header_of(to_node(TextCell(kind, "x", header), "id")) == header


def test_without_the_course_a_labs_first_cell_says_what_to_install(tmp_path):
    text = TextCell(
        "code", "import math\n\nfrom hood.learner.check import check", {"given": "setup"}
    )
    node = to_node(text, "setup")
    assert from_node(node) == text
    words = [sys.executable, "-IS", "-c", node.source]  # -S: without this environment's packages
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert "%pip install --editable FOLDER" in done.stderr
    assert "Traceback" not in done.stderr


OLD_GUARD = """\
try:
    from utils.notebook.verdict import check
except ModuleNotFoundError:
    raise SystemExit(
        "This lab needs utils, the course's own package, and this Python does not have it. "
        "Unpack the course's archive (open-the-hood.zip, from whoever gave you this lab), run "
        "%pip install --editable FOLDER in a cell, with that folder, and restart the kernel."
    ) from None

"""


def test_an_older_builds_lines_in_a_labs_first_cell_are_removed():
    text = TextCell(
        "code", "import math\n\nfrom utils.notebook.verdict import check", {"given": "s"}
    )
    node = to_node(text, "s")
    assert node.source == text.source
    node.source = OLD_GUARD + node.source
    assert from_node(node) == text


def test_a_labs_limits_are_added_to_its_introduction_and_not_to_its_text():
    header = "#   open_the_hood: {title: A, cell_seconds: 9, limits: {total_seconds: 40}}"
    words = "# # A lab\n#\n# Words.\n#\n# Start."
    graded = '\n# %% test="twice" points=2\nassert twice(1) == 2\n'
    text = parse(
        "lab.py", f"# ---\n# jupyter:\n{header}\n# ---\n\n# %% [markdown]\n{words}\n{graded}"
    )
    notebook = to_notebook(text)
    assert notebook.cells[0].source == (
        "# A lab\n\nWords.\n\nGrading stops a cell after 9 s, and the whole lab after 40 s. Cells "
        "of your own that no exercise needs have another 40 s, together.\n\nStart."
    )
    assert to_cells("lab.ipynb", notebook) == ([*text.cells], [])
    page = replace(text, cells=text.cells[:1])
    assert to_notebook(page).cells[0].source == text.cells[0].source


def test_the_code_of_a_drill_is_folded_away_and_its_header_comes_back():
    node = to_node(TextCell("code", "number(…)", {"tags": ["hide-input"]}), "id")
    assert node.metadata.jupyter.source_hidden
    assert header_of(node) == {"tags": ["hide-input"]}
    assert "jupyter" not in to_node(TextCell("code", "x", {"tags": ["other"]}), "id").metadata


def test_nbgrader_accepts_the_metadata():
    MetadataValidator().validate_nb(to_notebook(lab()))


def test_additions_of_nbgrader_and_jupyterlab_are_dropped():
    node = to_node(TextCell("code", "x = 1\n", {"test": "x", "points": 2}), "id")
    node.metadata.nbgrader |= {"checksum": "0" * 32, "cell_type": "code", "points": 2.0}
    node.metadata |= {"deletable": False, "trusted": True}
    node.execution_count = 3
    assert from_node(node) == TextCell("code", "x = 1", {"test": "x", "points": 2})


def test_a_cell_that_no_header_can_describe_is_refused():
    answer = to_node(TextCell("markdown", "x", {"task": "x", "points": 1}), "id")
    answer.metadata.nbgrader |= {"task": False, "grade": True, "solution": True}
    with pytest.raises(ValueError, match="manually graded task"):
        from_node(answer)
    stub = to_node(TextCell("code", "x", {"solution": "x"}), "id")
    stub.metadata.nbgrader["grade_id"] = "cell-1234"
    with pytest.raises(ValueError, match="must end in _solution"):
        from_node(stub)
    picture = to_node(TextCell("markdown", "x"), "id")
    picture["attachments"] = {"a.png": {}}
    with pytest.raises(ValueError, match="pasted image"):
        from_node(picture)


def test_the_import_before_the_hidden_line_is_added_and_removed():
    test = TextCell("code", HIDDEN, {"test": "f", "points": 1})
    node = to_node(test, "f")
    assert node.source.split("\n")[1:4] == [
        BEGIN_HIDDEN,
        "from hood.judge.verify import verify",
        'verify("f", f)',
    ]
    assert from_node(node) == test


def test_ids_are_nbgraders_or_follow_the_content():
    cells = [TextCell("code", "a"), TextCell("code", "b", {"given": "g"}), TextCell("code", "a")]
    ids = cell_ids(cells)
    assert ids[1] == "g"
    assert ids[2] == f"{ids[0]}-2"
    assert cell_ids([TextCell("code", "new"), *cells])[1:] == ids


def test_a_section_is_found_by_its_heading_alone():
    cells = [TextCell("markdown", f"## What `to` does, twice\n\n{text}") for text in ("a", "b")]
    assert cell_ids(cells) == ["what-to-does-twice", "what-to-does-twice-2"]
    assert anchor("What `to` does, twice") == "cell-id=what-to-does-twice"
    graded = TextCell("code", "check('twice')", {"test": "twice", "points": 1})
    assert cell_ids([TextCell("markdown", "## Twice"), graded]) == ["twice-2", "twice"]
    (long,) = cell_ids([TextCell("markdown", f"# {'word ' * 40}")])
    assert len(long) <= 60
    assert cell_ids([TextCell("markdown", "# ¿?")]) != [""]


def test_the_same_text_gives_the_same_bytes():
    first, second = (to_bytes(to_notebook(lab())) for _ in range(2))
    assert first == second
    assert first.endswith(b"}\n")
    assert b'"outputs": []' in first


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([BEGIN_SOLUTION, "x"], "has no '### END SOLUTION'"),
        (["x", END_SOLUTION], "has no partner"),
        ([BEGIN_SOLUTION, BEGIN_SOLUTION, END_SOLUTION], "has no partner"),
        (["# BEGIN SOLUTION", "x", END_SOLUTION], "alone on its line"),
        ([f"x = 1  {BEGIN_SOLUTION}", "x", END_SOLUTION], "alone on its line"),
        ([f"{BEGIN_SOLUTION} ", "x", END_SOLUTION], "without a space after it"),
    ],
)
def test_broken_delimiters_are_refused(lines, message):
    with pytest.raises(ValueError, match=message):
        regions("\n".join(lines), BEGIN_SOLUTION, END_SOLUTION)


def test_regions_give_the_lines_of_their_delimiters():
    source = f"a\n  {BEGIN_SOLUTION}\nb\n  {END_SOLUTION}\n{BEGIN_SOLUTION}\n{END_SOLUTION}"
    assert regions(source, BEGIN_SOLUTION, END_SOLUTION) == [(1, 3), (4, 5)]
