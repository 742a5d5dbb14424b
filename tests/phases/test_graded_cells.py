"""A graded cell runs after only the set-up cells and its answer."""

import pytest

from hood.authoring.proof.selftest import LabCode
from hood.authoring.proof.visible_cells import refusal
from hood.phase_paths import phases

LABS = [phase for phase in phases() if phase.lab.exists()]


def refusals(lab: LabCode) -> dict[str, str]:
    """Return, by exercise, the error of a graded cell that runs after its answer alone."""
    alone = {
        name: refusal(cells[-1:], lab.names_after(lab.solutions[name]))
        for name, cells in lab.visible.items()
    }
    return {name: error for name, error in alone.items() if error}


@pytest.mark.slow(4)
@pytest.mark.parametrize("phase", LABS, ids=lambda phase: phase.name)
def test_a_graded_cell_needs_no_visible_check(phase):
    lab = LabCode.read(phase.lab)
    assert len(lab.visible) >= 2
    assert refusals(lab) == {}


@pytest.mark.parametrize("phase", LABS, ids=lambda phase: phase.name)
def test_a_graded_cell_has_an_example(phase):
    """Validate runs the examples of graded cells, and no checks."""
    for name, cells in LabCode.read(phase.lab).visible.items():
        assert "expect_" in cells[-1], name


def test_a_name_of_a_visible_check_is_found():
    lab = LabCode((), {"double": "def double(x): return 2 * x"}, {"double": ("x = 1", "double(x)")})
    assert refusals(lab) == {"double": "NameError: name 'x' is not defined"}
