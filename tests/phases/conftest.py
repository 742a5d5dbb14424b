import sys

import pytest
import torch


@pytest.fixture(autouse=True)
def _one_thread():
    """More threads do not help with such small tensors, and test workers share the machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(autouse=True)
def _usual_depth():
    """Answers may raise the recursion limit; the next endless recursion would end the process."""
    before = sys.getrecursionlimit()
    yield
    sys.setrecursionlimit(before)
