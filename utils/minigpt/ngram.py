"""The baseline: an interpolated n-gram model, tuned as well as the data allows.

p(w | history) is a weighted mean (Jelinek and Mercer, 1980). The terms are the relative frequencies
of w after the last n-1, n-2, … 0 words, and the uniform probability 1 / V. Expectation maximisation
finds the weights for each length of history. For a test on held-out combinations, it uses lines
with held-out combinations.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from utils.minigpt.corpus import Line
from utils.minigpt.language import Words

ROUNDS = 30  # rounds of expectation maximisation; later rounds would not change the weights


class NGram:
    """An n-gram model of sentences. Cues are in the history, but are never predicted."""

    def __init__(self, order: int, vocab_size: int) -> None:
        self.order = order
        self.vocab_size = vocab_size
        self._after: dict[Words, Counter[str]] = {}  # history -> how often each word follows
        # number of levels whose history is known -> the weight of each level
        self._weights: dict[int, list[float]] = {}

    def fit(self, lines: Iterable[Line]) -> NGram:
        """Count every predicted word after each of its histories."""
        for line in lines:
            for history, word in _predictions(line):
                for length in range(min(self.order - 1, len(history)) + 1):
                    key = history[len(history) - length :]
                    self._after.setdefault(key, Counter())[word] += 1
        return self

    def tune(self, lines: Iterable[Line]) -> NGram:
        """Choose the weights that make `lines` likeliest. Call `fit` first."""
        levels: dict[int, list[list[float]]] = {}
        for line in lines:
            for history, word in _predictions(line):
                row = self._levels(history, word)
                levels.setdefault(len(row), []).append(row)
        for size, rows in levels.items():
            weights = [1 / size] * size
            for _ in range(ROUNDS):
                totals = [0.0] * size
                for row in rows:
                    parts = [weight * p for weight, p in zip(weights, row, strict=True)]
                    whole = sum(parts)
                    totals = [t + part / whole for t, part in zip(totals, parts, strict=True)]
                weights = [total / len(rows) for total in totals]
            self._weights[size] = weights
        return self

    def probability(self, history: Words, word: str) -> float:
        """Return p(word | history), above 0 for every word of the vocabulary."""
        row = self._levels(history, word)
        weights = self._weights.get(len(row), [1 / len(row)] * len(row))
        return sum(weight * p for weight, p in zip(weights, row, strict=True))

    def perplexity(self, lines: Sequence[Line]) -> float:
        """Return exp of the mean negative log probability of the words after the cues."""
        logs = [
            math.log(self.probability(history, word))
            for line in lines
            for history, word in _predictions(line)
        ]
        return math.exp(-sum(logs) / len(logs))

    def _levels(self, history: Words, word: str) -> list[float]:
        """Return the uniform probability, then the frequencies after 0, 1, … words.

        The list ends before the first history that was never seen.
        """
        row = [1 / self.vocab_size]
        for length in range(min(self.order - 1, len(history)) + 1):
            after = self._after.get(history[len(history) - length :])
            if after is None:
                break
            row.append(after[word] / after.total())
        return row


def _predictions(line: Line) -> Iterator[tuple[Words, str]]:
    for index in range(line.cues, len(line.words)):
        yield line.words[:index], line.words[index]
