"""MiniGPT, the course's running example: a small grammar model over English and Spanish verbs.

    from utils.minigpt import generate, load_minigpt

    generate("yo", verb="hablar", tense="past")     # yo hablé español anoche.
    model = load_minigpt()                          # the trained torch module
    logits = model.lm_head(model.hidden(tokens))    # the LM head alone: nn.Linear(64, 600)

Names are looked up when they are first used, so that importing MiniGPTConfig loads no torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from utils.minigpt.config import MiniGPTConfig, parameter_count, parameter_shapes

if TYPE_CHECKING:
    from utils.minigpt.generation import Attention, attention_maps, complete, generate, load_minigpt
    from utils.minigpt.lines import (
        baselines,
        evaluation_lines,
        imperfect_lines,
        training_lines,
    )
    from utils.minigpt.model import MiniGPT
    from utils.minigpt.picture import attention_picture
    from utils.minigpt.tokenizer import Tokenizer, load_tokenizer
    from utils.minigpt.weights import (
        WITHOUT_IMPERFECT,
        WeightsError,
        load_config,
        load_weights,
        save_weights,
    )

_HOMES = {
    "Attention": "generation",
    "MiniGPT": "model",
    "Tokenizer": "tokenizer",
    "WITHOUT_IMPERFECT": "weights",
    "WeightsError": "weights",
    "attention_maps": "generation",
    "attention_picture": "picture",
    "baselines": "lines",
    "complete": "generation",
    "evaluation_lines": "lines",
    "generate": "generation",
    "imperfect_lines": "lines",
    "load_config": "weights",
    "load_minigpt": "generation",
    "load_tokenizer": "tokenizer",
    "load_weights": "weights",
    "save_weights": "weights",
    "training_lines": "lines",
}

__all__ = [  # noqa: PLE0604
    "WITHOUT_IMPERFECT",
    "Attention",
    "MiniGPT",
    "MiniGPTConfig",
    "Tokenizer",
    "WeightsError",
    "attention_maps",
    "attention_picture",
    "baselines",
    "complete",
    "evaluation_lines",
    "generate",
    "imperfect_lines",
    "load_config",
    "load_minigpt",
    "load_tokenizer",
    "load_weights",
    "parameter_count",
    "parameter_shapes",
    "save_weights",
    "training_lines",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
