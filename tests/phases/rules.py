"""The rules in an exercise's text, and the answers that show that a check tests them.

Each sentence of a question, outside of its hints, is quoted at least once. A rule is quoted by an
answer that breaks it and loses points. A freedom is quoted by an answer that uses it and loses no
points. These answers are beside the checks or in a bank. Everything else (reasons, aims,
guarantees, suggestions) is listed in ``told`` of the file beside the check.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from hood.authoring import quotes as texts
from hood.authoring.notebooks.text import Text, parse
from hood.phase_paths import PhasePaths
from tests.phases.bank import BANKS, quotations, read

ENDS = re.compile(r"(?<=[.?;])\)?\s+(?=[A-Z`*(0-9_])")


def no_rules(phase: PhasePaths, exercise: str) -> list[str]:
    """Return the quotes of an exercise's text that require nothing."""
    return read(_beside(phase, exercise)).get("told", [])


def quoted(phase: PhasePaths, exercise: str) -> set[str]:
    """Return what the answers to an exercise quote."""
    bank = (answer.quotes for answer in BANKS[phase.number].of(exercise))
    return {*quoted_beside(phase, exercise), *(quote for quotes in bank for quote in quotes)}


def quoted_beside(phase: PhasePaths, exercise: str) -> set[str]:
    """Return what the answers beside an exercise's check quote."""
    entries = read(_beside(phase, exercise))
    beside = [entry for kind in ("wrong", "right") for entry in entries.get(kind, {}).values()]
    return {quote for entry in beside for quote in quotations(entry)}


def _beside(phase: PhasePaths, exercise: str) -> Path:
    return phase.folder / "answers" / f"{exercise}.toml"


def questions(phase: PhasePaths) -> dict[str, str]:
    """Exercise -> its question without the hints, in one line for each paragraph."""
    return texts.questions(_lab(phase))


def introduction(phase: PhasePaths) -> str:
    """The first text of a lab, in one line for each paragraph."""
    return texts.introduction(_lab(phase))


def _lab(phase: PhasePaths) -> Text:
    return parse(phase.lab.name, phase.lab.read_text(encoding="utf-8"))


def sentences(question: str) -> list[str]:
    """The sentences of a question, as :func:`questions` gives it."""
    return [sentence for line in question.splitlines() for sentence in ENDS.split(line)]


def quoted_sentences(question: str, quotes: Iterable[str]) -> set[str]:
    """Return the sentences with a quoted part."""
    at, touched = 0, set()
    spans = [m.span() for q in quotes for m in re.finditer(re.escape(q), question)]
    for sentence in sentences(question):
        begin = question.index(sentence, at)
        at = begin + len(sentence)
        if any(first < at and last > begin for first, last in spans):
            touched.add(sentence)
    return touched


def unquoted(question: str, quotes: Iterable[str]) -> list[str]:
    """Return the sentences without a quoted part."""
    touched = quoted_sentences(question, quotes)
    return [sentence for sentence in sentences(question) if sentence not in touched]
