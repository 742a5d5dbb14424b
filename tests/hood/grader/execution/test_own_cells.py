"""Which of a learner's own cells an exercise needs."""

import time

import pytest
from nbformat.v4 import new_code_cell

from hood.grader.execution.own_cells import unneeded
from tests.hood.grader.execution.test_graded_cell import graded_cell

HIDDEN = '### BEGIN HIDDEN TESTS\nverify("twice", twice)\n### END HIDDEN TESTS'


def left(*own, answer="def twice(x):\n    return double(x)"):
    settings = {"grade": False, "solution": False, "locked": True, "grade_id": "setup"}
    solution = settings | {"solution": True, "locked": False, "grade_id": "twice_solution"}
    cells = [
        new_code_cell("import torch, time", metadata={"nbgrader": settings}),
        *(new_code_cell(s, metadata={"open_the_hood": {"by": "learner"}}) for s in own),
        new_code_cell(answer, metadata={"nbgrader": solution}),
        graded_cell(HIDDEN),
    ]
    numbers = {cell.id: place for place, cell in enumerate(cells, start=-1)}
    return {own[numbers[found]] for found in unneeded(cells)}


NEEDED = (
    "def double(x): return 2 * x",
    "from helpers import double",
    "if True:\n    double = max",
    "double.cache = {}",
    "%run helpers.py",
    "from helpers import *",
    "%time double = make()",
    "twice = 1",
)
FREE = (
    "import torch\nmodel = train()",
    "import time\ntime.sleep(55)",
    "print(double(3), twice(4))",
    "def other(double): return double",
    "%timeit twice(1)",
    "this does not parse",
    "x = 1",
)


@pytest.mark.parametrize("source", NEEDED)
def test_a_cell_that_binds_a_name_of_an_answer_is_needed(source):
    assert left(source) == set()


@pytest.mark.parametrize("source", FREE)
def test_all_other_cells_are_not_needed(source):
    assert left(source) == {source}


def test_cells_that_a_helper_needs_are_needed():
    chain = ["factor = 2", "def double(x): return factor * x", "unused = factor"]
    assert left(*chain) == {"unused = factor"}
    assert left(*reversed(chain)) == {"unused = factor"}


def test_an_answers_own_names_need_no_other_cell():
    assert left("x = train()", answer="x = 2\ndef twice(y): return x * y") == {"x = train()"}


def test_many_cells_take_little_time():
    own = [f"def f{n}(): return f{n + 1}()" for n in range(1_999)]
    begun = time.process_time()
    assert left(*own, answer="def twice(x): return f0()") == set()
    assert time.process_time() - begun < 5
