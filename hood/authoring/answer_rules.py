"""Rules for the files of answers beside a phase's checks. Each fault is reported with its line.

These rules run no answers: `judged` finds out how many points the answers of changed exercises
earn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from hood.authoring.answer_draft import TODO
from hood.authoring.lint import headings
from hood.authoring.notebooks.text import Problem, Text, TextCell, at
from hood.authoring.quotes import introduction, questions
from hood.judge.checks.answers import AnswersFile, WrongAnswers
from hood.judge.checks.answers_form import Place, line_of
from hood.judge.checks.exercise import Check
from hood.phase_paths import PhasePaths

Entries = Mapping[str, Any]
Faults = Iterator[tuple[Place, str]]


def answer_problems(
    phase: PhasePaths, lab: Text, lesson: Text | None, checks: Mapping[str, Check]
) -> Iterator[Problem]:
    """Yield all faults in a phase's files of answers, without judging an answer."""
    files = (path for path in phase.answers.glob("*") if path.is_file())
    for path in sorted(path for path in files if not path.name.startswith(".")):
        shown = phase.relative(path)
        if path.suffix != ".toml" or path.stem not in checks:
            known = ", ".join(f"{name}.toml" for name in checks)
            message = (
                f"no check reads a file with this name: expected one of {known}. Rename or "
                "remove it"
            )
            yield Problem(shown, 0, message)
            continue
        check, content = checks[path.stem], path.read_text(encoding="utf-8")
        try:
            entries = AnswersFile.at(path).entries
        except WrongAnswers as wrong:
            yield Problem(shown, wrong.line, wrong.message)
            continue
        found = [fault for rule in RULES for fault in rule(check, entries)]
        others = *quote_faults(lab, path.stem, entries), *reads_faults(lesson, entries)
        for place, message in (*found, *others):
            yield Problem(shown, line_of(content, place), message)
        if found:
            continue  # reading the answers would fail for the same reason
        try:
            check.read_answers()
        except WrongAnswers as wrong:
            yield Problem(shown, wrong.line, wrong.message)
        except KeyError as error:
            message = f"the lab's solution does not define {error.args[0]}, which the check needs"
            yield from (at(lab, one, message) for one in lab.cells if _solves(one, check))
        except LookupError as error:  # the check has no reference
            yield Problem(shown, 1, str(error))


def _solves(cell: TextCell, check: Check) -> bool:
    return cell.header.get("solution") == check.name


def says_faults(_check: Check, entries: Entries) -> Faults:
    """A misconception needs `says`: what the code does, in whole sentences."""
    for name, entry in entries.get("wrong", {}).items():
        if "says" not in entry:
            message = (
                "missing key 'says': write what the learner reads about this mistake, as in "
                'says = "each element was multiplied by itself."'
            )
            yield ("wrong", name), message
        elif entry["says"].startswith(TODO):
            message = (
                "replace the TODO by a sentence that says what the code does, such as “every "
                "fourth year came out as a leap year.”; then build again"
            )
            yield ("wrong", name, "says"), message
        elif not entry["says"].endswith("."):
            end = entry["says"][-20:]
            message = f"expected a sentence that ends with a full stop, got {end!r}"
            yield ("wrong", name, "says"), message


def name_faults(_check: Check, entries: Entries) -> Faults:
    """A right and a wrong answer must not have the same name."""
    for name in entries.get("right", {}):
        if name in entries.get("wrong", {}):
            yield (
                ("right", name),
                (f"a wrong answer has the name {name!r}, too: rename one of the two answers"),
            )


def earn_faults(check: Check, entries: Entries) -> Faults:
    """A misconception must earn the points of whole parts, but not all points."""
    for name, entry in entries.get("wrong", {}).items():
        earns = entry.get("earns", 0)
        place = ("wrong", name, "earns")
        if isinstance(earns, dict):
            for part in earns.keys() - check.parts.keys():
                yield place, f"no part is named {part!r}: expected one of {', '.join(check.parts)}"
            for part in sorted(earns.keys() & check.parts.keys()):
                if earns[part] != check.parts[part]:
                    points = check.parts[part]
                    message = f"part {part!r}: expected its {points:g} points, got {earns[part]:g}"
                    yield place, f"{message}. Give all points of a part, or leave the part out"
        total = sum(earns.values()) if isinstance(earns, dict) else earns
        if total >= check.points:
            message = (
                f"it earns {total:g} of {check.points:g} points, so it is right: expected fewer. "
                f'Move it to [right."{name}"], or add a case that this answer fails'
            )
            yield place, message


def base_faults(_check: Check, entries: Entries) -> Faults:
    """The answer that `of` names must exist."""
    known = [*entries.get("right", {}), "reference"]
    for kind in ("wrong", "right"):
        for name, entry in entries.get(kind, {}).items():
            if entry.get("of", "reference") not in known:
                message = f'of: expected a right answer or "reference", got {entry["of"]!r}'
                yield (kind, name, "of"), message
    for kind in ("same", "free"):
        for index, entry in enumerate(entries.get(kind, ())):
            if "of" in entry and entry["of"] not in [*known, "the lab's solution"]:
                right = 'expected a right answer or "the lab\'s solution"'
                message = f"of: {right}, got {entry['of']!r}"
                yield (kind, index), message


def quote_faults(lab: Text, exercise: str, entries: Entries) -> Faults:
    """A quotation must be in the exercise's question, or in the lab's introduction."""
    question = questions(lab).get(exercise, "")
    prose = f"{question}\n{introduction(lab)}"
    for index, quote in enumerate(entries.get("told", [])):
        if quote not in question:
            yield ("told",), f"told, {index + 1}: {_nowhere(quote)}"
    for kind, key in (("wrong", "breaks"), ("right", "uses")):
        for name, entry in entries.get(kind, {}).items():
            said = entry.get(key, [])
            for quote in [said] if isinstance(said, str) else said:
                if quote not in prose:
                    yield (kind, name, key), f"{key}: {_nowhere(quote)}"


def reads_faults(lesson: Text | None, entries: Entries) -> Faults:
    """The `reads` of a misconception must be a heading of the lesson."""
    readable = headings(lesson) if lesson else set()
    for name, entry in entries.get("wrong", {}).items():
        if lesson and "reads" in entry and entry["reads"] not in readable:
            message = f"reads: {entry['reads']!r} is not a heading of {lesson.path}"
            yield ("wrong", name, "reads"), message


def _nowhere(quote: str) -> str:
    return (
        f"{quote!r} is not in the exercise's question: expected words from one line of the "
        "question, or from the lab's first cell; hints and code do not count"
    )


RULES: tuple[Callable[[Check, Entries], Faults], ...] = (
    says_faults,
    name_faults,
    earn_faults,
    base_faults,
)
