import sys
from collections.abc import Callable

import pytest
import torch

from grader.phase_paths import ROOT
from tests.conftest import changed, drawn_labs
from tests.phases import dear

JUDGE = (
    "grader/judging/",
    "utils/checks/",
    "utils/drivers/",
)  # what decides the verdicts of all labs


@pytest.fixture(scope="session")
def few(request: pytest.FixtureRequest, full: bool) -> Callable[[str, str], int]:
    """Tell how many candidates of a kind, or answers of a bank, to judge; 0 for all of them.

    It takes the names of a lab and of an exercise. All of every lab is asked in a proof; but for
    dear exercises, where what judges has changed, too; else all of the labs that were drawn.
    """
    anew = any(path.startswith(JUDGE) for path in changed(ROOT))
    whole = drawn_labs(request.config)

    def few(lab: str, exercise: str) -> int:
        if full or ((anew or lab in whole) and exercise not in dear.EXERCISES):
            return 0
        return 1 if exercise in dear.TRAINS else 2

    return few


@pytest.fixture(autouse=True)
def _one_thread():
    """Tensors this small gain nothing from more, and test workers share the machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(autouse=True)
def _usual_depth():
    """Answers may raise the limit of recursion; with it, the next endless one ends the process."""
    before = sys.getrecursionlimit()
    yield
    sys.setrecursionlimit(before)
