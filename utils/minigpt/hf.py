"""MiniGPT as a Hugging Face model in a local folder: `save_folder("minigpt")` writes it.

MiniGPT is a GPT-2 with one difference: MiniGPT's LM head has a bias, and GPT-2's class has no such
bias. So the folder's model type is "minigpt", and this module registers a class for this type. This
module also switches the hub off, even if `transformers` was imported before. So loading a model
that is not in a local folder fails at once.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"  # read when huggingface_hub is imported

import huggingface_hub.constants
import torch
from torch import Tensor, nn
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedTokenizerFast,
)
from transformers.utils.logging import disable_progress_bar

from utils.minigpt.generation import load_minigpt
from utils.minigpt.model import MiniGPT
from utils.minigpt.tokenizer import BOS, DATA, EOS, PAD, SPECIAL

# The names of each part of a block: Hugging Face's name, then MiniGPT's name. The weights of parts
# with a `.c_` are transposed.
BLOCK = {
    "ln_1": "norm_1",
    "attn.c_proj": "attention.output",
    "ln_2": "norm_2",
    "mlp.c_fc": "mlp.up",
    "mlp.c_proj": "mlp.down",
}
JOINED = ("query", "key", "value")  # these are side by side in `attn.c_attn`


class MiniGPTHFConfig(GPT2Config):
    """GPT-2's settings with a separate model type. The Auto classes find the class by this type."""

    model_type = "minigpt"


class MiniGPTForCausalLM(GPT2LMHeadModel):
    """GPT-2 with a bias in the LM head."""

    config_class = MiniGPTHFConfig

    def __init__(self, config: MiniGPTHFConfig) -> None:
        super().__init__(config)
        self.lm_head = nn.Linear(config.n_embd, config.vocab_size)
        self.post_init()


# needed if huggingface_hub was imported before this module
huggingface_hub.constants.HF_HUB_OFFLINE = True
disable_progress_bar()  # no progress bars, because the files are small
AutoConfig.register("minigpt", MiniGPTHFConfig)
AutoModelForCausalLM.register(MiniGPTHFConfig, MiniGPTForCausalLM)


def hf_config(model: MiniGPT) -> MiniGPTHFConfig:
    ours = model.config
    return MiniGPTHFConfig(
        vocab_size=ours.vocab_size,
        n_positions=ours.context,
        n_embd=ours.d_model,
        n_layer=ours.n_layers,
        n_head=ours.n_heads,
        n_inner=ours.d_ff,
        activation_function="gelu_new",
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        tie_word_embeddings=False,
        bos_token_id=BOS,
        eos_token_id=EOS,
        pad_token_id=PAD,
    )


def hf_state(model: MiniGPT) -> dict[str, Tensor]:
    """Return a MiniGPT's weights with Hugging Face's names, as new tensors."""
    ours = model.state_dict()
    theirs = {
        "transformer.wte.weight": ours["token_embedding.weight"],
        "transformer.wpe.weight": ours["position_embedding.weight"],
    }
    for layer in range(model.config.n_layers):
        # GPT-2's Conv1D keeps its weight as (in, out); a vector has nothing to transpose.
        here, there = f"blocks.{layer}", f"transformer.h.{layer}"
        for kind in ("weight", "bias"):
            joined = [ours[f"{here}.attention.{part}.{kind}"] for part in JOINED]
            theirs[f"{there}.attn.c_attn.{kind}"] = _turned(torch.cat(joined))
            for name, mine in BLOCK.items():
                tensor = ours[f"{here}.{mine}.{kind}"]
                theirs[f"{there}.{name}.{kind}"] = _turned(tensor) if ".c_" in name else tensor
    for kind in ("weight", "bias"):
        theirs[f"transformer.ln_f.{kind}"] = ours[f"final_norm.{kind}"]
        theirs[f"lm_head.{kind}"] = ours[f"lm_head.{kind}"]
    return {name: tensor.clone().contiguous() for name, tensor in theirs.items()}


def _turned(tensor: Tensor) -> Tensor:
    return tensor.T if tensor.dim() == 2 else tensor


def hf_model(model: MiniGPT | None = None, **settings: Any) -> MiniGPTForCausalLM:
    """Return a new Hugging Face model with a MiniGPT's weights, in eval mode.

    ``settings`` are settings of the config, such as ``attn_implementation="eager"``.
    """
    model = model or load_minigpt()
    config = hf_config(model)
    # All weights are replaced below. So the creation of the model must not change torch's random
    # state.
    with torch.random.fork_rng(devices=[]):
        made = MiniGPTForCausalLM._from_config(config, **settings)
    made.load_state_dict(hf_state(model))
    return made.eval()


def save_folder(folder: Path | str, model: MiniGPT | None = None) -> Path:
    """Write a folder for `from_pretrained`, with config, weights and tokenizer. Return its path."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    hf_model(model).save_pretrained(folder)
    words = shutil.copyfile(DATA / "tokenizer.json", folder / "tokenizer.json")
    pad, bos, eos = SPECIAL
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_file=str(words), pad_token=pad, bos_token=bos, eos_token=eos, padding_side="left"
    )
    tokenizer.save_pretrained(folder)
    return folder
