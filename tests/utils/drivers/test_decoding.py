"""The driver of lab 06's last exercise: what it says about graphs, and what it leaves as it was."""

import torch

from utils.drivers import decoding as driver
from utils.minigpt import complete

SIZES = 11, 8, 2, 2, 12, 10


def test_products_of_matrices_and_vectors_are_counted():
    a, b, v = torch.ones(2, 3), torch.ones(3, 5), torch.ones(3)
    layer = torch.nn.Linear(3, 5)
    for run, expected in (
        (lambda: a @ b, 60),
        (lambda: a[None] @ b[None], 60),
        (lambda: torch.einsum("ij,jk->ik", a, b), 60),
        (lambda: a @ v, 12),
        (lambda: v @ v, 6),
        (lambda: layer(a), 60),
        (lambda: layer(v), 30),
        (lambda: a * 2, 0),
    ):
        for mode in (torch.no_grad, torch.inference_mode):
            with mode(), driver.Products() as products:
                run()
            assert products.operations == expected


def test_a_small_model_comes_from_its_seed():
    before = torch.random.get_rng_state()
    first, again, other = (driver.small_minigpt(SIZES, seed) for seed in (1, 1, 2))
    assert torch.equal(first.lm_head.weight, again.lm_head.weight)
    assert not torch.equal(first.lm_head.weight, other.lm_head.weight)
    assert torch.equal(before, torch.random.get_rng_state())


def whole(model, backend):
    """Compiles the model itself, which reads the whole text in each call."""
    forward = torch.compile(model, backend=backend)

    @torch.no_grad()
    def write(prompt):
        words = list(prompt)
        while len(words) < model.config.context and words[-1:] != [2]:
            words.append(int(forward(torch.tensor([words]))[0, -1].argmax()))
        return words[len(prompt) :]

    return write


def test_the_facts_about_graphs():
    prompts = [[3, 4, 5], [6]]
    came = driver.run_writer(whole, prompts, SIZES, 9)
    assert came["words"] == complete(prompts, driver.small_minigpt(SIZES, 9))
    assert came["graphs"] > 1
    assert (came["fixed"], came["whole"], came["single"]) == (False, True, False)
    assert came["steps"] == sum(map(len, came["words"]))
    assert came["prompts"] == prompts


def test_without_tracing_there_are_only_words():
    came = driver.run_writer(whole, [[3, 4, 5]], SIZES, 9, traced=False)
    assert came["words"] == complete([[3, 4, 5]], driver.small_minigpt(SIZES, 9))
    assert (came["graphs"], came["steps"], came["fixed"]) == (0, 0, False)
