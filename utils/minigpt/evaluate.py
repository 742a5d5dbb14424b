"""Measure how good MiniGPT is: `python -m utils.minigpt.evaluate`.

Perplexity stands beside that of an n-gram baseline on the same sentences. Conjugation is counted on
the combinations of verb, tense and person that were kept out of training (`utils.minigpt.corpus`).
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional as F

from utils.minigpt import corpus
from utils.minigpt.config import parameter_count
from utils.minigpt.corpus import LANGUAGES, Corpus, Line
from utils.minigpt.dataset import encode_lines
from utils.minigpt.generation import complete, load_minigpt
from utils.minigpt.language import PERSONS, Combination, Language
from utils.minigpt.model import MiniGPT
from utils.minigpt.ngram import NGram
from utils.minigpt.tokenizer import Tokenizer, load_tokenizer
from utils.minigpt.weights import MANIFEST, WEIGHTS

ORDERS = (3, 5)  # a 5-gram sees every cue when the subject is one word
NAMES = {"en": "English", "es": "Spanish"}


@dataclass(frozen=True)
class Perplexity:
    """Perplexities per word of one split, over the words after the cues.

    `grammar` is the lower bound: that of a model that knows the grammar, and only cannot know which
    subject, complement and time words come.
    """

    split: str
    lines: int
    minigpt: float
    trigram: float
    fivegram: float
    grammar: float


@dataclass(frozen=True)
class Conjugation:
    """How many prompts of the combinations held out MiniGPT continues rightly, word by word.

    Attributes:
        verb_right: prompts whose verb group is right.
        sentence_right: those of them whose words up to `<eos>` are right, too.
    """

    language: str
    kind: str
    combinations: int
    prompts: int
    verb_right: int
    sentence_right: int


@dataclass(frozen=True)
class Report:
    """All figures of one model."""

    perplexity: tuple[Perplexity, ...]
    conjugation: tuple[Conjugation, ...]

    def accuracy(self, language: str) -> float:
        """Return the share of right verb groups over all combinations held out in a language."""
        rows = [row for row in self.conjugation if row.language == language]
        return sum(row.verb_right for row in rows) / sum(row.prompts for row in rows)

    def figures(self) -> dict[str, Any]:
        """Return what the manifest states; perplexities to 4 decimals."""
        perplexity = [
            {key: round(value, 4) if type(value) is float else value for key, value in row.items()}
            for row in map(asdict, self.perplexity)
        ]
        accuracy = {code: round(self.accuracy(code), 4) for code in LANGUAGES}
        return {
            "perplexity": perplexity,
            "conjugation": [asdict(row) for row in self.conjugation],
            "accuracy": accuracy,
        }

    def agrees(self, stated: dict[str, Any]) -> bool:
        """Return whether a manifest states these figures; perplexities may differ by rounding."""
        found = self.figures()
        return all(found[key] == stated[key] for key in ("conjugation", "accuracy")) and all(
            mine == theirs if type(mine) is not float else math.isclose(mine, theirs, rel_tol=1e-3)
            for row, other in zip(found["perplexity"], stated["perplexity"], strict=True)
            for mine, theirs in ((row[key], other[key]) for key in row)
        )

    def __str__(self) -> str:
        models = "".join(f"{name:>10}" for name in ("MiniGPT", "trigram", "5-gram", "grammar"))
        lines = [
            "Perplexity per word, on sentences kept from training (lower is better)",
            f"  {'':<28}{'sentences':>10}{models}",
        ]
        for p in self.perplexity:
            values = "".join(f"{v:>10.3f}" for v in (p.minigpt, p.trigram, p.fivegram, p.grammar))
            lines.append(f"  {p.split:<28}{p.lines:>10}{values}")
        lines += [
            "",
            "Conjugation of combinations held out (every subject, affirmative and negative)",
            f"  {'':<28}{'cells':>10}{'prompts':>10}{'verb right':>18}{'sentence right':>18}",
        ]
        for c in self.conjugation:
            name = f"{NAMES[c.language]}, {c.kind}"
            row = f"  {name:<28}{c.combinations:>10}{c.prompts:>10}"
            for right in (c.verb_right, c.sentence_right):
                row += f"{f'{right} ({right / c.prompts:.1%})':>18}" if c.prompts else f"{'-':>18}"
            lines.append(row)
        total = ", ".join(f"{NAMES[code]} {self.accuracy(code):.1%}" for code in LANGUAGES)
        return "\n".join([*lines, "", f"Verb right in all: {total}"])


def evaluate(model: MiniGPT, tokenizer: Tokenizer, data: Corpus) -> Report:
    """Return all figures of a model on the corpus that it was trained on."""
    sentences = [line for line in data.train if line.cell]  # lists would only blur the counts
    three, five = (NGram(order, len(tokenizer)).fit(sentences) for order in ORDERS)
    perplexity = tuple(
        Perplexity(
            split,
            len(lines),
            minigpt_perplexity(model, tokenizer, lines),
            three.tune(like_them).perplexity(lines),
            five.tune(like_them).perplexity(lines),
            grammar_perplexity(lines),
        )
        for split, lines, like_them in (
            ("combinations seen", data.test_seen, data.tune_seen),
            ("combinations held out", data.test_held_out, data.tune_held_out),
        )
    )
    conjugation = tuple(
        conjugate(model, tokenizer, code, kind, cells)
        for code in LANGUAGES
        for kind, cells in (("composed", data.composed), ("own form", data.own_form))
    )
    return Report(perplexity, conjugation)


@torch.no_grad()
def minigpt_perplexity(model: MiniGPT, tokenizer: Tokenizer, lines: Sequence[Line]) -> float:
    """Return exp of the mean cross-entropy of the words after the cues."""
    inputs, targets = encode_lines(lines, tokenizer, model.config.context)
    longest = max(len(line.words) for line in lines)
    logits = model(inputs[:, :longest])
    return math.exp(F.cross_entropy(logits.flatten(0, 1), targets[:, :longest].flatten()).item())


def grammar_perplexity(lines: Sequence[Line]) -> float:
    """Return the perplexity of the grammar's own probabilities."""
    nats, words = 0.0, 0
    for line in lines:
        assert line.cell is not None
        language = LANGUAGES[line.cell.language]
        subjects = language.subjects[line.cell.person]
        count = len(PERSONS) * len(subjects) * len(corpus.sentences(line.cell, subjects[0], False))
        nats += math.log(count)
        words += len(line.words) - line.cues
    return math.exp(nats / words)


