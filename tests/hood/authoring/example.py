"""A small project: one phase with every construct that the build transforms."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from hood.authoring.notebooks.text import Text, parse

HEADER = """\
# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
#   open_the_hood: {title: "Rows", points: 5, cell_seconds: 60}
# ---

"""

LAB = (
    HEADER
    + '''\
# %% [markdown]
# # Lab: rows
#
# Solve it from top to bottom.

# %% given="setup"
import math

import utils
from hood.learner.check import check

# %% [markdown]
# ## Bytes of a tensor
#
# Write `tensor_bytes`: shape in, bytes out.
# See [Bytes under a tensor](../../notebooks/01_rows.ipynb#cell-id=bytes-under-a-tensor).

# %% solution="tensor_bytes"
def tensor_bytes(shape: tuple[int, ...], itemsize: int) -> int:
    """Bytes that a tensor of this shape holds.

    shape: sizes.
    """
    ### BEGIN SOLUTION
    count = math.prod(shape)
    return max(count, 1) * itemsize
    ### END SOLUTION

# %%
print(tensor_bytes((2, 3), 4), "bytes")

# %% test="tensor_bytes" points=2
check("tensor_bytes")
assert tensor_bytes((2, 3), 4) == 24
### BEGIN HIDDEN TESTS
verify("tensor_bytes", tensor_bytes)
### END HIDDEN TESTS

# %% [markdown] task="why_bytes" points=3
# Why do strides count elements?
#
# === BEGIN MARK SCHEME ===
# 3 points: because the dtype's size is known.
# === END MARK SCHEME ===
'''
)

LESSON = """\
# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
#   open_the_hood: {title: "Rows"}
# ---

# %% [markdown]
# # Bytes under a tensor
#
# A fact.
#
# ## Rows

# %%
import os

import utils

print(utils.WORD, os.environ["OPEN_THE_HOOD_BUILD"])

# %% tags=["raises-exception"]
raise ValueError("meant to be seen")
"""

CHECKS = """\
from hood.judge.checks.exercise import Check, case

tensor_bytes = Check("tensor_bytes", parts={"any shape": 2}, reads="Bytes under a tensor")


@tensor_bytes.reference
def _(shape, itemsize):
    count = itemsize
    for size in shape:
        count *= max(size, 1)
    return count


@tensor_bytes.cases
def _(draw):
    yield case("any shape", draw.shape(2), 4)
    yield case("any shape", (), 8)
"""

ANSWERS = """\
told = [
  "bytes out",
]

[wrong."elements"]
says = "elements are counted, and not their bytes."
breaks = "shape in"
edits = [['* itemsize', '* 1']]

[right."a loop"]
code = \'\'\'
def tensor_bytes(shape, itemsize):
    for size in shape:
        itemsize *= size
    return itemsize
\'\'\'
"""

CONFIG = """\
c = get_config()
c.CourseDirectory.root = "/nowhere"
c.ClearSolutions.code_stub = {"python": 'raise NotImplementedError("write your answer here")'}
"""

COURSE = """\
title = "Rows"
id = "rows"
packages = ["utils"]
records = ["benchmarks/records"]
versions = ["numpy"]
"""

PYPROJECT = """\
[project]
name = "open-the-hood"
version = "0.1.0"
requires-python = ">=3.11,<3.15"
dependencies = ["torch==2.13.0", "numpy==2.4.6"]

[project.optional-dependencies]
dev = ["pytest==9.2.0"]
"""


def lab(content: str = LAB) -> Text:
    """Return a parsed lab of the example phase."""
    return parse("phases/01_rows/lab.py", content)


def lesson(content: str = LESSON) -> Text:
    """Return a parsed lesson of the example phase."""
    return parse("phases/01_rows/lesson.py", content)


def readable(path: str, content: bytes) -> str:
    """Return the readable text of a file: the cells' sources of a notebook, otherwise all."""
    if path.endswith(".ipynb"):
        cells = json.loads(content).get("cells", [])
        return "\n".join("".join(cell["source"]) for cell in cells)
    return content.decode(errors="replace")


@dataclass
class Project:
    """The example project: its root, its phase's folder, and more for tests."""

    root: Path

    @property
    def phase(self) -> Path:
        return self.root / "phases" / "01_rows"

    def write(self, path: str, content: str) -> Path:
        """Write a file of the project."""
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content, encoding="utf-8")
        return target


def make_project(root: Path) -> Project:
    """Write the example phase, a `utils` package of one module and a configuration."""
    made = Project(root)
    made.write("phases/01_rows/lab.py", LAB)
    made.write("phases/01_rows/lesson.py", LESSON)
    made.write("phases/01_rows/checks.py", CHECKS)
    made.write("phases/01_rows/answers/tensor_bytes.toml", ANSWERS)
    made.write("course.toml", COURSE)
    made.write("utils/__init__.py", 'WORD = "hello"\n')
    made.write("nbgrader_config.py", CONFIG)
    made.write("pyproject.toml", PYPROJECT)
    made.write(
        "environment.yml",
        "name: open-the-hood\ndependencies:\n  - pip:\n      - -r lock/packages.txt\n"
        "      # for tests\n      - -r lock/extras.txt\n",
    )
    for name in ("lock/packages.txt", "lock/extras.txt", "lock/renew.py"):
        made.write(name, "")
    made.write("LICENSE", "MIT\n")
    return made
