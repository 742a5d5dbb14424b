"""Drivers of lab 08: attention modules, a decoder for generation, folders of models."""

from __future__ import annotations

import contextlib
import copy
import functools
import io
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim.optimizer import register_optimizer_step_post_hook
from transformers import GPT2LMHeadModel, PreTrainedTokenizerFast

from utils.drivers import INPUTS_KEPT, WHOLE, draw_into, driver, unlogged
from utils.drivers.training import sentences as sentences  # for the lab
from utils.minigpt import MiniGPT, MiniGPTConfig
from utils.minigpt.hf import MiniGPTForCausalLM, hf_model, save_folder
from utils.minigpt.model import CausalSelfAttention
from utils.minigpt.tokenizer import SPECIAL

RAISED = "what `load_strictly` raises, and what its message says"


@driver("output", "gradients", "x")
def attention(
    module_class: Callable,
    sizes: Sequence[int],
    weights: Mapping[str, Tensor],
    x: Tensor,
    allowed: Tensor | None,
    upstream: Tensor | None = None,
) -> dict[str, Any]:
    """Return the ``output`` of an attention module ``module_class(*sizes)``.

    The sizes are d_model and n_heads. ``weights`` is a state dict with MiniGPT's names. x is
    (B, T, D), and ``allowed`` is passed after x. ``upstream`` is the gradient of the output. If it
    is given, the result also has the ``gradients`` of the parameters by name, and the gradient of
    ``x``.
    """
    module = module_class(*sizes)
    module.load_state_dict(dict(weights))
    module.to(x.dtype)
    return _used(module, x, upstream, *(() if allowed is None else (allowed,)))


def _used(module: nn.Module, x: Tensor, upstream: Tensor | None, *more: Tensor) -> dict[str, Any]:
    x = x.detach().clone().requires_grad_()
    output = module(x, *more)
    found: dict[str, Any] = {"output": output.detach()}
    if upstream is not None:
        output.backward(upstream)
        gradients = {name: parameter.grad for name, parameter in module.named_parameters()}
        found |= {"gradients": gradients, "x": x.grad}
    return found


@driver("output", "gradients", "x", "shapes")
def grouped_attention(
    functions: Mapping[str, Callable],
    config: MiniGPTConfig,
    kv_heads: int,
    weights: Mapping[str, Tensor],
    x: Tensor,
    upstream: Tensor | None = None,
) -> dict[str, Any]:
    """Return the results of ``GroupedAttention(config, kv_heads)`` with these weights.

    The results are the same as in :func:`attention`, with the ``shapes`` of the state dict.
    """
    module = functions["GroupedAttention"](config, kv_heads)
    module.load_state_dict(dict(weights))
    module.to(x.dtype)
    shapes = {name: tuple(tensor.shape) for name, tensor in module.state_dict().items()}
    return _used(module, x, upstream) | {"shapes": shapes}


@driver("weights", observed={"left": "that the given attention is not changed"})
def converted(
    functions: Mapping[str, Callable],
    config: MiniGPTConfig,
    kv_heads: int,
    weights: Mapping[str, Tensor],
) -> dict[str, Any]:
    """Return the ``weights`` that ``grouped(attention, kv_heads)`` makes from full attention.

    Then zeros are written into the grouped attention. ``left`` has the weights of the full
    attention after this. If a weight no longer requires a gradient, None replaces it.
    """
    whole = CausalSelfAttention(config)
    whole.load_state_dict(dict(weights))
    made = functions["grouped"](whole, kv_heads)
    found = {name: tensor.clone() for name, tensor in made.state_dict().items()}
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.zero_()
    left = {name: p.detach() if p.requires_grad else None for name, p in whole.named_parameters()}
    return {"weights": found, "left": left}


@driver(WHOLE, observed={WHOLE: "that a call does not change the cache that it gets"})
def forked(
    attend_cached: Callable,
    x: Tensor,
    weights: Mapping[str, Tensor],
    n_heads: int,
    more: Sequence[Tensor],
) -> list[Any]:
    """Call ``attend_cached`` several times with the same cache, and return the new caches.

    ``x`` is the input of a first call, which makes the cache. ``more`` has the input of each later
    call.
    """
    _, cache = attend_cached(x, weights, n_heads, None)
    return [attend_cached(new, weights, n_heads, cache)[1] for new in more]


