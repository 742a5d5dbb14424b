"""Make the learners' copy of a class's rules: plain data for the start page of the archive.

The copy contains no names and no extensions. ``course.yml`` itself stays with the teachers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from hood.classroom.rules.reading import exercises_of, worths
from hood.classroom.rules.schema import ClassRules, LabRules, Withheld
from hood.classroom.rules.sentences import (
    HAND_INS,
    counting_sentences,
    day_or_moment,
    due_words,
    free_sentences,
    late_sentence,
)
from hood.classroom.rules.total import weights_of
from hood.classroom.rules.total_words import total_sentences


def rules_for_learners(root: Path, file: ClassRules) -> bytes:
    """Return the JSON text of the file that :func:`hood.learner.contents.class_rules` reads.

    ``about`` has sentences on the class. ``labs`` has three texts for each lab: ``released`` and
    ``due`` are the lab's dates (empty without a date), and ``rules`` are sentences on what counts.
    """
    labs = {
        lab: {
            "released": day_or_moment(rules.release) if rules.release else "",
            "due": due_words(rules),
            "rules": list(_rules(root, file, lab, rules)),
        }
        for lab, rules in file.labs.items()
    }
    said = {"about": list(_about(root, file)), "labs": labs}
    return json.dumps(said, ensure_ascii=False, indent=1).encode() + b"\n"


def _about(root: Path, file: ClassRules) -> Iterator[str]:
    if title := file.course.title:
        yield title if title.endswith((".", "!", "?")) else f"{title}."
    yield f"Times are those of {file.course.time_zone}."
    if any(rules.due for rules in file.labs.values()):
        yield late_sentence(file.late)
        yield HAND_INS[file.hand_ins]
    yield from free_sentences(file)
    yield from total_sentences(file, weights_of(file, worths(root, file)))


def _rules(root: Path, file: ClassRules, lab: str, rules: LabRules) -> Iterator[str]:
    if rules.due and rules.late is not None:
        yield late_sentence(file.policy(lab))
    if rules.due and rules.hand_ins is not None:
        yield HAND_INS[rules.hand_ins]
    other = rules.drop or rules.points or rules.bonus or rules.withheld is not Withheld.EXCLUDE
    if other:
        yield from counting_sentences(rules, exercises_of(root, lab) or {})
