"""Lines of the corpus as stored token ids, so that a training run doesn't have to build the corpus.

`lines.safetensors` has the first lines of the training split. It also has all lines of the two
splits on which perplexities are measured. The file stores all tokens in one row, the length of each
line, and the number of cues in each line.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.numpy import save_file
from torch import Tensor

from utils.minigpt.config import MiniGPTConfig
from utils.minigpt.corpus import Corpus
from utils.minigpt.dataset import IGNORED
from utils.minigpt.spanish import SPANISH
from utils.minigpt.tokenizer import DATA, PAD, Tokenizer, load_tokenizer
from utils.minigpt.weights import MANIFEST, read_safetensors

LINES = DATA / "lines.safetensors"
TRAINING = 6_000  # stored lines of the training split, which has more than 46,000 lines
PARTS = {"tokens": np.uint16, "lengths": np.uint8, "cues": np.uint8}


def training_lines() -> tuple[Tensor, Tensor]:
    """Return inputs and targets of 6,000 lines of the training split, each (6000, 32) int64.

    The target of each token is the next token. Inputs end in `<pad>`, which is 0. A target is
    IGNORED, -100, if the next token is a cue or padding. Each call returns new tensors.
    """
    return _decoded("train")


def evaluation_lines(held_out: bool = False) -> tuple[Tensor, Tensor]:
    """Return inputs and targets, (1000, 32) int64, of the lines on which `baselines` were measured.

    held_out: whether to return the lines whose combinations of verb, tense and person are in no
        named training line.
    """
    return _decoded("held_out" if held_out else "seen")


def imperfect_lines(inputs: Tensor) -> Tensor:
    """Return for each line of (N, T) whether it is a sentence in the Spanish imperfect: (N,) bool.

    A line is such a sentence if it has a word of the imperfect, because these words are in no other
    tense. A list of forms is not a sentence.
    """
    tokenizer = load_tokenizer()
    cells = [cell for cell in SPANISH.combinations() if cell.tense == "imperfect"]
    forms = torch.tensor(tokenizer.encode([SPANISH.group(cell)[-1] for cell in cells]))
    lists = (inputs == tokenizer.id("<forms>")).any(1)
    return torch.isin(inputs, forms).any(1) & ~lists


def baselines() -> dict[str, dict[str, float]]:
    """Return split -> name -> perplexity per word on `evaluation_lines`, from the manifest.

    The splits are "combinations seen" and "combinations held out". The names are "trigram",
    "fivegram", "minigpt" (the shipped weights) and "grammar" (the lower bound). MiniGPT was trained
    on the whole training split, and the n-grams were trained on all sentences of this split. The
    grammar needs no training.
    """
    manifest = json.loads((DATA / MANIFEST).read_text(encoding="utf-8"))
    names = ("trigram", "fivegram", "minigpt", "grammar")
    rows = manifest["figures"]["perplexity"]
    return {row["split"]: {name: row[name] for name in names} for row in rows}


def save_lines(path: Path, data: Corpus, tokenizer: Tokenizer) -> None:
    """Write the file that `training_lines` and `evaluation_lines` read."""
    splits = {"train": data.train[:TRAINING], "seen": data.test_seen}
    splits["held_out"] = data.test_held_out
    arrays: dict[str, NDArray] = {}
    for split, lines in splits.items():
        ids = [tokenizer.encode(line.words) for line in lines]
        arrays[f"{split}.tokens"] = np.array([i for row in ids for i in row], np.uint16)
        arrays[f"{split}.lengths"] = np.array([len(row) for row in ids], np.uint8)
        arrays[f"{split}.cues"] = np.array([line.cues for line in lines], np.uint8)
    save_file(arrays, path, {"corpus": data.sha256()})


def _decoded(split: str) -> tuple[Tensor, Tensor]:
    tokens, lengths, cues = (_arrays()[f"{split}.{part}"] for part in PARTS)
    place = np.arange(MiniGPTConfig().context)
    inputs = np.full((len(lengths), len(place)), PAD, np.int64)
    inputs[place < lengths[:, None]] = tokens
    targets = np.full_like(inputs, IGNORED)
    targets[:, :-1] = inputs[:, 1:]
    learnt = (place >= cues[:, None] - 1) & (place < lengths[:, None] - 1)
    targets[~learnt] = IGNORED
    return torch.from_numpy(inputs), torch.from_numpy(targets)


@cache
def _arrays() -> dict[str, NDArray]:
    return {name: array.astype(np.int64) for name, array in read_safetensors(LINES)[1].items()}