def tiny_weights(
    words: int, places: int, channels: int, seed: int
) -> tuple[dict[str, Tensor], torch.Generator]:
    """Return random float32 weights of a TinyDecoder, and the generator that made them."""
    shapes = {
        "words": (words, channels),
        "positions": (places, channels),
        "query": (channels, channels),
        "key": (channels, channels),
        "value": (channels, channels),
        "head": (channels, words),
    }
    scale = {"query": 0.4, "key": 0.4}
    generator = torch.Generator().manual_seed(seed)
    weights = {
        name: torch.randn(shape, generator=generator) * scale.get(name, 1.0)
        for name, shape in shapes.items()
    }
    return weights, generator


class TinyDecoder:
    """A decoder of one layer with a cache, for `generate`.

    ``columns`` has the number of columns of tokens in each call.
    """

    def __init__(self, weights: Mapping[str, Tensor]) -> None:
        self.weights = weights
        self.columns: list[int] = []

    @torch.no_grad()
    def __call__(
        self,
        tokens: Tensor,
        positions: Tensor,
        padding: Tensor,
        cache: tuple[Tensor, Tensor] | None,
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Return the logits of the next word after each token, and the cache for the next call.

        tokens: (B, T) int64, only the new tokens.
        positions: (B, T) int64, the position of each new token in its text, from 0 on.
        padding: (B, S) bool, for the earlier tokens and the T new tokens. True means a real token.
        cache: the cache from the last call, or None in the first call.
        """
        self.columns.append(tokens.shape[1])
        before = 0 if cache is None else cache[0].shape[1]
        expected = (len(tokens), before + tokens.shape[1])
        if tuple(padding.shape) != expected:
            raise ValueError(
                f"padding: expected {expected}, one column for each of the {before} earlier tokens "
                f"and the {tokens.shape[1]} new tokens, got {tuple(padding.shape)}"
            )
        largest = int(torch.where(padding[:, before:], positions, 0).max())
        if int(positions.min()) < 0 or int(positions.max()) > largest:
            raise IndexError(
                f"positions: expected numbers from 0 to {largest}, the largest position of a real "
                f"token, got {positions.tolist()}"
            )
        w = self.weights
        x = w["words"][tokens] + w["positions"][positions]
        q, k, v = x @ w["query"], x @ w["key"], x @ w["value"]
        if cache is not None:
            k, v = torch.cat([cache[0], k], 1), torch.cat([cache[1], v], 1)
        past = torch.ones(q.shape[1], k.shape[1], dtype=torch.bool).tril(k.shape[1] - q.shape[1])
        allowed = past & padding[:, None, :]
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=allowed)
        return (x + mixed) @ w["head"], (k, v)


@driver(
    "words",
    observed={
        "columns": "how often the model is called, and with how many columns",
        "prompts": INPUTS_KEPT,
    },
)
def generated(
    generate: Callable,
    weights: Mapping[str, Tensor],
    prompts: Sequence[Sequence[int]],
    limit: int,
    pad: int,
    eos: int,
) -> dict[str, Any]:
    """Return the ``words`` of ``generate(model, prompts, limit, pad, eos)``.

    ``columns`` has the number of columns in each call of the model. ``prompts`` is the passed list
    after the call.
    """
    model = TinyDecoder(weights)
    given = [list(prompt) for prompt in prompts]
    words = generate(model, given, limit, pad, eos)
    return {"words": words, "columns": model.columns, "prompts": given}


@driver(
    "logits",
    observed={
        "raised": RAISED,
        "names": RAISED,
        "training": "in which mode `load_strictly` leaves a model",
    },
)
def loaded_strictly(
    load: Callable, sizes: Mapping[str, Any], numbers: Tensor, what: str, gone: str = ""
) -> dict[str, Any]:
    """Return the result of the learner's ``load(model_class, folder)`` for a folder.

    sizes: the sizes of the MiniGPT in the folder.
    numbers: the numbers of all its parameters in one flat tensor.
    what: ``"stock"`` stands for GPT-2's original class, which has no bias in the head.
        ``"nowhere"`` stands for a folder that does not exist. Any other word stands for the class
        that wrote the folder.
    gone: the name of a tensor that the file lacks.

    ``raised`` is the name of the exception, or ``""``. For a subclass of FileNotFoundError or
    ValueError it is the name of this base class. ``names`` lists which of the two names
    ``"lm_head.bias"`` and ``gone`` are in the exception's message. ``training`` is the mode of the
    loaded model.
    ``logits`` are this model's logits for some tokens. They are None if the file lacks a tensor or
    if an exception was raised.
    """
    model = MiniGPT(MiniGPTConfig(**sizes))
    torch.nn.utils.vector_to_parameters(numbers, model.parameters())
    with tempfile.TemporaryDirectory() as place, unlogged(), redirect_stderr(io.StringIO()):
        folder = save_folder(Path(place) / "model", model)
        if gone:
            file = folder / "model.safetensors"
            kept = {name: t for name, t in load_file(file).items() if name != gone}
            save_file(kept, file, {"format": "pt"})
        asked = folder.with_name("modle") if what == "nowhere" else folder
        model_class = GPT2LMHeadModel if what == "stock" else MiniGPTForCausalLM
        try:
            loaded = load(model_class, asked)
        except Exception as error:
            names = [n for n in ("lm_head.bias", gone) if n and n in str(error)]
            named = (kind for kind in (FileNotFoundError, ValueError) if isinstance(error, kind))
            return {
                "raised": next(named, type(error)).__name__,
                "names": names,
                "training": None,
                "logits": None,
            }
        with torch.no_grad():
            tokens = torch.arange(sizes["context"])[None] % sizes["vocab_size"]
            # a tensor that the file lacks gets random numbers, so the logits differ in each load
            logits = None if gone else loaded(tokens).logits
    return {"raised": "", "names": [], "training": loaded.training, "logits": logits}


LETTERS = "abcdefghij"  # the words of a small folder, in addition to pad, bos and eos


def small_model(kind: str, seed: int, eos: int = 2, layers: int = 2) -> Any:
    """Return a causal model with random weights, 13 words and 24 positions, in eval mode.

    ``kind`` is ``"minigpt"``, ``"gpt2"`` or ``"llama"``. ``eos`` is the id of the end token.
    """
    from transformers import GPT2Config, LlamaConfig, LlamaForCausalLM

    vocab_size = len(SPECIAL) + len(LETTERS)
    ends: dict[str, Any] = {"bos_token_id": 1, "eos_token_id": eos, "pad_token_id": 0}
    sizes: dict[str, Any]
    model: Any
    # All weights are replaced below. So the creation of the model must not change torch's random
    # state.
    with torch.random.fork_rng(devices=[]):
        if kind == "minigpt":
            model = hf_model(MiniGPT(MiniGPTConfig(vocab_size, 8, 2, layers, 12, 24)))
            for config in (model.config, model.generation_config):
                config.eos_token_id = eos
        elif kind == "gpt2":
            sizes = {"n_positions": 24, "n_embd": 8, "n_layer": layers, "n_head": 2}
            model = GPT2LMHeadModel(GPT2Config(vocab_size=vocab_size, **sizes, **ends))
        else:
            sizes = {"hidden_size": 8, "intermediate_size": 12, "num_hidden_layers": layers}
            sizes |= {"num_attention_heads": 2, "num_key_value_heads": 1}
            sizes |= {"vocab_size": vocab_size, "max_position_embeddings": 24}
            model = LlamaForCausalLM(LlamaConfig(**sizes, **ends))
    draw_into(model.parameters(), seed)
    return model.eval()


def small_words(eos: int = 2, pad: bool = True) -> list[str]:
    """Return the words of a small folder in the order of their ids.

    The first word is pad, or "." if ``pad`` is False. The second word is bos. The end
    token has the id ``eos``.
    """
    words = [SPECIAL[0] if pad else ".", SPECIAL[1], *LETTERS]
    words.insert(eos, SPECIAL[2])
    return words


# A model class for a folder. Its logits have the opposite sign.
OWN_CODE = """
from transformers import GPT2Config, GPT2LMHeadModel


class OwnForCausalLM(GPT2LMHeadModel):
    config_class = GPT2Config

    def forward(self, *args, **kwargs):
        out = super().forward(*args, **kwargs)
        out.logits = -out.logits
        return out
"""


def small_folder(folder: Path, says: Mapping[str, Any]) -> Path:
    """Write a :func:`small_model` and a tokenizer for `from_pretrained`; return the folder's path.

    folder: where the files are written.
    says: a dict with these keys:
        kind, seed, eos, layers    the arguments of :func:`small_model`
        side      the side on which the tokenizer pads, by default "right"
        pad       whether the tokenizer has a pad token, by default True
        begins    whether the tokenizer puts a bos token before each text, by default False
        draws     whether the generation config asks for one random token, by default False
        half      whether the weights are bfloat16, by default False
        code      whether the folder has its own class for the model, by default False
    """
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import WhitespaceSplit
    from tokenizers.processors import TemplateProcessing

    eos_id = says.get("eos", 2)
    kind, layers = says.get("kind", "minigpt"), says.get("layers", 2)
    model = small_model(kind, says["seed"], eos_id, layers)
    pads = says.get("pad", True)
    if not pads:
        model.config.pad_token_id = model.generation_config.pad_token_id = None
    if says.get("draws"):
        model.generation_config.update(do_sample=True, temperature=9.0, max_new_tokens=1)
    if says.get("half"):
        model = model.to(torch.bfloat16)
    model.save_pretrained(folder)
    if says.get("code"):
        file = folder / "config.json"
        auto = {"auto_map": {"AutoModelForCausalLM": "modeling_own.OwnForCausalLM"}}
        file.write_text(json.dumps(json.loads(file.read_text()) | auto))
        (folder / "modeling_own.py").write_text(OWN_CODE)
    pad, bos, eos = SPECIAL
    named = {"bos_token": bos, "eos_token": eos} | ({"pad_token": pad} if pads else {})
    ids = {word: n for n, word in enumerate(small_words(eos_id, pads))}
    words = Tokenizer(WordLevel(ids))
    words.pre_tokenizer = WhitespaceSplit()
    if says.get("begins"):
        words.post_processor = TemplateProcessing(f"{bos} $A", special_tokens=[(bos, 1)])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=words, padding_side=says.get("side", "right"), **named
    )
    tokenizer.save_pretrained(folder)
    return folder


def llama_folder(folder: Path, config: Mapping[str, Any], seed: int) -> Path:
    """Write a Llama with random weights, as `save_pretrained` does; return the folder's path.

    folder: where the files are written.
    config: settings of a `LlamaConfig`, and three more keys:
        rope_theta  the base of the rotation, by default 10000
        stored      the dtype of the file, by default "float32"
        old         whether the config has the form of older files, without the dict
                    `rope_parameters` and without `head_dim`, by default False
    seed: the seed of the weights.
    """
    from transformers import LlamaConfig, LlamaForCausalLM

    says = dict(config)
    old, stored = says.pop("old", False), says.pop("stored", "float32")
    rope = {"rope_type": "default", "rope_theta": says.pop("rope_theta", 10000.0)}
    # All weights are replaced below. So the creation of the model must not change torch's random
    # state.
    with torch.random.fork_rng(devices=[]), unlogged(), redirect_stderr(io.StringIO()):
        model: Any = LlamaForCausalLM(LlamaConfig(**says, rope_parameters=rope))
        draw_into(model.parameters(), seed, 0.5)
        model.to(getattr(torch, stored)).save_pretrained(folder)
    if old:
        file = folder / "config.json"
        settings = json.loads(file.read_text())
        settings["rope_theta"] = settings.pop("rope_parameters")["rope_theta"]
        del settings["head_dim"]
        file.write_text(json.dumps(settings))
    return folder


@driver("output")
def llama_norm(
    functions: Mapping[str, Callable], weight: Tensor, eps: float, x: Tensor
) -> dict[str, Any]:
    """Return the ``output`` of ``RMSNorm(width, eps)`` with this weight, in x's dtype."""
    norm = functions["RMSNorm"](len(weight), eps)
    norm.load_state_dict({"weight": weight})
    return {"output": norm.to(x.dtype)(x).detach()}


@driver("output", observed={"config": "that the config is not changed"})
def llama_block(
    functions: Mapping[str, Callable],
    config: Mapping[str, Any],
    weights: Mapping[str, Tensor],
    x: Tensor,
    positions: Tensor,
) -> dict[str, Any]:
    """Return the ``output`` of ``LlamaBlock(config)`` with these weights, in x's dtype.

    ``config`` says whether the block left its config as it was.
    """
    given = copy.deepcopy(dict(config))
    block = functions["LlamaBlock"](given)
    block.load_state_dict(dict(weights))
    output = block.to(x.dtype)(x, positions).detach()
    return {"output": output, "config": given == config}


@driver(
    "logits",
    observed={
        "training": "in which mode `load_llama` leaves a module",
        "numbers": "how many numbers the parameters have",
    },
)
def llama_logits(
    functions: Mapping[str, Callable], config: Mapping[str, Any], seed: int, tokens: Tensor
) -> dict[str, Any]:
    """Return the ``logits`` of ``load_llama(folder)`` for a :func:`llama_folder`.

    ``training`` is the mode of the module. ``numbers`` is the number of its parameters' elements; a
    parameter with two names counts once.
    """
    with tempfile.TemporaryDirectory() as place, unlogged(), redirect_stderr(io.StringIO()):
        model = functions["load_llama"](llama_folder(Path(place), config, seed))
        with torch.no_grad():
            logits = model(tokens)
    numbers = sum(p.numel() for p in model.parameters())
    return {"logits": logits, "training": model.training, "numbers": numbers}


@functools.cache
def _files_of(says: tuple[tuple[str, Any], ...]) -> dict[str, bytes]:
    """Return the files of a :func:`small_folder`: name -> bytes."""
    with tempfile.TemporaryDirectory() as place:
        folder = small_folder(Path(place), dict(says))
        return {file.name: file.read_bytes() for file in folder.iterdir()}


@contextlib.contextmanager
def _counted_rows() -> Any:
    """Yield a set that collects the number of rows of each call of a causal model.

    At the end, undo the changes of modules and of `sys.path` by code from folders.
    """
    from transformers import LlamaForCausalLM

    rows: set[int] = set()

    def counting(forward: Callable) -> Callable:
        @functools.wraps(forward)  # `generate` reads its signature
        def counted(self: Any, input_ids: Any = None, **more: Any) -> Any:
            rows.add(len(more["inputs_embeds"] if input_ids is None else input_ids))
            return forward(self, input_ids=input_ids, **more)

        return counted

    paths = list(sys.path)
    with contextlib.ExitStack() as stack:
        place = stack.enter_context(tempfile.TemporaryDirectory())
        stack.enter_context(mock.patch("transformers.dynamic_module_utils.HF_MODULES_CACHE", place))
        for kind in (GPT2LMHeadModel, LlamaForCausalLM):
            stack.enter_context(mock.patch.object(kind, "forward", counting(kind.forward)))
        try:
            yield rows
        finally:
            sys.path[:] = paths
            for name in [n for n in sys.modules if n.startswith("transformers_modules")]:
                del sys.modules[name]


@driver(
    "texts",
    "looks",
    observed={"rows": "how many prompts are in a call of the model", "prompts": INPUTS_KEPT},
)
def completed(
    complete: Callable, says: Mapping[str, Any], prompts: Sequence[str], limit: int
) -> dict[str, Any]:
    """Return the result of ``complete(folder, prompts, limit)`` for a :func:`small_folder`.

    torch's generator starts with the same seed each time. So two answers that draw words in the
    same way get the same words. ``rows`` has the different numbers of prompts in the model's calls.
    ``prompts`` is the passed list after the call.
    """
    given = list(prompts)
    with (
        tempfile.TemporaryDirectory() as place,
        unlogged(),
        redirect_stderr(io.StringIO()),
        _counted_rows() as rows,
        torch.random.fork_rng(devices=[]),
    ):
        torch.manual_seed(0)
        folder = Path(place) / "model"
        folder.mkdir()
        for name, content in _files_of(tuple(sorted(says.items()))).items():
            (folder / name).write_bytes(content)
        texts, looks = complete(folder, given, limit)
    return {"texts": texts, "looks": looks, "rows": sorted(rows), "prompts": given}


@torch.no_grad()
def perplexity(
    weights: Mapping[str, Tensor], config: MiniGPTConfig, inputs: Tensor, targets: Tensor
) -> float:
    """Return the ``exp`` of a MiniGPT's mean cross-entropy, without ignored targets.

    Returns infinity if the result is too large for float64.
    """
    with torch.random.fork_rng(devices=[]):
        model = MiniGPT(config)
    model.load_state_dict(dict(weights))
    logits = model.eval()(inputs)
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten()).double().exp().item()


