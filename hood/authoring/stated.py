"""Compare a lab's prose about its exercises, points and time with its cells.

A lab may leave out all these statements. If a lab has a statement in one of the following forms,
the statement must be true:

    Ten exercises and one question, 40 points, about two and a half hours    in its first paragraph
    without the *further* exercises 4 and 6, which take an hour more
    ## 3 · A heading                                                          numbered headings
    *Easy, 10 minutes, 3 points: two for rows, one for columns.*              below each heading
    exercise 7                                                                anywhere in its prose

A lesson says in its first cell how long it takes: "It takes about two and a half hours". This time
must agree with the lesson's words, predictions, drills and cells. The times of labs and lessons
must also agree with the course's table of phases. A phase without `hours` in that table need not
say how long it takes.

Numbers are words or digits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from hood.authoring.notebooks.folds import ASKS
from hood.authoring.notebooks.text import HIDE_INPUT, Problem, Text, TextCell, at
from hood.course import FILE, Phase, course, course_folder
from hood.lab_words import FURTHER

WORDS = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"),
    *("ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen"),
    *("eighteen", "nineteen"),
)
TENS = ("", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
PHASES = course(course_folder()).phases
HOUR = 60
ROUNDED = 15  # minutes: stated hours are rounded to half hours
# Times of a reader in a second language, who answers each question before looking at the answer.
WORDS_A_MINUTE = 200
MINUTES_TO_ANSWER = 1.5  # a prediction or a drill
MINUTES_TO_RUN = 0.5  # another code cell: to read and run it
WORD = re.compile(r"\w[\w'’-]*")
LESSON_TAKES = re.compile(r"\bIt takes (about [^.;,:]*)")
NUMBER = r"[a-z]+(?:-[a-z]+)?|\d+(?:\.\d+)?"
COUNTED = re.compile(rf"\b({NUMBER}) (exercises?|questions?|points?)\b", re.IGNORECASE)
TIME = re.compile(
    rf"\b(half an|an|{NUMBER})(?: and (a half))? (hours?|minutes?)(?: and (a half))?\b",
    re.IGNORECASE,
)
LIST = r"\d+(?:(?:, and |, | and | to )\d+)*"
EXERCISES = re.compile(rf"\bexercises? ({LIST})", re.IGNORECASE)
TAKES = re.compile(rf"\bexercises? ({LIST}),? which takes? ([^.;,]*)", re.IGNORECASE)
ARE_FURTHER = re.compile(rf"\*further\*\s+exercises? ({LIST})")
NUMBERED = re.compile(r"## (\d+) ·")
LABEL = re.compile(r"^\*(?!\*)([^*]*\bpoints?\b[^*]*)\*", re.MULTILINE)
EARNED = re.compile(r"(?:^|[,;] (?:and )?)(one|two|three|four|five|six|seven)\b")


@dataclass
class Section:
    """An exercise or a question of a lab: the cells from one heading of level two to the next."""

    question: TextCell
    number: int | None  # in its heading
    points: float = 0  # the sum of its graded cells
    exercises: int = 0
    tasks: int = 0
    label: str = ""  # such as "Easy, 10 minutes, 3 points", with the text after it
    label_line: int = 0  # of the question's source, from 0
    minutes: float | None = None  # in the label

    @property
    def further(self) -> bool:
        return FURTHER.search(self.question.source) is not None


def stated_problems(lab: Text) -> Iterator[Problem]:
    """Yield a problem for each number in a lab's prose that contradicts its cells."""
    parts = sections(lab)
    for rule in (label_problems, number_problems, mention_problems):
        yield from rule(lab, parts)
    if lab.cells and lab.cells[0].kind == "markdown":
        for rule in (count_problems, time_problems, further_problems):
            yield from rule(lab, parts)


def sections(lab: Text) -> list[Section]:
    found: list[Section] = []
    for cell in lab.cells:
        if cell.kind == "markdown" and cell.source.startswith("## "):
            number = NUMBERED.match(cell.source)
            found.append(Section(cell, int(number[1]) if number else None))
            if label := LABEL.search(cell.source):
                words = " ".join(label[1].split())
                found[-1].label = words
                found[-1].label_line = cell.source.count("\n", 0, label.start())
                found[-1].minutes = duration(words.partition(":")[0])
        if found and ("test" in cell.header or "task" in cell.header):
            points = cell.header.get("points")
            found[-1].points += points if isinstance(points, int | float) else 0
            found[-1].exercises += "test" in cell.header
            found[-1].tasks += "task" in cell.header
    return found


