"""Small notebooks of nbgrader and Otter Assign, made from their cells' sources."""

from __future__ import annotations

from pathlib import Path

import nbformat
import nbformat.v4
from nbformat import NotebookNode

SOLUTION = {"grade": False, "solution": True, "locked": False}
TESTS = {"grade": True, "solution": False, "locked": True}
ANSWER = {"grade": True, "solution": True, "locked": False}
TASK = {"grade": False, "solution": False, "locked": True, "task": True}
GIVEN = {"grade": False, "solution": False, "locked": True}


def code(source: str, name: str = "", output: str = "", **settings: object) -> NotebookNode:
    """Return a code cell. With a name it has nbgrader's settings."""
    cell = nbformat.v4.new_code_cell(source)
    if name:
        cell.metadata["nbgrader"] = {"schema_version": 3, "grade_id": name, **settings}
    if output:
        data = {"text/plain": output}
        cell.outputs = [nbformat.v4.new_output("execute_result", data=data)]
    return cell


def words(source: str, name: str = "", **settings: object) -> NotebookNode:
    """Return a Markdown cell. With a name it has nbgrader's settings."""
    cell = nbformat.v4.new_markdown_cell(source)
    if name:
        cell.metadata["nbgrader"] = {"schema_version": 3, "grade_id": name, **settings}
    return cell


def raw(source: str) -> NotebookNode:
    return nbformat.v4.new_raw_cell(source)


def question(
    config: str,
    text: str,
    solution: list[NotebookNode],
    tests: list[NotebookNode] = (),  # type: ignore[assignment]
) -> list[NotebookNode]:
    """Return the cells of a question of Otter Assign."""
    cells = [raw(f"# BEGIN QUESTION\n{config}"), words(text)]
    cells += [raw("# BEGIN SOLUTION"), *solution, raw("# END SOLUTION")]
    if tests:
        cells += [raw("# BEGIN TESTS"), *tests, raw("# END TESTS")]
    return [*cells, raw("# END QUESTION")]


def write(path: Path, cells: list[NotebookNode]) -> Path:
    """Write a notebook with these cells."""
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    return path


def of_nbgrader(path: Path) -> Path:
    """Write a small assignment of nbgrader: two exercises and a question in words."""
    return write(
        path,
        [
            words("# Sums\n\nAn assignment."),
            code("import numpy as np", "imports", **GIVEN),
            words("## Twice\n\nWrite `twice(x)`, the double of `x`."),
            code(
                "def twice(x):\n    ### BEGIN SOLUTION\n    return x + x\n    ### END SOLUTION",
                "twice_answer",
                **SOLUTION,
            ),
            code("twice(4)"),
            code(
                "assert twice(2) == 4\n### BEGIN HIDDEN TESTS\nassert twice(-1) == -2\n"
                "assert twice('ab') == 'abab'\n### END HIDDEN TESTS",
                "twice_tests",
                points=3,
                **TESTS,
            ),
            words("## Mean\n\nWrite `mean(values)`. Without values it raises a `ValueError`."),
            code(
                'def mean(values):\n    """The mean."""\n    if len(values) == 0:\n'
                "        raise ValueError('no values')\n    return float(np.mean(values))",
                "mean_answer",
                **SOLUTION,
            ),
            code("assert np.isclose(mean([1, 2]), 1.5)", "mean_1", points=1, **TESTS),
            code(
                "### BEGIN HIDDEN TESTS\nimport pytest\nwith pytest.raises(ValueError):\n"
                "    mean([])\n### END HIDDEN TESTS",
                "mean_2",
                points=1,
                **TESTS,
            ),
            words("## Why?\n\nWhy is the mean of no values not 0?"),
            words("Because 0 is the sum of none.", "why", points=2, **ANSWER),
        ],
    )


def of_otter(path: Path) -> Path:
    """Write a small assignment of Otter Assign: a function, a value and a question in words."""
    return write(
        path,
        [
            raw("# ASSIGNMENT CONFIG\nname: Squares\nfiles:\n  - data.csv"),
            code("import numpy as np"),
            *question(
                "name: q1\npoints: 3",
                "**Question 1.** Define `square`.",
                [
                    code(
                        "def square(x):\n    y = x * x # SOLUTION NO PROMPT\n"
                        "    return y # SOLUTION"
                    )
                ],
                [
                    code("square(16)", output="256"),
                    code("# HIDDEN\nsquare(3) == 9", output="True"),
                    code("# HIDDEN\nnp.isclose(square(0.5), 0.25)", output="True"),
                ],
            ),
            *question(
                "name: q2",
                "**Question 2.** Assign `nine` to 3 squared.",
                [code("nine = 3 * 3 # SOLUTION")],
                [code("nine", output="9")],
            ),
            *question(
                "name: q3\nmanual: true\npoints: 2",
                "**Question 3.** Why?",
                [words("**SOLUTION**: It says so.")],
            ),
        ],
    )
