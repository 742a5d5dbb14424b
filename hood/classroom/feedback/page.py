"""Make the page: first the sum of the points, then each exercise with its mark and its answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from markupsafe import Markup
from nbformat.notebooknode import NotebookNode
from nbgrader.utils import is_solution, is_task

from hood.addresses import section_on_site
from hood.classroom.feedback.learner_html import OUTPUTS, LearnerHtml, teachers
from hood.classroom.formats import page_style
from hood.classroom.gradebook.exercises import Segment, is_answer, segments
from hood.classroom.results.counted_marks import FeedbackRules
from hood.classroom.rules.counting import CountedMark, Role
from hood.classroom.rules.sentences import (
    exercise_sentence,
    lateness_sentence,
    number,
    sum_sentences,
)
from hood.grader.execution.self_judged import is_self_judged
from hood.grader.run_record import RunRecord
from hood.grader.submission.notes import NoteKind
from hood.judge.report import VerdictReport
from hood.metadata import KEY
from hood.verdict import FULL, Status, Verdict, in_points

TEMPLATES = Path(__file__).parent / "templates"
NO_RESPONSE = "No response."  # nbgrader's comment on an empty answer
ABOUT = "about"  # key in nbgrader's part of the resources


@dataclass(frozen=True)
class About:
    """The data that the feedback page needs in addition to the graded notebook.

    Attributes:
        student: the learner's id, as shown on the page.
        notebook: the notebook's name. If a lab has several notebooks, the class's rules put this
            name before the names of exercises.
        score: the points earned, or a phrase if there is no number.
        most: the maximum of ``score``.
        remarks: sentences on the whole notebook, for a class without rules.
        rules: the class's rules.
        term: sentences on the learner's total of the term; empty without a total.
        verdicts: the verdicts that the learner may see, keyed by the names of the graded cells.
        rubrics: the rubrics of answers that a person marked, keyed by the names of the graded
            cells.
        lessons: the address of the course's site; empty if there is none.
        verdicts_alone: whether only verdicts are shown, because the rest takes too much work.
    """

    student: str = ""
    notebook: str = ""
    score: float | str = 0.0
    most: float = 0.0
    remarks: tuple[str, ...] = ()
    rules: FeedbackRules = FeedbackRules()
    term: str = ""
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)
    rubrics: Mapping[str, str] = field(default_factory=dict)
    lessons: str = ""
    verdicts_alone: bool = False


EARLIER = "You only added a request for a regrade, so the time of your earlier hand-in counts."


@dataclass(frozen=True)
class Mark:
    """The mark beside an exercise's title.

    Attributes:
        words: the mark as text, such as ``2 of 3 points``.
        reached: how many of the points the learner has: ``full``, ``some`` or ``none``; ``open`` if
            there is no mark.
        share: the share of the points, between 0 and 1, for the bar.
        why: sentences that explain the mark.
        by_person: whether a person gave the mark.
    """

    words: str
    reached: str = "open"
    share: float = 0.0
    why: tuple[str, ...] = ()
    by_person: bool = False


def render(nb: NotebookNode, about: About) -> str:
    """Return the page for a notebook that :mod:`hood.classroom.feedback.feedback` has cleaned."""
    theirs, counted = LearnerHtml(), about.rules.counted
    marks = {mark.raw.exercise: mark for mark in counted.marks} if counted else {}
    found = list(segments(nb))
    run = RunRecord.of(nb.metadata)
    if any(note.kind is NoteKind.UNREADABLE for note in run.notes):
        about = replace(about, verdicts={})  # these verdicts are about the lab as released
    exercises = [
        _exercise(one, about, marks, theirs) | {"earlier": run.earlier.get(one.name, "")}
        for one in found
        if one.graded
    ]
    rest = [shown for one in found if not one.graded for shown in _cells(one, theirs)]
    ours = nb.metadata.get(KEY, {})
    return page_style.render(
        TEMPLATES,
        "feedback.html.j2",
        title=ours.get("title") or about.notebook,
        about=about,
        sum=_sum(about),
        sentences=list(filter(None, [*_whole(about), run.only_asks and EARLIER, about.term])),
        notes=[note.message for note in run.notes],
        exercises=exercises,
        rest=rest,
    )


def _sum(about: About) -> tuple[str, str]:
    """Return the number of points, which the page shows large, and the text after the number."""
    if counted := about.rules.counted:
        so_far = "" if counted.is_final else " so far"
        return number(counted.counts), f"of {number(counted.most)} points count{so_far}"
    if isinstance(about.score, str):
        return about.score, f"of {in_points(about.most)}"
    return number(about.score), f"of {number(about.most)} points"


def _whole(about: About) -> list[str]:
    counted = about.rules.counted
    if not counted:
        return list(about.remarks)
    _, *missing = sum_sentences(counted)
    late = lateness_sentence(counted)
    dates = [about.rules.dates] if about.rules.dates else []
    said = [late, *about.rules.policy] if late else []
    return [*missing, *dates, *said, *filter(None, [about.rules.hand_ins])]


def _exercise(
    segment: Segment, about: About, marks: Mapping[str, CountedMark], theirs: LearnerHtml
) -> dict[str, Any]:
    """Return the template's values for one exercise."""
    cell, name = segment.graded, segment.name
    assert cell is not None
    verdict = about.verdicts.get(name)
    counted = marks.get(name) or marks.get(f"{about.notebook}/{name}")
    in_words = is_task(cell) or cell.cell_type == "markdown"
    graded_cells = [cell] if cell.cell_type == "code" else []
    said = [c.metadata.nbgrader.get("comment") for c in [cell, *segment.cells] if _is_asked(c)]
    untouched = verdict is not None and verdict.status is Status.NOT_ATTEMPTED
    by_tests = verdict is None and is_self_judged(cell)
    return {
        "anchor": f"exercise-{name}",
        "name": name,
        "title": segment.title or name,
        "mark": _mark(cell, counted),
        "verdict": verdict,
        "parts": list(VerdictReport(verdict, verdict.lesson).parts()) if verdict else [],
        "reads": _reads(verdict, about.lessons) if verdict else "",
        "question": [teachers(c.source, c.get("attachments", {})) for c in segment.question],
        "answer": _cells(segment, theirs) if in_words else [],
        "cells": [] if in_words else _cells(segment, theirs, graded_cells),
        "tests": theirs.code(cell.source) if by_tests else "",
        "remarks": [
            _remark(text) for text in said if text and not (untouched and text == NO_RESPONSE)
        ],
        "rubric": teachers(about.rubrics[name]) if name in about.rubrics else "",
    }


