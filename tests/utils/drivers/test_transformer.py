"""The drivers of lab 08: their results for right and wrong pieces, and their cleanup."""

import json
import logging
import math
import sys
import tempfile
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import nn
from torch.nn import functional as F

from hood.judge.catalogue import find_check
from utils.drivers import transformer as driver
from utils.minigpt import MiniGPT, MiniGPTConfig
from utils.minigpt.model import CausalSelfAttention

CONFIG = MiniGPTConfig(vocab_size=11, d_model=4, n_heads=2, n_layers=1, d_ff=8, context=6)


def right(name):
    return find_check(name)[1].right


def wrong(name, mistake):
    """The lab's own example of a mistake."""
    (found,) = (m.thing for m in find_check(name)[1].misconceptions if m.name == mistake)
    return found


# attention


def attention_of(d_model, n_heads):
    return CausalSelfAttention(MiniGPTConfig(d_model=d_model, n_heads=n_heads))


def weights_of(module, seed=0, dtype=torch.float32):
    g = torch.Generator().manual_seed(seed)
    state = module.state_dict()
    return {name: torch.randn(t.shape, generator=g, dtype=dtype) for name, t in state.items()}


DOUBLE = weights_of(attention_of(4, 2), dtype=torch.float64)
X = torch.randn(2, 3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
PAST = torch.ones(1, 3, 3, dtype=torch.bool).tril()


def torch_says(weights, x, allowed):
    def part(name):
        mapped = F.linear(x, weights[f"{name}.weight"], weights[f"{name}.bias"])
        return mapped.unflatten(-1, (2, -1)).transpose(1, 2)

    mask = None if allowed is None else allowed[:, None]
    mixed = F.scaled_dot_product_attention(*map(part, ("query", "key", "value")), attn_mask=mask)
    return F.linear(
        mixed.transpose(1, 2).flatten(2), weights["output.weight"], weights["output.bias"]
    )


@pytest.mark.parametrize("allowed", [None, PAST], ids=["everything", "the past"])
def test_attention_has_the_output_and_the_gradients_of_the_weights_that_it_was_given(allowed):
    leaves = {name: t.float().double().requires_grad_() for name, t in DOUBLE.items()}
    x = X.clone().requires_grad_()
    expected = torch_says(leaves, x, allowed)
    expected.backward(torch.ones_like(X))
    came = driver.attention(
        right("MultiHead"), [4, 2], DOUBLE, X, allowed, upstream=torch.ones_like(X)
    )
    assert came["output"].dtype == torch.float64
    torch.testing.assert_close(came["output"], expected.detach())
    torch.testing.assert_close(came["gradients"], {name: t.grad for name, t in leaves.items()})
    torch.testing.assert_close(came["x"], x.grad)
    assert X.grad is None
    assert not X.requires_grad
    assert not came["output"].requires_grad


def test_a_mask_is_passed_only_if_there_is_one():
    class Noting(nn.Linear):
        def forward(self, *handed):
            told.append(len(handed))
            return handed[0]

    told = []
    for allowed in (None, PAST):
        driver.attention(Noting, [4, 2], nn.Linear(4, 2).state_dict(), X, allowed)
    assert told == [1, 2]


# fewer keys and values


# generating

SHAPES = {"words": (9, 8), "positions": (16, 8), "head": (8, 9)}
SHAPES |= dict.fromkeys(("query", "key", "value"), (8, 8))
DICE = torch.Generator().manual_seed(11)  # a model in which mistakes show
TOY = {name: torch.randn(shape, generator=DICE) for name, shape in SHAPES.items()}
FIRST = torch.tensor([[0, 1, 2, 3]])


def test_the_decoder_gives_the_same_with_and_without_a_cache():
    model, tokens = driver.TinyDecoder(TOY), torch.tensor([[3, 1, 4, 1], [5, 8, 2, 6]])
    places, real = FIRST.expand(2, 4), torch.ones(2, 4, dtype=torch.bool)
    whole, _ = model(tokens, places, real, None)
    first, cache = model(tokens[:, :2], places[:, :2], real[:, :2], None)
    rest, cache = model(tokens[:, 2:], places[:, 2:], real, cache)
    torch.testing.assert_close(torch.cat([first, rest], 1), whole)
    assert cache[0].shape == cache[1].shape == (2, 4, 8)
    assert model.columns == [4, 2, 2]


def test_the_decoder_sees_neither_padding_nor_later_tokens():
    model, real = driver.TinyDecoder(TOY), torch.tensor([[False, True, True, True]])
    places = torch.tensor([[0, 0, 1, 2]])
    came = [
        model(torch.tensor([tokens]), places, real, None)[0]
        for tokens in ([0, 3, 1, 4], [7, 3, 1, 4], [0, 3, 1, 5], [0, 2, 1, 4])
    ]
    assert torch.equal(came[0][:, 1:], came[1][:, 1:])
    assert torch.equal(came[0][:, 1:3], came[2][:, 1:3])
    assert not torch.allclose(came[0][:, 3], came[3][:, 3])


@pytest.mark.parametrize(
    ("padding", "positions", "raised", "words"),
    [
        ((1, 3), [0, 1, 2, 3], ValueError, r"expected \(1, 4\).* 0 earlier .*4 new.*\(1, 3\)"),
        ((2, 4), [0, 1, 2, 3], ValueError, r"got \(2, 4\)"),
        ((1, 4), [0, 1, 2, -1], IndexError, r"from 0 to 2, .*got \[\[0, 1, 2, -1\]\]"),
    ],
    ids=["a column too few", "a row too many", "before the first"],
)
def test_the_decoder_reports_its_inputs(padding, positions, raised, words):
    model, real = driver.TinyDecoder(TOY), torch.ones(padding, dtype=torch.bool)
    with pytest.raises(raised, match=words):
        model(torch.zeros(1, 4, dtype=torch.int64), torch.tensor([positions]), real, None)
    assert model.columns == [4]  # it was called


def test_padding_has_only_positions_of_real_tokens():
    model, real = driver.TinyDecoder(TOY), torch.tensor([[False, True, True, True]])
    tokens = torch.zeros(1, 4, dtype=torch.int64)
    model(tokens, torch.tensor([[2, 0, 1, 2]]), real, None)
    with pytest.raises(IndexError, match=r"a real token, got \[\[3, 0, 1, 2\]\]"):
        model(tokens, torch.tensor([[3, 0, 1, 2]]), real, None)


def test_padding_must_cover_the_cache_as_well():
    model, tokens = driver.TinyDecoder(TOY), torch.zeros(1, 4, dtype=torch.int64)
    real = torch.ones(1, 4, dtype=torch.bool)
    _, cache = model(tokens, FIRST, real, None)
    with pytest.raises(
        ValueError, match=r"expected \(1, 5\), one column for each of the 4 earlier"
    ):
        model(tokens[:, :1], FIRST[:, 3:], real, cache)


def test_a_generate_that_changes_its_prompts_does_not_change_the_callers():
    def careless(model, prompts, limit, pad, eos):
        for prompt in prompts:
            prompt.clear()
        prompts.clear()
        return "nothing"

    given = [[1, 2], [3]]
    came = driver.generated(careless, TOY, given, 1, 0, 8)
    assert came == {"words": "nothing", "columns": [], "prompts": []}
    assert given == [[1, 2], [3]]


# a folder

SMALL = {"vocab_size": 11, "d_model": 4, "n_heads": 2, "n_layers": 1, "d_ff": 8, "context": 6}
COUNT = sum(p.numel() for p in MiniGPT(CONFIG).parameters())
NUMBERS = torch.randn(COUNT, generator=torch.Generator().manual_seed(5))


def came_of(load, what, gone=""):
    if isinstance(load, dict):
        load = load["load_strictly"]
    return driver.loaded_strictly(load, SMALL, NUMBERS, what, gone)


def test_the_class_and_the_folder_are_the_requested_ones():
    from transformers import GPT2LMHeadModel  # seconds, in every worker

    told = []

    def note(model_class, folder):
        told.append((model_class is GPT2LMHeadModel, Path(folder).name, Path(folder).is_dir()))
        raise KeyError

    assert [came_of(note, what)["raised"] for what in ("whole", "stock", "nowhere")] == [
        "KeyError"
    ] * 3
    assert told == [(False, "model", True), (True, "model", True), (False, "modle", False)]


@pytest.mark.parametrize("ends", [ValueError, KeyboardInterrupt])
def test_a_load_removes_its_folder_and_restores_logging(ends, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    logger = logging.getLogger("transformers")

    def hostile(model_class, folder):
        print("a report", file=sys.stderr)
        assert not logger.isEnabledFor(logging.CRITICAL)
        (Path(folder).parent / "mine").write_text("left behind")
        raise ends("no")

    if ends is KeyboardInterrupt:
        with pytest.raises(KeyboardInterrupt):
            came_of(hostile, "whole")
    else:
        assert came_of(hostile, "whole")["raised"] == "ValueError"
    assert list(tmp_path.iterdir()) == []
    assert logger.isEnabledFor(logging.CRITICAL)
    print("heard", file=sys.stderr)
    assert capsys.readouterr().err == "heard\n"


# fine-tuning

GIVEN = {name: t.clone() for name, t in MiniGPT(CONFIG).state_dict().items()}
TOKENS = torch.randint(11, (40, 6), generator=torch.Generator().manual_seed(7))
LINES = (TOKENS[:, :5], TOKENS[:, 1:].clone())


def tuned(fine_tune, steps=2):
    return driver.tuned_twice(fine_tune, GIVEN, CONFIG, LINES, LINES, steps, 4)


def alike(one, other):
    return all(torch.equal(one[name], other[name]) for name in GIVEN)


def test_torchs_generator_moves_on_between_the_calls():
    def seeded_before(*_):
        states.append(torch.get_rng_state())
        return {}

    states = []
    tuned(seeded_before)
    assert not torch.equal(*states)


def test_the_steps_taken_are_counted_and_not_the_requested_ones():
    taken = tuned(wrong("fine_tune", "a number of steps of its own"))["steps"]
    assert taken > 2

    def none(weights, *_):
        return weights

    assert tuned(none)["steps"] == 0

    def two_optimizers(weights, config, new, old, steps, seed):
        for times in (1, 3):
            optimizer = torch.optim.SGD([nn.Parameter(torch.ones(1))])
            for _ in range(times):
                optimizer.step()
            kept.append(optimizer)  # so that no other object gets its address
        return weights

    kept = []
    assert tuned(two_optimizers)["steps"] == 3


def test_writes_to_weights_hit_the_drivers_own_and_show():
    def hostile(weights, *_):
        for tensor in weights.values():
            tensor.add_(1)
        return weights  # the same tensors in both calls

    before = {name: t.clone() for name, t in GIVEN.items()}
    came = tuned(hostile)
    assert alike(GIVEN, before)
    assert not alike(came["given"], GIVEN)
    assert not alike(came["once"], came["again"])


def test_after_an_interrupted_run_no_steps_are_counted():
    from torch.optim.optimizer import _global_optimizer_post_hooks as hooks

    def broken(*_):
        during.append(len(hooks))
        raise RuntimeError("broken off")

    during, before = [], len(hooks)
    with pytest.raises(RuntimeError, match="broken off"):
        tuned(broken)
    assert during == [before + 1]
    assert len(hooks) == before


# a batch from a folder

SAYS = {"kind": "gpt2", "seed": 4, "pad": False}


def test_a_completion_gets_a_folder_and_its_calls_are_counted():
    from transformers import GPT2LMHeadModel

    forward = GPT2LMHeadModel.forward
    came = driver.completed(right("complete"), SAYS, ["a b c", "d e f a b"], 5)
    assert came["texts"] == ["g g b g g", "g b g g g"]
    assert [len(row) for row in came["looks"]] == [3, 5]
    assert came["rows"] == [2]
    assert GPT2LMHeadModel.forward is forward
    one_by_one = driver.completed(wrong("complete", "one after another"), SAYS, ["a b c", "d"], 5)
    assert one_by_one["rows"] == [1]


@pytest.mark.parametrize(
    ("says", "mistake"),
    [
        ({"kind": "minigpt", "seed": 7, "draws": True, "half": True}, "in the file's dtype"),
        ({"kind": "minigpt", "seed": 7, "eos": 5}, "padded on the right"),
        ({"kind": "gpt2", "seed": 4, "code": True}, "the folder's code is trusted"),
        ({"kind": "llama", "seed": 4, "begins": True}, "without the tokenizer's own beginning"),
    ],
)
def test_a_folder_contains_what_it_states(says, mistake):
    modules = [name for name in sys.modules if name.startswith("transformers_modules")]
    path = list(sys.path)
    asked = ["a b c", "d e f a b"], 5
    expected = driver.completed(right("complete"), says, *asked)
    assert driver.completed(right("complete"), says, *asked) == expected
    assert driver.completed(wrong("complete", mistake), says, *asked) != expected
    assert path == sys.path
    assert [name for name in sys.modules if name.startswith("transformers_modules")] == modules


# a Llama

LLAMA = {"hidden_size": 8, "intermediate_size": 6, "num_hidden_layers": 1, "vocab_size": 5}
LLAMA |= {"num_attention_heads": 2, "num_key_value_heads": 1}
OLD = {"old": True, "rope_theta": 7.0, "stored": "float16"}


def test_a_llamas_folder_is_as_the_config_says(tmp_path):
    state = torch.random.get_rng_state()
    driver.llama_folder(tmp_path / "now", LLAMA | {"tie_word_embeddings": True}, 1)
    driver.llama_folder(tmp_path / "old", LLAMA | OLD, 1)
    assert torch.equal(state, torch.random.get_rng_state())
    now, old = (
        json.loads((tmp_path / name / "config.json").read_text()) for name in ("now", "old")
    )
    assert now["rope_parameters"] == {"rope_type": "default", "rope_theta": 10000.0}
    assert now["head_dim"] == 4
    assert old["rope_theta"] == 7.0
    assert not {"rope_parameters", "head_dim"} & old.keys()
    tied, halved = (load_file(tmp_path / name / "model.safetensors") for name in ("now", "old"))
    assert "lm_head.weight" not in tied
    assert halved["lm_head.weight"].dtype is torch.float16


def test_the_numbers_of_a_llama_are_those_of_its_folder():
    tokens = torch.tensor([[1, 4, 2]])
    tied = driver.llama_logits(
        right("load_llama"), LLAMA | {"tie_word_embeddings": True}, 1, tokens
    )
    own = driver.llama_logits(right("load_llama"), LLAMA, 1, tokens)
    assert (tied["training"], own["training"]) == (False, False)
    assert own["numbers"] - tied["numbers"] == 5 * 8
    old = driver.llama_logits(right("load_llama"), LLAMA | OLD, 1, tokens)
    assert old["logits"].dtype is torch.float32
    assert not torch.allclose(old["logits"], own["logits"], atol=1e-2)


def test_prompts_are_removed_from_a_copy():
    def careless(folder, prompts, limit):
        assert {"config.json", "model.safetensors", "tokenizer.json"} <= {
            file.name for file in folder.iterdir()
        }
        prompts.clear()
        return "texts", "looks"

    given = ["a"]
    came = driver.completed(careless, SAYS, given, 1)
    assert came == {"texts": "texts", "looks": "looks", "rows": [], "prompts": []}
    assert given == ["a"]


def test_the_hub_is_offline_after_any_order_of_imports():
    from transformers.utils.hub import is_offline_mode  # the hub's own setting

    assert is_offline_mode()


def test_the_steps_of_each_parameter_are_counted():
    model = nn.Linear(2, 2)
    with driver.counted_steps() as taken:
        for some, times in ((model.weight, 3), (model.bias, 7)):
            optimizer = torch.optim.SGD([some])
            for _ in range(times):
                optimizer.step()
    optimizer.step()
    assert (taken[id(model.weight)], taken[id(model.bias)]) == (3, 7)


def test_perplexity_counts_only_targets_and_draws_no_random_number():
    weights = {name: torch.zeros_like(t) for name, t in MiniGPT(CONFIG).state_dict().items()}
    weights["lm_head.bias"] = torch.tensor([0.5, 0.25, *[0.25 / 9] * 9]).log()
    inputs, targets = torch.tensor([[1, 3, 2]]), torch.tensor([[0, 1, -100]])
    before = torch.get_rng_state()
    came = driver.perplexity(weights, CONFIG, inputs, targets)
    assert torch.equal(torch.get_rng_state(), before)
    assert came == pytest.approx(math.sqrt(2 * 4))
    with pytest.raises(RuntimeError, match=r"Missing key.*lm_head\.bias"):
        driver.perplexity({n: weights[n] for n in list(weights)[:-1]}, CONFIG, inputs, targets)
