"""Use MiniGPT: conjugate, complete, and show where it looks."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from utils.minigpt import corpus
from utils.minigpt.language import Language, Words
from utils.minigpt.model import MiniGPT
from utils.minigpt.tokenizer import EOS, PAD, Tokenizer, load_tokenizer
from utils.minigpt.weights import WEIGHTS, load_config, load_weights


@dataclass(frozen=True)
class Attention:
    """Where MiniGPT looked while it wrote a sentence."""

    words: Words  # T tokens, cues included
    # (n_layers, H, T, T) float32; row i says how much position i looks at each position
    maps: Tensor


def load_minigpt(path: Path | str = WEIGHTS) -> MiniGPT:
    """Return a new model in eval mode, on the CPU, with a file's weights, as `load_weights`."""
    with torch.random.fork_rng(devices=[]):  # its first weights are replaced: no seed is spent
        model = MiniGPT(load_config(path))
    model.load_state_dict({name: torch.from_numpy(a) for name, a in load_weights(path).items()})
    return model.eval()


def generate(
    subject: str,
    *,
    verb: str,
    tense: str,
    negative: bool = False,
    temperature: float = 0.0,
    top_k: int | None = None,
    generator: torch.Generator | None = None,
    model: MiniGPT | None = None,
    return_attention: bool = False,
) -> Any:
    """Return the sentence of a subject, a verb and a tense.

    ``generate("yo", verb="hablar", tense="past")`` is ``"yo hablé … anoche."``

    A subject is one as in "yo", "ustedes", "Ana y yo", "she", "Ana and I". The verb is an
    infinitive, which decides the language. The tense is present, past (the pretérito in Spanish),
    imperfect (Spanish only), future, progressive or perfect. By default the trained model takes the
    likeliest word each time; for temperature, top_k, generator and model see `complete`. With
    `return_attention` (text, Attention) comes instead of the text. Raises ValueError for a verb,
    tense or subject that MiniGPT does not know, with those it knows.
    """
    model, tokenizer = model or _trained(), _tokenizer()
    start = (*_cues(subject, verb, tense, negative), *subject.split())
    prompt = tokenizer.encode(start)
    (rest,) = complete(
        [prompt], model=model, temperature=temperature, top_k=top_k, generator=generator
    )
    text = " ".join([subject, tokenizer.decode(rest)])
    if not return_attention:
        return text
    ids = [index for index in (*prompt, *rest) if index != EOS]
    tokens = torch.tensor([ids], device=model.lm_head.weight.device)
    maps = attention_maps(model, tokens)[:, 0].cpu()
    return text, Attention(tuple(tokenizer.words(ids)), maps)


@torch.no_grad()
def complete(
    prompts: Sequence[Sequence[int]],
    *,
    model: MiniGPT | None = None,
    temperature: float = 0.0,
    top_k: int | None = None,
    generator: torch.Generator | None = None,
) -> list[list[int]]:
    """Continue each prompt, a list of ids, up to and with `<eos>` or until the context is full.

    There are one or more prompts, each shorter than the context and not empty; by default the
    trained model continues them. A temperature of 0 takes the likeliest word; above, logits are
    divided by it and the generator, by default torch's global one, draws a word, with `top_k` only
    among the k likeliest. Raises ValueError for other prompts, temperatures or a top_k below 1.
    """
    model = model or _trained()
    _require_sense(prompts, model.config.context, temperature, top_k)
    device = model.lm_head.weight.device
    tokens = torch.full((len(prompts), model.config.context), PAD, device=device)
    for row, prompt in enumerate(prompts):
        tokens[row, : len(prompt)] = torch.tensor(prompt)
    ends = torch.tensor([len(prompt) for prompt in prompts], device=device)  # where the next goes
    open_rows = torch.arange(len(prompts), device=device)
    while len(open_rows):
        last = ends[open_rows] - 1
        # Causal: what follows a row's last word, here padding, can't change that word's logits.
        hidden = model.hidden(tokens[open_rows, : int(last.max()) + 1])
        logits = model.lm_head(hidden[torch.arange(len(last), device=device), last])
        words = _choose(model, logits, temperature, top_k, generator)
        tokens[open_rows, last + 1] = words
        ends[open_rows] += 1
        going = (words != EOS) & (ends[open_rows] < model.config.context)
        open_rows = open_rows[going]
    return [
        tokens[row, len(prompt) : int(ends[row])].tolist() for row, prompt in enumerate(prompts)
    ]


@torch.no_grad()
def attention_maps(model: MiniGPT, tokens: Tensor) -> Tensor:
    """Return the attention of every head over tokens (B, T): (n_layers, B, H, T, T)."""
    maps: list[Tensor] = []
    blocks: Any = model.blocks
    hooks = [
        block.attention.pattern.register_forward_hook(lambda _, __, output: maps.append(output))
        for block in blocks
    ]
    try:
        model.hidden(tokens)
    finally:
        for hook in hooks:
            hook.remove()
    return torch.stack(maps)


def _choose(
    model: MiniGPT,
    logits: Tensor,
    temperature: float,
    top_k: int | None,
    generator: torch.Generator | None,
) -> Tensor:
    """Choose one word a row: logits (N, V) -> ids (N,)."""
    if temperature == 0:
        return model.softmax(logits).argmax(-1)
    if top_k is not None:
        least = logits.topk(min(top_k, logits.shape[-1])).values[:, -1:]
        logits = logits.masked_fill(logits < least, -torch.inf)
    probabilities = model.softmax(logits / temperature)
    return torch.multinomial(probabilities, 1, generator=generator)[:, 0]


def _cues(subject: str, verb: str, tense: str, negative: bool) -> Words:
    verbs = {name: language for language in corpus.LANGUAGES.values() for name in language.verbs}
    language: Language = verbs[_known("verb", verb, verbs)]
    _known(f"tense of {verb!r}", tense, language.tenses_of(verb))
    subjects = [one for group in language.subjects.values() for one in group]
    _known(f"subject of {verb!r}", subject, subjects)
    return corpus.cues(language, verb=verb, tense=tense, negative=negative)


def _known(kind: str, value: str, known: Iterable[str]) -> str:
    known = list(known)
    if value in known:
        return value
    near = difflib.get_close_matches(str(value), known, n=1, cutoff=0.85)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise ValueError(f"{value!r} is not a {kind} that MiniGPT knows: {', '.join(known)}{hint}")


def _require_sense(
    prompts: Sequence[Sequence[int]], context: int, temperature: float, top_k: int | None
) -> None:
    for prompt in prompts:
        if not 0 < len(prompt) < context:
            raise ValueError(f"expected prompts of 1 to {context - 1} tokens, got {len(prompt)}")
    if temperature < 0:
        raise ValueError(f"expected a temperature of 0 or more, got {temperature}")
    if top_k is not None and (top_k < 1 or temperature == 0):
        raise ValueError(
            f"top_k={top_k} at temperature={temperature}: top_k must be 1 or more, and only a "
            "temperature above 0 draws words"
        )


@cache
def _trained() -> MiniGPT:
    """It is never handed out."""
    return load_minigpt()


@cache
def _tokenizer() -> Tokenizer:
    return load_tokenizer()
