"""The two things that every phase uses, together: MiniGPT with the Triton softmax."""

import torch

from utils.minigpt import generate, load_minigpt
from utils.softmax import softmax


def test_minigpt_takes_the_softmax_in_one_line():
    model = load_minigpt()
    tokens = torch.randint(600, (2, 5), generator=torch.Generator().manual_seed(0))
    want = model.probabilities(tokens)
    model.softmax = softmax
    torch.testing.assert_close(model.probabilities(tokens), want)


def test_it_conjugates_the_same_with_either():
    model = load_minigpt()
    plain = generate("yo", verb="hablar", tense="past", model=model)
    model.softmax = softmax
    assert generate("yo", verb="hablar", tense="past", model=model) == plain
    assert plain.startswith("yo hablé ")
