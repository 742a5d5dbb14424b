import sys

import pytest
import torch


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
