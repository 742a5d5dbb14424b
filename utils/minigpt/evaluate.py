"""Measure how good MiniGPT is: `python -m utils.minigpt.evaluate`.

This module compares the model's perplexity with the perplexity of an n-gram baseline on the same
sentences. It also tests conjugation on the combinations of verb, tense and person that were held
out of training (`utils.minigpt.corpus`).
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional as F

from hood.judge.checks.compare import Tolerance, agree
from utils.minigpt import corpus
from utils.minigpt.config import parameter_count
from utils.minigpt.corpus import LANGUAGES, Corpus, Line
from utils.minigpt.dataset import encode_lines
from utils.minigpt.generation import complete, load_minigpt
from utils.minigpt.language import PERSONS, Combination, Words
from utils.minigpt.model import MiniGPT
from utils.minigpt.ngram import NGram
from utils.minigpt.tokenizer import Tokenizer, load_tokenizer
from utils.minigpt.weights import MANIFEST, WEIGHTS

ELSEWHERE = Tolerance(1e-3, 0, "another machine adds numbers in another order")
ORDERS = (3, 5)  # a 5-gram sees every cue when the subject is one word


Figures = dict[str, Any]  # rounded as in a manifest


def evaluate(model: MiniGPT, tokenizer: Tokenizer, data: Corpus) -> Figures:
    """Return all measured numbers of a model, for the corpus that it was trained on.

    ``perplexity`` has a row for each split, with perplexities per word, without the cues. The
    perplexity of the `grammar` is the lower bound, because the grammar knows everything except the
    choice of subject, complement and time words.

    ``conjugation`` is about prompts with held-out combinations. A row has three counts: the
    prompts, the right verb groups, and the sentences that are right up to `<eos>`. ``accuracy`` has
    the share of right verb groups in each language.
    """
    # lists of forms are left out, because they would make the counts less clear
    sentences = [line for line in data.train if line.cell]
    three, five = (NGram(order, len(tokenizer)).fit(sentences) for order in ORDERS)
    perplexity = []
    for split, lines, like_them in (
        ("combinations seen", data.test_seen, data.tune_seen),
        ("combinations held out", data.test_held_out, data.tune_held_out),
    ):
        found = {
            "minigpt": minigpt_perplexity(model, tokenizer, lines),
            "trigram": three.tune(like_them).perplexity(lines),
            "fivegram": five.tune(like_them).perplexity(lines),
            "grammar": grammar_perplexity(lines),
        }
        rounded = {name: round(value, 4) for name, value in found.items()}
        perplexity.append({"split": split, "lines": len(lines), **rounded})
    conjugation = [
        conjugate(model, tokenizer, code, kind, cells)
        for code in LANGUAGES
        for kind, cells in (("composed", data.composed), ("own form", data.own_form))
    ]
    accuracy = {}
    for code in LANGUAGES:
        rows = [row for row in conjugation if row["language"] == code]
        right = sum(row["verb_right"] for row in rows) / sum(row["prompts"] for row in rows)
        accuracy[code] = round(right, 4)
    return {"perplexity": perplexity, "conjugation": conjugation, "accuracy": accuracy}


@torch.no_grad()
def minigpt_perplexity(model: MiniGPT, tokenizer: Tokenizer, lines: Sequence[Line]) -> float:
    """Return exp of the mean cross-entropy of the words after the cues."""
    inputs, targets = encode_lines(lines, tokenizer, model.config.context)
    longest = max(len(line.words) for line in lines)
    logits = model(inputs[:, :longest])
    return math.exp(F.cross_entropy(logits.flatten(0, 1), targets[:, :longest].flatten()).item())


def grammar_perplexity(lines: Sequence[Line]) -> float:
    """Return the perplexity of a model that has the grammar's true probabilities."""
    nats, words = 0.0, 0
    for line in lines:
        assert line.cell is not None
        language = LANGUAGES[line.cell.language]
        subjects = language.subjects[line.cell.person]
        count = len(PERSONS) * len(subjects) * len(corpus.sentences(line.cell, subjects[0], False))
        nats += math.log(count)
        words += len(line.words) - line.cues
    return math.exp(nats / words)


