"""Train MiniGPT: `python -m utils.minigpt.train` writes the weights, the tokenizer and a manifest.

With `--without imperfect` it trains a smaller model on a corpus without sentences in the imperfect.
It writes the weights and the manifest of this smaller model to another folder, for lab 08.

On the same machine, with the same torch version, the same seed gives the same bits. All random
numbers come from the seed, and a single thread adds all numbers in the same order.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy
import torch
from torch import nn
from torch.nn import functional as F

from utils.minigpt import corpus
from utils.minigpt.config import MiniGPTConfig, parameter_count
from utils.minigpt.corpus import Corpus, Line
from utils.minigpt.dataset import batches, encode_lines
from utils.minigpt.evaluate import Figures, evaluate, right_by_tense
from utils.minigpt.language import TENSES
from utils.minigpt.lines import LINES, save_lines
from utils.minigpt.model import MiniGPT
from utils.minigpt.tokenizer import DATA, Tokenizer
from utils.minigpt.weights import MANIFEST, WEIGHTS, save_weights, sha256

# a second thread does not help with such small tensors, and is much slower on a busy machine
THREADS = 1
REPORT_EVERY = 250  # steps
SMALL = {"d_model": 32, "n_heads": 4, "n_layers": 1, "d_ff": 128}  # a quarter of the parameters

Progress = Callable[[int, float], None]


@dataclass(frozen=True)
class Recipe:
    """The settings of a training run.

    The learning rate rises for `warmup` steps, and then falls like a cosine.
    """

    seed: int = 0
    steps: int = 6000
    batch_size: int = 64
    learning_rate: float = 3e-3
    final_share: float = 0.05  # the learning rate of the last step, relative to the highest rate
    warmup: int = 200
    beta_1: float = 0.9
    beta_2: float = 0.99
    weight_decay: float = 0.1  # only for matrices, and not for biases and norms
    clip: float = 1.0  # the largest allowed norm of all gradients together

    def learning_rate_at(self, step: int) -> float:
        """Return the learning rate of a step, counted from 0."""
        if step < self.warmup:
            return self.learning_rate * (step + 1) / self.warmup
        done = (step - self.warmup) / max(1, self.steps - self.warmup)
        cosine = 0.5 * (1 + math.cos(math.pi * done))
        return self.learning_rate * (self.final_share + (1 - self.final_share) * cosine)


def train(
    lines: Sequence[Line],
    tokenizer: Tokenizer,
    config: MiniGPTConfig,
    recipe: Recipe,
    progress: Progress | None = None,
) -> MiniGPT:
    """Return a model trained on `lines`, in eval mode.

    During the training, torch is deterministic and uses THREADS threads. The training seeds torch's
    global generator with the recipe's seed. After every REPORT_EVERY steps, ``progress(step,
    loss)`` is called with the mean loss since the last call.
    """
    with reproducible(recipe.seed):
        model = MiniGPT(config).train()
        optimizer = make_optimizer(model, recipe)
        inputs, targets = encode_lines(lines, tokenizer, config.context)
        order = torch.Generator().manual_seed(recipe.seed)
        losses: list[float] = []
        stream = batches(inputs, targets, recipe.batch_size, order)
        for step, (x, y) in zip(range(recipe.steps), stream, strict=False):
            for group in optimizer.param_groups:
                group["lr"] = recipe.learning_rate_at(step)
            loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), recipe.clip)
            optimizer.step()
            losses.append(loss.item())
            if progress and ((step + 1) % REPORT_EVERY == 0 or step + 1 == recipe.steps):
                progress(step + 1, sum(losses) / len(losses))
                losses.clear()
        return model.eval()


@contextmanager
def reproducible(seed: int) -> Iterator[None]:
    """Seed torch, and make it deterministic with THREADS threads, in a `with` block."""
    threads, deterministic = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
    torch.set_num_threads(THREADS)
    torch.use_deterministic_algorithms(True)
    torch.manual_seed(seed)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        torch.use_deterministic_algorithms(deterministic, warn_only=warn_only)


def make_optimizer(model: MiniGPT, recipe: Recipe) -> torch.optim.AdamW:
    """Return AdamW with weight decay on matrices only."""
    matrices = [p for p in model.parameters() if p.dim() >= 2]
    vectors = [p for p in model.parameters() if p.dim() < 2]
    groups = [
        {"params": matrices, "weight_decay": recipe.weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    betas = (recipe.beta_1, recipe.beta_2)
    return torch.optim.AdamW(groups, lr=recipe.learning_rate, betas=betas)


def write(
    folder: Path,
    model: MiniGPT,
    tokenizer: Tokenizer,
    data: Corpus,
    recipe: Recipe,
    figures: dict[str, Any],
    without: str = "",
) -> None:
    """Write weights.safetensors, tokenizer.json, lines.safetensors and manifest.json to `folder`.

    For a model that was trained `without` a tense, write only the weights and the manifest. This
    model shares the tokenizer and the lines with the main model.
    """
    folder.mkdir(parents=True, exist_ok=True)
    weights, words = folder / WEIGHTS.name, folder / "tokenizer.json"
    lines = folder / LINES.name
    # Nobody may read new weights with an old manifest: delete the manifest first, and write it
    # last.
    (folder / MANIFEST).unlink(missing_ok=True)
    arrays = {name: tensor.numpy() for name, tensor in model.state_dict().items()}
    save_weights(weights, arrays, model.config)
    if not without:
        tokenizer.save(words)
        save_lines(lines, data, tokenizer)
    command = f"python -m utils.minigpt.train --seed {recipe.seed} --steps {recipe.steps}"
    manifest = {
        "command": f"{command} --without {without}" if without else command,
        "seed": recipe.seed,
        "without": without,
        "model": asdict(model.config),
        "parameters": parameter_count(model.config),
        "recipe": asdict(recipe),
        "data": {
            "sha256": data.sha256(),
            "train_lines": len(data.train),
            "combinations_held_out": len(data.held_out),
            "vocabulary": len(tokenizer),
        },
        "figures": figures,
        "trained_on": {
            "threads": THREADS,
            "python": platform.python_version(),
            "torch": torch.__version__,
            "numpy": numpy.__version__,
            "machine": platform.machine(),
            "instructions": torch.backends.cpu.get_cpu_capability(),
        },
        "files": {
            path.name: {"sha256": sha256(path), "bytes": path.stat().st_size}
            for path in ((weights,) if without else (weights, words, lines))
        },
    }
    text = json.dumps(manifest, indent=2, ensure_ascii=False)
    (folder / MANIFEST).write_text(text + "\n", encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> None:
    """Build the corpus, train, evaluate, write."""
    recipe = Recipe()
    parser = argparse.ArgumentParser(prog="python -m utils.minigpt.train", description=__doc__)
    parser.add_argument("--seed", type=int, default=recipe.seed, help="default: %(default)s")
    parser.add_argument("--steps", type=int, default=recipe.steps, help="default: %(default)s")
    parser.add_argument("--without", choices=TENSES, help="train a small model without a tense")
    parser.add_argument(
        "--out",
        type=Path,
        help=f"the folder to write to (default: {DATA}; with --without, a folder inside it)",
    )
    options = parser.parse_args(arguments)
    recipe = Recipe(seed=options.seed, steps=options.steps)
    without: str = options.without or ""

    data = corpus.build(recipe.seed)
    data = corpus.without(data, without) if without else data
    tokenizer = Tokenizer(corpus.vocabulary())
    config = MiniGPTConfig(vocab_size=len(tokenizer), **(SMALL if without else {}))
    print(
        f"{len(data.train):,} lines, {len(tokenizer)} words, "
        f"{parameter_count(config):,} parameters, "
        f"{len(data.held_out)} combinations held out",
        flush=True,
    )
    began = time.monotonic()

    def progress(step: int, loss: float) -> None:
        spent = time.monotonic() - began
        left = spent / step * (recipe.steps - step)
        done = f"step {step:>5} of {recipe.steps}"
        print(f"{done}   loss {loss:.4f}   {left:4.0f} s left", flush=True)

    model = train(data.train, tokenizer, config, recipe, progress)
    print(f"trained in {time.monotonic() - began:.0f} s\n")
    figures: Figures = (
        right_by_tense(model, tokenizer) if without else evaluate(model, tokenizer, data)
    )
    print(json.dumps(figures, indent=2))
    folder: Path = options.out or (DATA / f"without_{without}" if without else DATA)
    write(folder, model, tokenizer, data, recipe, figures, without)
    written = ", ".join(sorted(path.name for path in folder.iterdir() if path.is_file()))
    print(f"\nwrote {written} to {folder}")


if __name__ == "__main__":
    main()
