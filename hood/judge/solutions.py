"""Make worked solutions for somebody who studies alone. A notebook shows the solutions folded.

The code comes from the lab and from the check's alternates. The explanations come from the phase's
``solutions.md``. This file has a section for each exercise, with a subsection for each alternate
that is shown. A question in words has a section with a model answer; its rubric comes from the lab.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from hood.judge.catalogue import find_check
from hood.judge.checks.exercise import Check
from hood.lab_words import BEGIN_SCHEME, BEGIN_SOLUTION, END_SCHEME, END_SOLUTION
from hood.phase_paths import ROOT, PhasePaths, phases
from hood.rubric import Rubric, read_rubric

FILE = "solutions.md"
MARK = re.compile(rf"^ *({BEGIN_SOLUTION}|{END_SOLUTION}) *\n?", re.MULTILINE)
CELL = re.compile(r"^# %% *", re.MULTILINE)
COMMENT = re.compile(r"^# ?", re.MULTILINE)
LINK = re.compile(r"\[([^\]]+)\]\(\.\.[^)]*\)")  # a link from the lab's folder to a lesson


@dataclass(frozen=True)
class Words:
    """The explanation of an exercise's solution, as Markdown."""

    why: str
    others: dict[str, str] = field(default_factory=dict)  # the explanations of alternates, by name


def read_words(file: Path) -> dict[str, Words]:
    """Return each exercise's section in a file of solutions; empty if the file is missing."""
    if not file.exists():
        return {}
    sections = {}
    for section in file.read_text(encoding="utf-8").split("\n## ")[1:]:
        name, _, text = section.partition("\n")
        why, *others = text.split("\n### ")
        named = (other.partition("\n") for other in others)
        sections[name] = Words(why.strip(), {other: words.strip() for other, _, words in named})
    return sections


def solution_of(name: str, root: Path = ROOT) -> str:
    """Return the worked solution of an exercise, or the model answer to a question in words.

    Raises LookupError if there is no such exercise or question, or if it has no solution.
    """
    if phase := question_in_words(name, root):
        return model_answer(phase, name)
    return worked(*find_check(name, root))


def question_in_words(name: str, root: Path = ROOT) -> PhasePaths | None:
    """Return the phase whose lab has a question in words with this name; None if no lab has it."""
    return next((phase for phase in phases(root) if name in _rubrics(phase, name)), None)


def model_answer(phase: PhasePaths, name: str) -> str:
    """Return, as folded Markdown, a model answer to a question in words, and the question's rubric.

    Raises LookupError if the phase has no model answer.
    """
    words, rubric = read_words(phase.folder / FILE).get(name), _rubrics(phase, name).get(name)
    if words is None or rubric is None:
        raise LookupError(f"there is no model answer to {name!r}")
    items = [f"- {' '.join(box.split())}" for box in rubric.boxes]
    parts = [
        f"<details><summary>A model answer to <code>{name}</code>, and how it is marked</summary>",
        words.why,
        "**How it is marked**",
        rubric.intro,
        "\n".join(items),
        "</details>",
    ]
    return LINK.sub(r"\1", "\n\n".join(parts))


def _rubrics(phase: PhasePaths, name: str) -> dict[str, Rubric]:
    """Return the rubrics of a lab's questions in words; empty if no question is called ``name``."""
    text = phase.lab.read_text(encoding="utf-8") if phase.lab.exists() else ""
    if f'task="{name}"' not in text:
        return {}
    questions = sources(text, "task")
    return {one: read_rubric(text, BEGIN_SCHEME, END_SCHEME)[1] for one, text in questions.items()}


def sources(lab: str, role: str) -> dict[str, str]:
    """Return, for each exercise of a lab, the source of its cell with the given role.

    Jupytext could read the text (:mod:`hood.authoring.notebooks.text`). But importing Jupytext
    loads a Jupyter server, and this takes longer than making a verdict.

    Args:
        lab: the text, in the percent format; Markdown is commented out with "# ".
        role: "solution", "task" or another key of a cell's header.
    """
    cells = {}
    for cell in CELL.split(lab)[1:]:
        header, _, source = cell.partition("\n")
        if named := re.search(rf'\b{role}="(\w+)"', header):
            words = header.startswith("[markdown]")
            cells[named[1]] = (COMMENT.sub("", source) if words else source).rstrip("\n")
    return cells


def worked(phase: PhasePaths, check: Check) -> str:
    """Return the worked solution of an exercise, folded, as Markdown for JupyterLab.

    Raises LookupError if the phase has no worked solution.
    """
    words = read_words(phase.folder / FILE).get(check.name)
    code = sources(phase.lab.read_text(encoding="utf-8"), "solution").get(check.name)
    if words is None or code is None:
        raise LookupError(f"there is no worked solution of {check.name!r}")
    alternates = {one.name: one for one in check.alternates}
    fenced = "```python\n{}\n```".format
    parts = [
        f"<details><summary>A worked solution of <code>{check.name}</code>, and why</summary>",
        fenced(MARK.sub("", code).strip()),
        words.why,
    ]
    for name, why in words.others.items():
        parts += [f"**Another way: {name}**", fenced(alternates[name].source().strip()), why]
    return LINK.sub(r"\1", "\n\n".join([*parts, "</details>"]))