Asked = tuple[Combination, str, bool]  # a combination, a subject, whether to ask for a negation


def _answers(model: MiniGPT, tokenizer: Tokenizer, asked: Sequence[Asked]) -> list[Words]:
    """Return the model's greedy continuation after each subject."""
    prompts = []
    for cell, subject, negative in asked:
        language = LANGUAGES[cell.language]
        cues = corpus.cues(language, verb=cell.verb, tense=cell.tense, negative=negative)
        prompts.append(tokenizer.encode((*cues, *subject.split())))
    answers = complete(prompts, model) if prompts else []
    return [tuple(tokenizer.words(ids)) for ids in answers]


def _is_right(cell: Combination, negative: bool, words: Words) -> bool:
    group = LANGUAGES[cell.language].group(cell, negative)
    return words[: len(group)] == group


def conjugate(
    model: MiniGPT, tokenizer: Tokenizer, code: str, kind: str, cells: frozenset[Combination]
) -> Figures:
    """Ask for each combination with every subject, affirmative and negative."""
    chosen = sorted((cell for cell in cells if cell.language == code), key=str)
    asked = [
        (cell, subject, negative)
        for cell in chosen
        for subject in LANGUAGES[code].subjects[cell.person]
        for negative in (False, True)
    ]
    verb_right = sentence_right = 0
    for question, words in zip(asked, _answers(model, tokenizer, asked), strict=True):
        cell, subject, negative = question
        verb_right += _is_right(cell, negative, words)
        allowed = corpus.sentences(cell, subject, negative)
        sentence_right += (*subject.split(), *words) in {(*one, "<eos>") for one in allowed}
    return {
        "language": code,
        "kind": kind,
        "combinations": len(chosen),
        "prompts": len(asked),
        "verb_right": verb_right,
        "sentence_right": sentence_right,
    }


def right_by_tense(model: MiniGPT, tokenizer: Tokenizer) -> dict[str, dict[str, float]]:
    """Return language -> tense -> the share of right verb groups, with four decimals.

    Each verb and person is tested once, with the person's first subject and an affirmative
    sentence.
    """
    found: dict[str, dict[str, float]] = {}
    for code, language in LANGUAGES.items():
        found[code] = {}
        for tense in language.tenses:
            cells = [cell for cell in language.combinations() if cell.tense == tense]
            asked = [(cell, language.subjects[cell.person][0], False) for cell in cells]
            answers = _answers(model, tokenizer, asked)
            right = [_is_right(c, False, words) for c, words in zip(cells, answers, strict=True)]
            found[code][tense] = round(sum(right) / len(right), 4)
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the model in a weights file, and print the numbers.

    If the manifest has other numbers, print these, too. For a model that was trained without a
    tense, the numbers are the shares of right verb groups.
    """
    parser = argparse.ArgumentParser(prog="python -m utils.minigpt.evaluate", description=__doc__)
    parser.add_argument("--weights", type=Path, default=WEIGHTS, help="a safetensors file")
    path = parser.parse_args(arguments).weights
    # more threads are no faster here, and are much slower on a busy machine
    torch.set_num_threads(1)
    manifest = json.loads(path.with_name(MANIFEST).read_text(encoding="utf-8"))
    model, data, without = load_minigpt(path), corpus.build(manifest["seed"]), manifest["without"]
    print(f"MiniGPT, {parameter_count(model.config):,} parameters, {path}\n")
    if without:  # this model uses the tokenizer of the model that was trained on all tenses
        data = corpus.without(data, without)
        figures = right_by_tense(model, load_tokenizer())
        agrees = figures == manifest["figures"]
    else:
        figures = evaluate(model, load_tokenizer(path.with_name("tokenizer.json")), data)
        agrees = agree(figures, manifest["figures"], tolerance=ELSEWHERE)
    print(json.dumps(figures, indent=2))
    if data.sha256() != manifest["data"]["sha256"]:
        print("\nThese weights were trained on another corpus: train again.")
    elif not agrees:
        print(f"\nThe manifest states other numbers: {json.dumps(manifest['figures'])}")


if __name__ == "__main__":
    main()
