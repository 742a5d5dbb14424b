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
    """The attention of MiniGPT while it wrote a sentence."""

    words: Words  # the T tokens, with the cues
    # (n_layers, H, T, T) float32; row i has the attention of position i to each position
    maps: Tensor


def load_minigpt(path: Path | str = WEIGHTS) -> MiniGPT:
    """Return a new model in eval mode, on the CPU, with the weights that `load_weights` reads."""
    # All weights are replaced below. So the creation of the model must not change torch's random
    # state.
    with torch.random.fork_rng(devices=[]):
        model = MiniGPT(load_config(path))
    model.load_state_dict({name: torch.from_numpy(a) for name, a in load_weights(path).items()})
    return model.eval()


def generate(
    subject: str,
    *,
    verb: str,
    tense: str,
    negative: bool = False,
    model: MiniGPT | None = None,
    return_attention: bool = False,
) -> Any:
    """Return the sentence of a subject, a verb and a tense.

    ``generate("yo", verb="hablar", tense="past")`` is ``"yo hablé … anoche."``

    subject: for example "yo", "ustedes", "Ana y yo", "she" or "Ana and I".
    verb: an infinitive. It decides the language.
    tense: present, past (the pretérito in Spanish), imperfect (only in Spanish), future,
        progressive or perfect.
    model: by default the trained model. It always takes the likeliest word.
    return_attention: whether to return (text, Attention).

    Raises ValueError for an unknown verb, tense or subject. The message lists the known words.
    """
    model, tokenizer = model or _trained(), _tokenizer()
    start = (*_cues(subject, verb, tense, negative), *subject.split())
    prompt = tokenizer.encode(start)
    (rest,) = complete([prompt], model)
    text = " ".join([subject, tokenizer.decode(rest)])
    if not return_attention:
        return text
    ids = [index for index in (*prompt, *rest) if index != EOS]
    tokens = torch.tensor([ids], device=model.lm_head.weight.device)
    maps = attention_maps(model, tokens)[:, 0].cpu()
    return text, Attention(tuple(tokenizer.words(ids)), maps)


@torch.no_grad()
def complete(prompts: Sequence[Sequence[int]], model: MiniGPT | None = None) -> list[list[int]]:
    """Continue each prompt, a list of ids, until the model writes `<eos>` or the context is full.

    The `<eos>` is in the result. The model is by default the trained model, and always takes the
    likeliest word. Raises ValueError for a prompt that is empty or that fills the context.
    """
    model = model or _trained()
    for prompt in prompts:
        if not 0 < len(prompt) < model.config.context:
            most = model.config.context - 1
            raise ValueError(f"expected prompts of 1 to {most} tokens, got {len(prompt)}")
    device = model.lm_head.weight.device
    tokens = torch.full((len(prompts), model.config.context), PAD, device=device)
    for row, prompt in enumerate(prompts):
        tokens[row, : len(prompt)] = torch.tensor(prompt)
    # the index of each row's next token
    ends = torch.tensor([len(prompt) for prompt in prompts], device=device)
    open_rows = torch.arange(len(prompts), device=device)
    while len(open_rows):
        last = ends[open_rows] - 1
        # The model is causal: padding after a row's last word can't change that word's logits.
        hidden = model.hidden(tokens[open_rows, : int(last.max()) + 1])
        logits = model.lm_head(hidden[torch.arange(len(last), device=device), last])
        words = model.softmax(logits).argmax(-1)
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


@cache
def _trained() -> MiniGPT:
    """Return the trained model. Only this module may use it, because all calls share it."""
    return load_minigpt()


@cache
def _tokenizer() -> Tokenizer:
    return load_tokenizer()