def label_problems(lab: Text, parts: list[Section]) -> Iterator[Problem]:
    """The points in a label must be the points of the graded cell.

    They must also be the sum of the points of the parts in the label.
    """
    for part in parts:
        said, _, split = part.label.partition(":")
        for match in COUNTED.finditer(said):
            points = number(match[1])
            if match[2].startswith("point") and points is not None and points != part.points:
                message = (
                    f"the label says {match[0]!r}, but its graded cell has points={part.points:g}: "
                    "write the same number in both places"
                )
                yield at(lab, part.question, message, part.label_line)
        split = split.strip().partition(". ")[0]
        added = sum(number(word) or 0 for word in EARNED.findall(split))
        # "one each" does not say how many parts there are
        if added and not re.search(r"\beach\b", split) and added != part.points:
            message = (
                f"the parts in the label, {split!r}, add up to {added:g} points, but its graded "
                f"cell has points={part.points:g}: write the same number in both places"
            )
            yield at(lab, part.question, message, part.label_line)


def number_problems(lab: Text, parts: list[Section]) -> Iterator[Problem]:
    """Numbered headings must count 1, 2, 3 and so on."""
    numbered = [part for part in parts if part.number is not None]
    for expected, part in enumerate(numbered, start=1):
        if part.number != expected:
            message = f"this heading has number {part.number}, expected {expected}"
            yield at(lab, part.question, message, 0)
            return


def mention_problems(lab: Text, parts: list[Section]) -> Iterator[Problem]:
    """An exercise that prose names by number must exist."""
    there = {part.number for part in parts if part.number is not None}
    for cell in lab.cells if there else ():
        for match in EXERCISES.finditer(cell.source) if cell.kind == "markdown" else ():
            for lost in sorted(numbers(match[1]) - there):
                message = f"names exercise {lost}, but the lab's last exercise is {max(there)}"
                yield at(lab, cell, message, cell.source.count("\n", 0, match.start()))


def counts(parts: list[Section]) -> dict[str, float]:
    """Return the number of exercises, of questions in words, and of points of a lab."""
    return {
        "exercise": sum(part.exercises for part in parts),
        "question": sum(part.tasks for part in parts),
        "point": sum(part.points for part in parts),
    }


def count_problems(lab: Text, parts: list[Section]) -> Iterator[Problem]:
    """The counts in the first paragraph must be the counts of the cells."""
    right = counts(parts)
    paragraph = first_paragraph(lab)
    for match in COUNTED.finditer(paragraph):
        said, thing = number(match[1]), match[2].lower().removesuffix("s")
        if said is not None and said != right[thing]:
            message = f"says {match[0]!r}, but the lab has {right[thing]:g}"
            yield at(lab, lab.cells[0], message, line_of(lab, match[0]))


def corrected_counts(lab: Text, content: str) -> str:
    """Return a lab's text, ``content``, with the right counts in its first paragraph."""
    right = counts(sections(lab))
    for match in COUNTED.finditer(first_paragraph(lab) if lab.cells else ""):
        said, thing = number(match[1]), match[2].lower().removesuffix("s")
        if said is not None and said != right[thing]:
            # a line break, and the "# " of a comment, may divide the words
            words = re.compile(rf"\b{re.escape(match[1])}(\s+(?:# )?){match[2]}\b")
            new = f"{_like(match[1], right[thing])}\\g<1>{thing}{'s' * (right[thing] != 1)}"
            content = words.sub(new, content, count=1)
    return content


def _like(word: str, count: float) -> str:
    """Return a number as text, in the form of another number: in digits or as a word."""
    if word[0].isdigit() or count != int(count) or not 0 <= count < 100:
        return f"{count:g}"
    tens, ones = divmod(int(count), 10)
    new = WORDS[int(count)] if count < len(WORDS) else TENS[tens] + (f"-{WORDS[ones]}" * (ones > 0))
    return new.capitalize() if word[0].isupper() else new


def time_problems(lab: Text, parts: list[Section]) -> Iterator[Problem]:
    """The hours in the first paragraph must agree with the labels, rounded to half hours."""
    if any(part.minutes is None or part.number is None for part in parts if part.points):
        return
    paragraph = first_paragraph(lab)
    timed = [(match[2], numbers(match[1])) for match in TAKES.finditer(paragraph)]
    plain = TAKES.sub("", paragraph)
    without = ARE_FURTHER.search(paragraph)
    usual = {one.number for one in parts if one.number and not (without and one.further)}
    for words, chosen in [(plain, usual), *timed]:
        said = duration(words)
        minutes = sum(part.minutes or 0 for part in parts if part.number in chosen)
        if said is not None and abs(said - minutes) > (ROUNDED if said >= HOUR / 2 else 0):
            shown = TIME.search(words)
            which = f" of {', '.join(map(str, sorted(chosen)))}" if chosen != usual else ""
            message = (
                f"says {shown[0] if shown else words!r}, but the labels{which} add up to "
                f"{minutes:g} minutes"
            )
            yield at(lab, lab.cells[0], message, line_of(lab, shown[0] if shown else words))


