import pytest
import torch

from utils.minigpt import corpus


@pytest.fixture(autouse=True)
def _one_thread():
    """More threads do not help with such small tensors, and test workers share the machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def data():
    """The corpus that the shipped weights were trained on."""
    return corpus.build(0)


@pytest.fixture
def small_corpus(monkeypatch):
    """Make every corpus small that a test builds."""
    monkeypatch.setattr(corpus, "TRAIN_LINES", {"named": 300, "unnamed": 100, "free": 20})
    monkeypatch.setattr(corpus, "LISTS_PER_VERB", 1)
    monkeypatch.setattr(corpus, "TEST_LINES", 30)
    monkeypatch.setattr(corpus, "HELD_OUT_SHARE", 0.01)
