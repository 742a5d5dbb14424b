"""NumPy and torch compute the same; the model is causal and has the stated sizes."""

import subprocess
import sys

import numpy as np
import pytest
import torch
from torch import nn

from utils.minigpt import (
    MiniGPT,
    MiniGPTConfig,
    attention_maps,
    load_minigpt,
    load_weights,
    parameter_count,
    parameter_shapes,
)
from utils.minigpt import numpy_forward as reference

CONFIGS = (
    MiniGPTConfig(),
    MiniGPTConfig(vocab_size=11, d_model=12, n_heads=3, n_layers=1, d_ff=20, context=7),
    MiniGPTConfig(vocab_size=30, d_model=16, n_heads=1, n_layers=4, d_ff=8, context=5),
)


@pytest.fixture(scope="module")
def model():
    return load_minigpt()


@pytest.fixture(scope="module")
def tokens():
    return torch.randint(0, 600, (2, 32), generator=torch.Generator().manual_seed(5))


@pytest.fixture(scope="module")
def numpy_run(tokens):
    return reference.forward(load_weights(), tokens.numpy(), MiniGPTConfig())


def test_importing_the_sizes_loads_no_torch():
    code = "import sys, utils.minigpt as m; m.MiniGPTConfig(); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("config", CONFIGS)
def test_parameter_count_is_the_models_to_the_digit(config):
    model = MiniGPT(config)
    assert parameter_count(config) == sum(p.numel() for p in model.parameters())
    shapes = {name: tuple(p.shape) for name, p in model.state_dict().items()}
    assert list(parameter_shapes(config).items()) == list(shapes.items())


def test_the_courses_model_has_179544_parameters_and_an_untied_lm_head(model):
    assert parameter_count(MiniGPTConfig()) == 179_544
    assert isinstance(model.lm_head, nn.Linear)
    assert model.lm_head.weight.shape == (600, 64)
    assert model.lm_head.bias.shape == (600,)
    assert model.lm_head.weight.data_ptr() != model.token_embedding.weight.data_ptr()
    assert not model.training


def test_numpy_and_torch_agree_at_every_position(model, tokens, numpy_run):
    with torch.no_grad():
        hidden = model.hidden(tokens)
        logits = model(tokens)
        maps = attention_maps(model, tokens)
    for name, torch_side in (("hidden", hidden), ("logits", logits), ("attention", maps)):
        numpy_side = getattr(numpy_run, name)
        assert numpy_side.dtype == np.float32
        assert numpy_side.shape == tuple(torch_side.shape)
        # Logits reach 24, where neighbouring float32 numbers are 2e-6 apart. The tolerance is 1e-5,
        # absolute and relative.
        np.testing.assert_allclose(numpy_side, torch_side.numpy(), 1e-5, 1e-5, err_msg=name)


def test_they_agree_to_1e_12_in_float64(tokens):
    weights = {name: array.astype(np.float64) for name, array in load_weights().items()}
    logits = reference.forward(weights, tokens.numpy(), MiniGPTConfig()).logits
    with torch.no_grad():
        expected = load_minigpt().double()(tokens).numpy()
    np.testing.assert_allclose(logits, expected, rtol=1e-12, atol=1e-12)


def test_the_residual_stream_is_what_flows_between_torchs_blocks(model, tokens, numpy_run):
    inputs = []
    hooks = [b.register_forward_pre_hook(lambda _, x: inputs.append(x[0])) for b in model.blocks]
    with torch.no_grad():
        model(tokens)
    for hook in hooks:
        hook.remove()
    assert numpy_run.residual.shape == (3, 2, 32, 64)
    for mine, theirs in zip(numpy_run.residual, inputs, strict=False):
        np.testing.assert_allclose(mine, theirs.numpy(), rtol=1e-5, atol=1e-5)


def test_the_lm_head_alone_turns_hidden_states_into_logits(model, tokens):
    with torch.no_grad():
        assert torch.equal(model.lm_head(model.hidden(tokens)), model(tokens))


def test_a_later_word_changes_nothing_before_it(model, tokens):
    changed = tokens.clone()
    changed[:, 20] = (changed[:, 20] + 1) % 600
    with torch.no_grad():
        before, after = model(tokens), model(changed)
    torch.testing.assert_close(before[:, :20], after[:, :20], rtol=0, atol=1e-5)
    assert not torch.allclose(before[:, 20:], after[:, 20:], atol=1e-2)


def test_attention_is_causal_and_shares_out_one(model, tokens):
    maps = attention_maps(model, tokens)
    assert maps.shape == (2, 2, 4, 32, 32)
    assert not maps.triu(diagonal=1).any()
    torch.testing.assert_close(maps.sum(-1), torch.ones(2, 2, 4, 32))
    assert not any(block.attention.pattern._forward_hooks for block in model.blocks)


def test_softmax_is_swapped_in_one_line(tokens):
    model, seen = load_minigpt(), []

    def traced(x):
        seen.append(x.shape)
        return torch.softmax(x, dim=-1)

    expected = model.probabilities(tokens)
    model.softmax = traced
    assert torch.equal(model.probabilities(tokens), expected)
    assert seen == [(2, 32, 600)]


def test_gradients_reach_every_parameter():
    model = MiniGPT(MiniGPTConfig(vocab_size=9, d_model=8, n_heads=2, d_ff=6, context=5))
    model(torch.randint(0, 9, (3, 5))).square().sum().backward()
    # The bias of the keys adds the same number to all scores of a row. This does not change the
    # softmax, so the bias's gradient is zero.
    for name, p in model.named_parameters():
        assert p.grad is not None, name
        assert name.endswith("key.bias") or p.grad.abs().sum() > 0, name


@pytest.mark.parametrize(
    ("shape", "said"),
    [((1, 33), "at most 32 tokens"), ((5,), "expected tokens of shape")],
)
def test_tokens_that_do_not_fit_are_refused(model, shape, said):
    with pytest.raises(ValueError, match=said):
        model(torch.zeros(shape, dtype=torch.int64))


def test_gelu_and_layer_norm_are_torchs():
    x = np.random.default_rng(0).normal(size=(3, 5, 8)) * 4
    t = torch.from_numpy(x)
    expected = nn.functional.gelu(t, approximate="tanh").numpy()
    np.testing.assert_allclose(reference.gelu(x), expected, atol=1e-12)
    weights = {"weight": x[0, 0], "bias": x[0, 1]}
    expected = nn.functional.layer_norm(t, (8,), t[0, 0], t[0, 1]).numpy()
    np.testing.assert_allclose(reference.layer_norm(weights, x), expected, atol=1e-12)
