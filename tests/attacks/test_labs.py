"""Without a claim, no forgery in a lab earns more than the same answer in an honest process."""

import copy
import dataclasses
import functools

import nbformat
import pytest
from nbformat.v4 import new_code_cell

from hood.grader.execution.execute import Execute
from hood.grader.execution.graded_cell import read_verdicts
from hood.phase_paths import ROOT
from tests.attacks.labs import ATTEMPTS, AUTOGRAD, CLAIMED, MODULE
from tests.hood.tiny import CONFIG

pytestmark = pytest.mark.slow(15)
SETUP = "setup"


@functools.cache
def source(lab):
    return nbformat.read(ROOT / "source" / lab / f"{lab}.ipynb", as_version=4)


def graded(attempt):
    """Return the verdict on the attempt's exercise, which is the only one in its lab."""
    nb = copy.deepcopy(source(attempt.lab))
    by_id = {c.metadata.get("nbgrader", {}).get("grade_id"): c for c in nb.cells}
    solution, test = by_id[f"{attempt.exercise}_solution"], by_id[attempt.exercise]
    solution.source = attempt.answer
    # learners can falsify an output that only they see
    test.source = test.source[test.source.index("### BEGIN HIDDEN") :]
    nb.cells = [by_id[SETUP], new_code_cell(attempt.before), solution, test]
    nb.metadata.open_the_hood.seed = "one for all: the answers are worked out once"
    nb.metadata.open_the_hood.cell_seconds = 30
    nb, _ = Execute(config=CONFIG).preprocess(nb, {"metadata": {"path": None}})
    raised = [o.ename for c in nb.cells[:3] for o in c.outputs if o.output_type == "error"]
    return read_verdicts(nb)[attempt.exercise], raised


@pytest.mark.parametrize("attempt", ATTEMPTS.values(), ids=ATTEMPTS)
def test_a_forgery_earns_nothing(attempt):
    verdict, raised = graded(attempt)
    assert raised == [], "the attempt itself is broken"
    assert verdict.earned <= attempt.most, verdict
    assert verdict.status in ("wrong", "partly", "not run")


@pytest.mark.of_labs
@pytest.mark.parametrize(
    "attempt", [pytest.param(one, id=f"{one.lab} {name}") for name, one in CLAIMED.items()]
)
def test_a_verdict_names_the_claim_that_gained_points(attempt):
    verdict, raised = graded(attempt)
    assert raised == [], "the attempt itself is broken"
    assert set(attempt.gains) <= right(verdict)
    assert attempt.claims in verdict.claims
    if attempt.before:
        honest, _ = graded(dataclasses.replace(attempt, before=""))
        assert set(attempt.gains) & right(honest) == set()


def right(verdict):
    return {part.name for part in verdict.parts if part.status == "right"}


@pytest.mark.parametrize("lab", [AUTOGRAD, MODULE])
def test_each_lab_has_many_forgeries(lab):
    assert [attempt.lab for attempt in ATTEMPTS.values()].count(lab) >= 8