def conjugate(
    model: MiniGPT, tokenizer: Tokenizer, code: str, kind: str, cells: frozenset[Combination]
) -> Conjugation:
    """Ask for each combination with every subject, affirmative and negative, greedily."""
    language = LANGUAGES[code]
    chosen = sorted((cell for cell in cells if cell.language == code), key=str)
    asked = [
        (cell, subject, negative)
        for cell in chosen
        for subject in language.subjects[cell.person]
        for negative in (False, True)
    ]
    prompts = [
        tokenizer.encode(
            (
                *corpus.cues(language, verb=cell.verb, tense=cell.tense, negative=negative),
                *subject.split(),
            )
        )
        for cell, subject, negative in asked
    ]
    verb_right = sentence_right = 0
    answers = complete(prompts, model=model) if prompts else []
    for (cell, subject, negative), ids in zip(asked, answers, strict=True):
        words = tuple(tokenizer.words(ids))
        group = language.group(cell, negative)
        verb_right += words[: len(group)] == group
        allowed = corpus.sentences(cell, subject, negative)
        sentence_right += (*subject.split(), *words) in {(*one, "<eos>") for one in allowed}
    return Conjugation(code, kind, len(chosen), len(asked), verb_right, sentence_right)


def right_by_tense(model: MiniGPT, tokenizer: Tokenizer) -> dict[str, dict[str, float]]:
    """Return language -> tense -> the share of right verb groups, four decimals.

    Asked for each verb and person once, with the person's first subject, affirmative.
    """
    found: dict[str, dict[str, float]] = {}
    for code, language in LANGUAGES.items():
        found[code] = {}
        for tense in language.tenses:
            cells = [cell for cell in language.combinations() if cell.tense == tense]
            prompts = [
                (*corpus.cues(language, verb=c.verb, tense=tense), *_first(language, c).split())
                for c in cells
            ]
            answers = complete([tokenizer.encode(words) for words in prompts], model=model)
            groups = [language.group(cell) for cell in cells]
            right = [
                tuple(tokenizer.words(ids))[: len(group)] == group
                for ids, group in zip(answers, groups, strict=True)
            ]
            found[code][tense] = round(sum(right) / len(right), 4)
    return found


def _first(language: Language, cell: Combination) -> str:
    return language.subjects[cell.person][0]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the report of a weights file, and what its manifest states when that differs.

    Of a model that was trained without a tense, the share of right verb groups is printed.
    """
    parser = argparse.ArgumentParser(prog="python -m utils.minigpt.evaluate", description=__doc__)
    parser.add_argument("--weights", type=Path, default=WEIGHTS, help="a safetensors file")
    path = parser.parse_args(arguments).weights
    torch.set_num_threads(1)  # more gain nothing here, and lose much on a busy machine
    manifest = json.loads(path.with_name(MANIFEST).read_text(encoding="utf-8"))
    model, data, without = load_minigpt(path), corpus.build(manifest["seed"]), manifest["without"]
    print(f"MiniGPT, {parameter_count(model.config):,} parameters, {path}\n")
    if without:  # it shares the tokenizer of the model that was trained on all tenses
        data = corpus.without(data, without)
        figures = right_by_tense(model, load_tokenizer())
        agrees = figures == manifest["figures"]
        print(json.dumps(figures, indent=2))
    else:
        report = evaluate(model, load_tokenizer(path.with_name("tokenizer.json")), data)
        agrees = report.agrees(manifest["figures"])
        print(report)
    if data.sha256() != manifest["data"]["sha256"]:
        print("\nThe corpus is not the one that these weights were trained on: train again.")
    elif not agrees:
        print(f"\nThe manifest states other figures: {json.dumps(manifest['figures'])}")


if __name__ == "__main__":
    main()
