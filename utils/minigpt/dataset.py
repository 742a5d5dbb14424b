"""Lines of the corpus as tensors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from utils.minigpt.corpus import Line
from utils.minigpt.tokenizer import PAD, Tokenizer

IGNORED = -100  # a target that the loss ignores, as in torch.nn.functional.cross_entropy
CHUNK = 50  # batches that are sorted by length together


def encode_lines(
    lines: Sequence[Line], tokenizer: Tokenizer, context: int
) -> tuple[Tensor, Tensor]:
    """Return inputs and targets (N, context), int64. The target of each token is the next token.

    Inputs end in `<pad>`. A target is IGNORED if the next token is a cue or padding, because the
    model must not learn to predict cues or padding.
    """
    inputs = torch.full((len(lines), context), PAD)
    targets = torch.full((len(lines), context), IGNORED)
    for row, line in enumerate(lines):
        ids = torch.tensor(tokenizer.encode(line.words))
        if len(ids) > context:
            raise ValueError(f"expected at most {context} tokens, got {len(ids)}: {line.words}")
        inputs[row, : len(ids)] = ids
        targets[row, line.cues - 1 : len(ids) - 1] = ids[line.cues :]
    return inputs, targets


def batches(
    inputs: Tensor, targets: Tensor, batch_size: int, generator: torch.Generator
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield shuffled batches without end.

    A batch has the shape (batch_size, T), where T is the length of its longest line. Lines of
    similar length are in the same batch, so that short lines get little padding. Incomplete batches
    are left out.
    """
    if not 0 < batch_size <= len(inputs):
        raise ValueError(f"expected a batch size from 1 to {len(inputs)} lines, got {batch_size}")
    lengths = (targets != IGNORED).long().cumsum(1).argmax(1) + 2  # tokens up to <eos>
    while True:
        order = torch.randperm(len(inputs), generator=generator)
        rows: list[Tensor] = []
        for chunk in order.split(CHUNK * batch_size):
            chunk = chunk[lengths[chunk].argsort(stable=True)]
            rows += [part for part in chunk.split(batch_size) if len(part) == batch_size]
        for index in torch.randperm(len(rows), generator=generator).tolist():
            longest = int(lengths[rows[index]].max())
            yield inputs[rows[index], :longest], targets[rows[index], :longest]
