"""What in the text of an exercise is a rule, and which answers show that a check asks it.

``RULES`` of ``rules_00.py`` to ``rules_10.py`` has an entry for each exercise of a lab. An entry
quotes what its question says outside of the hints, at least once in each sentence. What sounds
like a rule stands in ``asked``, with answers that break it, and lose points for that. What is left
to the learner stands in ``free``, with answers that make use of it, and lose none. All else is in
``told``: why, what for, what a learner may count on, what to try.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from grader.authoring.text import parse
from grader.phase_paths import PhasePaths

HINTS = re.compile(r"<details>.*?</details>", re.DOTALL)
CODE = re.compile(r"```.*?```|\$\$.*?\$\$", re.DOTALL)
BLOCKS = re.compile(r"\n\s*\n|\n(?=- )")
ENDS = re.compile(r"(?<=[.?;])\)?\s+(?=[A-Z`*(0-9_])")


@dataclass(frozen=True)
class Rules:
    """What the question of one exercise says.

    Attributes:
        asked: a quotation, and the names of misconceptions, or of wrong answers in the lab's
            banks, that are not true to it.
        free: a quotation, and the names of right answers that make use of what it allows.
        told: quotations of what is no rule.
    """

    asked: Mapping[str, str | tuple[str, ...]]
    free: Mapping[str, str | tuple[str, ...]] = field(default_factory=dict)
    told: tuple[str, ...] = ()

    def quotations(self) -> tuple[str, ...]:
        """All of them."""
        return *self.asked, *self.free, *self.told


def named(answers: Mapping[str, str | tuple[str, ...]]) -> Iterator[str]:
    """The names of all answers to some quotations."""
    for names in answers.values():
        yield from (names,) if isinstance(names, str) else names


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


def unquoted(question: str, rules: Rules) -> list[str]:
    """The sentences of which nothing is quoted."""
    at, left = 0, []
    spans = [m.span() for q in rules.quotations() for m in re.finditer(re.escape(q), question)]
    for sentence in sentences(question):
        begin = question.index(sentence, at)
        at = begin + len(sentence)
        if not any(first < at and last > begin for first, last in spans):
            left.append(sentence)
    return left


def _paragraphs(question: str) -> Iterator[str]:
    for block in BLOCKS.split(CODE.sub("", HINTS.sub("", question))):
        line = " ".join(block.split())
        heading = line.startswith("#") or re.match(r"\*(Warm-up|Easy|Medium|Hard)\b", line)
        if line and not heading:
            yield line
