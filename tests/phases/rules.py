"""What in the text of an exercise is a rule, and which answers show that a check asks it.

Each sentence of a question, outside of its hints, is quoted at least once. What is asked is quoted
by an answer that breaks it, and loses points for that; what is left to the learner, by an answer
that uses it, and loses none. These answers stand beside the checks or in a bank. All else, why,
what for, what a learner may count on, what to try, stands in ``told`` of the file beside the check.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from hood.authoring import quotes
from hood.authoring.text import Text, parse
from hood.phase_paths import PhasePaths
from tests.phases.bank import BANKS, quotations, read

ENDS = re.compile(r"(?<=[.?;])\)?\s+(?=[A-Z`*(0-9_])")


def told(phase: PhasePaths, exercise: str) -> list[str]:
    """Return quotations of what is no rule."""
    return read(_beside(phase, exercise)).get("told", [])


def quoted(phase: PhasePaths, exercise: str) -> set[str]:
    """Return what the answers to an exercise quote."""
    entries = read(_beside(phase, exercise))
    kept = [one for kind in ("wrong", "right") for one in entries.get(kind, {}).values()]
    bank = (answer.quotes for answer in BANKS[phase.number].of(exercise))
    return {quotation for found in (*map(quotations, kept), *bank) for quotation in found}


def _beside(phase: PhasePaths, exercise: str) -> Path:
    return phase.folder / "answers" / f"{exercise}.toml"


def questions(phase: PhasePaths) -> dict[str, str]:
    """By exercise, what its question says outside of the hints, in one line for each paragraph."""
    return quotes.questions(_lab(phase))


def introduction(phase: PhasePaths) -> str:
    """The first text of a lab, in one line for each paragraph."""
    return quotes.introduction(_lab(phase))


def _lab(phase: PhasePaths) -> Text:
    return parse(phase.lab.name, phase.lab.read_text(encoding="utf-8"))


def sentences(question: str) -> list[str]:
    """The sentences of a question, as :func:`questions` gives it."""
    return [sentence for line in question.splitlines() for sentence in ENDS.split(line)]


def unquoted(question: str, quotations: Iterable[str]) -> list[str]:
    """The sentences of which nothing is quoted."""
    at, left = 0, []
    spans = [m.span() for q in quotations for m in re.finditer(re.escape(q), question)]
    for sentence in sentences(question):
        begin = question.index(sentence, at)
        at = begin + len(sentence)
        if not any(first < at and last > begin for first, last in spans):
            left.append(sentence)
    return left
