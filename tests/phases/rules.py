"""What in the text of an exercise is a rule, and which answers show that a check asks it.

Each sentence of a question, outside of its hints, is quoted at least once. What is asked is quoted
by an answer that breaks it, and loses points for that; what is left to the learner, by an answer
that uses it, and loses none. These answers stand beside the checks or in a bank. All else, why,
what for, what a learner may count on, what to try, stands in ``told`` of the file beside the check.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from grader.authoring.text import parse
from grader.phase_paths import PhasePaths
from tests.phases.bank import BANKS, quotes, read

HINTS = re.compile(r"<details>.*?</details>", re.DOTALL)
CODE = re.compile(r"```.*?```|\$\$.*?\$\$", re.DOTALL)
BLOCKS = re.compile(r"\n\s*\n|\n(?=- )")
ENDS = re.compile(r"(?<=[.?;])\)?\s+(?=[A-Z`*(0-9_])")


def told(phase: PhasePaths, exercise: str) -> list[str]:
    """Return quotations of what is no rule."""
    return read(_beside(phase, exercise)).get("told", [])


def quoted(phase: PhasePaths, exercise: str) -> set[str]:
    """Return what the answers to an exercise quote."""
    entries = read(_beside(phase, exercise))
    kept = [one for kind in ("wrong", "right") for one in entries.get(kind, {}).values()]
    bank = (answer.quotes for answer in BANKS[phase.number].of(exercise))
    return {quotation for found in (*map(quotes, kept), *bank) for quotation in found}


def _beside(phase: PhasePaths, exercise: str) -> Path:
    return phase.folder / "answers" / f"{exercise}.toml"


def questions(phase: PhasePaths) -> dict[str, str]:
    """By exercise, what its question says outside of the hints, in one line for each paragraph."""
    found, question = {}, ""
    for cell in parse(phase.lab.name, phase.lab.read_text(encoding="utf-8")).cells:
        if cell.kind == "markdown":
            question = cell.source
        elif "solution" in cell.header:
            found[cell.header["solution"]] = "\n".join(_paragraphs(question))
    return found


def introduction(phase: PhasePaths) -> str:
    """The first text of a lab, in one line for each paragraph."""
    first = parse(phase.lab.name, phase.lab.read_text(encoding="utf-8")).cells[0]
    return "\n".join(_paragraphs(first.source))


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


def _paragraphs(question: str) -> Iterator[str]:
    for block in BLOCKS.split(CODE.sub("", HINTS.sub("", question))):
        line = " ".join(block.split())
        heading = line.startswith("#") or re.match(r"\*(Further|Warm-up|Easy|Medium|Hard)\b", line)
        if line and not heading:
            yield line