def _remark(comment: str) -> Markup:
    """Return a remark as HTML. nbgrader's comment on an empty answer is replaced by a sentence."""
    return teachers("You gave no answer." if comment == NO_RESPONSE else comment)


def _is_asked(cell: NotebookNode) -> bool:
    return "nbgrader" in cell.metadata and bool(is_solution(cell) or is_task(cell))


def _mark(cell: NotebookNode, counted: CountedMark | None) -> Mark:
    ours = cell.metadata.nbgrader
    score, points = ours.get("score"), float(ours.get("points") or 0.0)
    by_person = bool(ours.get("by_person"))
    if counted is None:
        if not isinstance(score, (int, float)):
            return Mark(f"{score or 'no mark'}, of {in_points(points)}")
        share = score / points if points else 1.0
        words = f"{number(score)} of {in_points(points)}"
        return Mark(words, _reached(share), share, by_person=by_person)
    raw = counted.raw
    why = [said[:1].upper() + said[1:]] if (said := exercise_sentence(counted)) else []
    if raw.score is None:
        words = score if isinstance(score, str) else "not marked yet" if raw.waits else "no mark"
        of = f", of {in_points(counted.most)}" if counted.most else ""
        return Mark(f"{words}{of}", why=tuple(why))
    counts = counted.counts or 0.0
    if (raw.score, raw.points) != (counts, counted.most):
        why.append(f"You earned {number(raw.score)} of {in_points(raw.points)}.")
    share = raw.score / (raw.points - raw.withheld) if raw.points > raw.withheld else 1.0
    words = f"{number(counts)} of {in_points(counted.most)}"
    if counted.role is Role.DROPPED:
        words, share = "does not count", 0.0
    elif counted.role is Role.BONUS:
        words = f"{number(counts)} as a bonus"
    reached = "open" if counted.role is Role.DROPPED else _reached(share)
    return Mark(words, reached, min(1.0, max(0.0, share)), tuple(why), by_person)


def _reached(share: float) -> str:
    return "full" if share >= 1 else "some" if share > 0 else "none"


def _reads(verdict: Verdict, lessons: str) -> Markup | str:
    """Return which section of a lesson to read again, with a link if the course has a site."""
    if verdict.status in FULL or not verdict.section:
        return ""
    words = page_style.in_code(f"lesson {verdict.lesson}, “{verdict.section}”")
    url = section_on_site(verdict.lesson, verdict.section, lessons)
    return Markup('<a href="{}">{}</a>').format(url, words) if url else words


def _cells(
    segment: Segment, theirs: LearnerHtml, graded: list[NotebookNode] | None = None
) -> list[dict[str, Any]]:
    """Return the template's values for a segment's cells: text, code, and outputs."""
    shown, left = [], OUTPUTS
    for cell in [*segment.cells, *(graded or [])]:
        code, words = Markup(""), Markup("")
        if cell.cell_type == "code" and is_answer(cell):
            code = theirs.code(cell.source)
        elif cell.cell_type == "markdown":
            words = theirs.words(cell.source, cell.get("attachments", {}))
        elif cell.cell_type == "raw":
            words = Markup("<pre>{}</pre>").format(theirs.code(cell.source))
        outputs = theirs.outputs(cell.get("outputs", []))
        outputs, more = outputs[:left], max(0, len(outputs) - left)
        left -= len(outputs)
        if code.strip() or words.strip() or outputs:
            shown.append({"code": code, "words": words, "outputs": outputs, "more": more})
    return shown
