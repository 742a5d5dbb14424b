"""MiniGPT, the course's running example: a small grammar model over English and Spanish verbs.

    from utils.minigpt import generate, load_minigpt

    generate("yo", verb="hablar", tense="past")     # yo hablé español anoche.
    model = load_minigpt()                          # the trained torch module
    logits = model.lm_head(model.hidden(tokens))    # the LM head alone: nn.Linear(64, 600)

A name's module is imported when the name is first used. So importing MiniGPTConfig loads no torch.
"""
# ruff: noqa: F401  the names of the room

from importlib import import_module
from typing import TYPE_CHECKING, Any

from utils.minigpt.config import MiniGPTConfig, parameter_count, parameter_shapes

if TYPE_CHECKING:
    from utils.minigpt.generation import Attention, attention_maps, complete, generate, load_minigpt
    from utils.minigpt.lines import baselines, evaluation_lines, imperfect_lines, training_lines
    from utils.minigpt.model import MiniGPT
    from utils.minigpt.tokenizer import Tokenizer, load_tokenizer
    from utils.minigpt.weights import (
        WITHOUT_IMPERFECT,
        WeightsError,
        load_config,
        load_weights,
        save_weights,
    )

_HOMES = {
    "generation": ("Attention", "attention_maps", "complete", "generate", "load_minigpt"),
    "lines": ("baselines", "evaluation_lines", "imperfect_lines", "training_lines"),
    "model": ("MiniGPT",),
    "tokenizer": ("Tokenizer", "load_tokenizer"),
    "weights": ("WITHOUT_IMPERFECT", "WeightsError", "load_config", "load_weights", "save_weights"),
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
