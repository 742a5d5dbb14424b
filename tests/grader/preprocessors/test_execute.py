"""Running a notebook: what a cell costs is its own points."""

import pytest
from nbformat.v4 import new_code_cell, new_notebook
from nbgrader.utils import determine_grade

from grader.preprocessors import Execute
from tests.grader.preprocessors.test_outputs import graded_cell

# A verify of its own, so that no kernel here needs torch.
VERIFY = """
MIME = "application/vnd.open-the-hood.verdict+json"

class Report:
    def _repr_mimebundle_(self, **_):
        verdict = {"check": "twice", "points": 2.0, "earned": 2.0, "status": "right"}
        return {"text/plain": "twice: 2 of 2", MIME: verdict}

def verify(name, thing):
    thing()
    display(Report())
    return 2.0
"""
HIDDEN = '### BEGIN HIDDEN TESTS\nverify("twice", twice)\n### END HIDDEN TESTS'


def run(*sources, seconds=20, folder=".", **metadata):
    """Outputs of cells run after VERIFY; a source with a hidden region becomes a graded cell."""
    cells = [new_code_cell(VERIFY)]
    for source in sources:
        cells.append(graded_cell(source) if "HIDDEN" in source else new_code_cell(source))
    nb = new_notebook(cells=cells)
    nb.metadata["open_the_hood"] = {"cell_seconds": seconds, **metadata}
    nb, _ = Execute().preprocess(nb, {"metadata": {"path": str(folder)}})
    return nb


def grades(nb):
    return [determine_grade(c)[0] for c in nb.cells if "nbgrader" in c.metadata]


def test_errors_warnings_and_the_kernel_itself(tmp_path):
    """One kernel for everything that leaves it alive."""
    nb = run(
        "import os, sys, warnings",
        "def twice(): warnings.warn('x'); print('INPUT', file=sys.stderr)",
        f"warnings.warn('visible')\n{HIDDEN}",
        f"1 / 0\n{HIDDEN}",
        f"sys.exit(3)\n{HIDDEN}",
        f"5.5\n{HIDDEN}",
        "this does not parse",
        "os.environ['OPEN_THE_HOOD_SEED']",
        "del twice",
        HIDDEN,
        "import warnings\n### BEGIN HIDDEN TESTS\nwarnings.warn('x')\n### END HIDDEN TESTS",
        "print('still here')\n### BEGIN HIDDEN TESTS\nassert False\n### END HIDDEN TESTS",
        folder=tmp_path,
        seed="ab12",
    )
    assert grades(nb) == [2.0, 2.0, 2.0, 2.0, 0.0, 2.0, 0.0]
    assert "ZeroDivisionError" in str(nb.cells[4].outputs)
    assert "INPUT" not in str(nb.cells[3:])
    assert nb.cells[8].outputs[0].data["text/plain"] == "'ab12'"
    assert nb.metadata.open_the_hood.seed == "ab12"


def test_an_endless_loop_costs_its_own_cell():
    nb = run("while True: pass", "def twice(): pass", HIDDEN, seconds=2)
    assert grades(nb) == [2.0]
    assert "stopped after 2 s" in str(nb.cells[1].outputs)


def test_a_loop_that_heeds_nothing_costs_what_follows_and_says_so():
    nb = run(
        "def twice(): pass",
        HIDDEN,
        "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass",
        HIDDEN,
        "print('ordinary')\n### BEGIN HIDDEN TESTS\nassert True\n### END HIDDEN TESTS",
        seconds=2,
    )
    assert grades(nb) == [2.0, 0.0, 0.0]
    assert "could not be interrupted" in str(nb.cells[4].outputs)


def test_a_dead_kernel_costs_what_follows_and_says_so():
    nb = run("def twice(): pass", HIDDEN, "import os; os._exit(1)", HIDDEN, "1")
    assert grades(nb) == [2.0, 0.0]
    assert "the kernel died in this cell" in str(nb.cells[3].outputs)
    assert "the kernel died in an earlier cell" in str(nb.cells[4].outputs)


def test_a_run_without_a_seed_gets_a_fresh_one():
    seeds = {run().metadata.open_the_hood.seed for _ in range(2)}
    assert len(seeds) == 2


@pytest.mark.parametrize(("given", "seconds"), [(True, 60), (False, 5)])
def test_the_cap_is_for_learners_code_alone(given, seconds):
    step = Execute(max_cell_seconds=5)
    step._seconds = 60
    settings = {"locked": given, "solution": not given, "grade": False, "grade_id": "x"}
    step._limit(new_code_cell("", metadata={"nbgrader": settings}))
    assert step.timeout == seconds
