import pytest
import torch

from grader.answer_key import answer_key


@pytest.fixture(autouse=True)
def _one_thread():
    """Tensors this small gain nothing from more, and test workers share the machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(autouse=True)
def _no_keys():
    """What a check asks depends on the machine, and some tests change what it seems to have."""
    answer_key.cache_clear()