@contextlib.contextmanager
def counted_steps() -> Iterator[Counter[int]]:
    """Yield a counter of the steps that PyTorch's optimizers take: id of a parameter -> steps."""
    taken: Counter[int] = Counter()
    counting = register_optimizer_step_post_hook(
        lambda optimizer, args, kwargs: taken.update(
            {id(p) for group in optimizer.param_groups for p in group["params"]}
        )
    )
    try:
        yield taken
    finally:
        counting.remove()


Lines = tuple[Tensor, Tensor]
STEPS = "how many steps an optimizer takes"


@driver("once", "again", observed={"given": INPUTS_KEPT, "steps": STEPS})
def tuned_twice(
    fine_tune: Callable,
    weights: Mapping[str, Tensor],
    config: MiniGPTConfig,
    new: Lines,
    old: Lines,
    steps: int,
    seed: int,
) -> dict[str, Any]:
    """Return the results of two calls of ``fine_tune(weights, config, new, old, steps, seed)``.

    Between the calls a random number is drawn, as other code could do. ``given`` has the passed
    weights after the calls. ``steps`` is the largest number of steps that PyTorch's optimizers took
    with one parameter.
    """
    given = {name: tensor.clone() for name, tensor in weights.items()}
    with counted_steps() as first:
        once = fine_tune(given, config, new, old, steps, seed)
    once = {name: tensor.detach().clone() for name, tensor in once.items()}
    torch.rand(1)
    with counted_steps() as second:
        again = fine_tune(given, config, new, old, steps, seed)
    most = max([0, *first.values(), *second.values()])
    return {"once": once, "again": again, "given": given, "steps": most}