def further_problems(lab: Text, parts: list[Section]) -> Iterator[Problem]:
    """The first paragraph must name exactly the exercises whose labels say *further*."""
    if match := ARE_FURTHER.search(first_paragraph(lab)):
        said, labelled = (
            numbers(match[1]),
            {one.number for one in parts if one.further and one.number},
        )
        if said != labelled:
            right = ", ".join(map(str, sorted(labelled))) or "none"
            message = f"says that {match[1]} are further exercises, but their labels say: {right}"
            yield at(lab, lab.cells[0], message, line_of(lab, match[0]))


def table_problems(lab: Text, name: str) -> Iterator[Problem]:
    """The lab's hours in the table of phases must agree with the labels, rounded to half hours."""
    parts = [part for part in sections(lab) if part.points and part.number is not None]
    for phase in _with_hours(name):
        for what, hours, further in (
            ("lab", phase.hours[1], False),
            ("further", phase.further, True),
        ):
            minutes = sum(part.minutes or 0 for part in parts if part.further is further)
            if abs(hours * HOUR - minutes) > ROUNDED:
                message = (
                    f"the table of phases says {hours:g} hours ({what}), but the labels add up to "
                    f"{minutes:g} minutes: write {_rounded(minutes):g} in {FILE}"
                )
                yield at(lab, lab.cells[0], message)


def lesson_problems(lesson: Text, name: str) -> Iterator[Problem]:
    """A lesson's hours must be right in its first cell and in the table, rounded to half hours.

    If a lesson takes less than half an hour, the stated time must be half an hour.
    """
    for phase in _with_hours(name):
        minutes = max(lesson_minutes(lesson), HOUR / 2)
        right = _rounded(minutes)
        match = LESSON_TAKES.search(lesson.cells[0].source)
        said = duration(match[1]) if match else None
        if said is None or abs(said - minutes) > ROUNDED:
            message = (
                f"its words, predictions, drills and cells take {minutes:.0f} minutes: write, in "
                f"words, 'It takes about {right:g} hours'"
            )
            yield at(lesson, lesson.cells[0], message)
        elif said != phase.hours[0] * HOUR:
            message = (
                f"says {said / HOUR:g} hours, but the table of phases says {phase.hours[0]:g}: "
                f"write the same in both ({FILE})"
            )
            yield at(lesson, lesson.cells[0], message)


def lesson_minutes(lesson: Text) -> float:
    """Return how many minutes a reader needs to read a lesson and answer its questions."""
    prose = "\n\n".join(cell.source for cell in lesson.cells if cell.kind == "markdown")
    code = [cell for cell in lesson.cells if cell.kind == "code"]
    drills = [cell.source for cell in code if HIDE_INPUT in cell.header.get("tags", ())]
    words = sum(len(WORD.findall(source)) for source in (prose, *drills))
    asked = len(ASKS.findall(prose)) + len(drills)
    ran = MINUTES_TO_RUN * (len(code) - len(drills))
    return words / WORDS_A_MINUTE + MINUTES_TO_ANSWER * asked + ran


def _with_hours(name: str) -> list[Phase]:
    """Return a list with the phase of this name; empty if the table has no hours for the phase."""
    return [one for one in PHASES if one.name == name and any((*one.hours, one.further))]


def _rounded(minutes: float) -> float:
    """Return the hours, rounded to half an hour."""
    return round(minutes / HOUR * 2) / 2


def first_paragraph(lab: Text) -> str:
    """Return a lab's first paragraph below its title, in one line."""
    blocks = [block for block in lab.cells[0].source.split("\n\n") if not block.startswith("#")]
    return " ".join(blocks[0].split()) if blocks else ""


def line_of(lab: Text, words: str) -> int:
    """Return the line where some words first begin. A line break may divide the words."""
    pattern = r"\s+".join(map(re.escape, words.split()))
    match = re.search(pattern, lab.cells[0].source)
    return lab.cells[0].source.count("\n", 0, match.start()) if match else 0


def number(word: str) -> float | None:
    """Return the number for a word such as "forty-two", or for digits; None for other words."""
    word = word.lower()
    if re.fullmatch(r"\d+(\.\d+)?", word):
        return float(word)
    tens, _, ones = word.partition("-")
    if word in WORDS:
        return WORDS.index(word)
    if tens in TENS[2:] and (not ones or ones in WORDS[1:10]):
        return 10 * TENS.index(tens) + (WORDS.index(ones) if ones else 0)
    return None


def numbers(words: str) -> set[int]:
    """Return the numbers of a list such as "4, 5 and 6" or "1 to 4"."""
    found: set[int] = set()
    for first, last in re.findall(r"(\d+)(?: to (\d+))?", words):
        found |= {*range(int(first), int(last or first) + 1)}
    return found


def duration(words: str) -> float | None:
    """Return the first duration in a text, in minutes; None if the text has no duration."""
    for match in TIME.finditer(words):
        first, unit = match[1].lower(), HOUR if match[3].startswith("hour") else 1
        count = 0.5 if first == "half an" else 1 if first == "an" else number(first)
        if count is not None:
            return (count + (0.5 if match[2] or match[4] else 0)) * unit
    return None
