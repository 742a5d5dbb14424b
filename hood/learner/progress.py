"""Show a learner's own progress, from saved labs and from the journal.

Nothing is executed or sent. :mod:`hood.learner.lab_file` says what counts in a lab, and
:mod:`hood.learner.reading` says how far a lesson was read.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path

from hood.audience import building
from hood.course import Phase
from hood.learner import journal
from hood.learner.contents import PHASES, ROOT, lab_of, labs_of, lesson_of, link_from_start
from hood.learner.lab_file import UNREADABLE, Exercise, LabProgress, counts, read_lab
from hood.learner.reading import Reading, read_lesson
from hood.learner.renamed import looks_like, what_to_do
from hood.metadata import COPY, KEY
from hood.palette import colour
from hood.phase_paths import copy_of

LEFT = "text-align:left;vertical-align:top;white-space:normal"


@dataclass
class Progress:
    """The progress in each lab and lesson: a table in a notebook, lines of text anywhere else."""

    labs: list[LabProgress]
    lessons: Mapping[int, Reading] = field(default_factory=dict)  # by the phase's number
    notes: list[str] = field(default_factory=list)  # sentences about problems
    shown: Mapping[str, float] = field(default_factory=dict)  # exercises with a shown solution
    root: Path = ROOT

    @property
    def done(self) -> tuple[int, ...]:
        return tuple(lab.phase.number for lab in self.labs if lab.judged and not lab.left)

    @property
    def states(self) -> dict[int, str]:
        """The progress in each begun phase, such as "4 of 11", by the phase's number."""
        return {
            lab.phase.number: f"{lab.passing} of {len(lab.judged)}"
            for lab in self.labs
            if lab.begun
        }

    def hours_left(self, lab: LabProgress) -> float:
        """Return how many hours a phase still takes; *further* exercises are not counted."""
        lesson = self.lessons.get(lab.phase.number)
        reading, solving = lab.phase.hours
        return reading * (1 - (lesson.share if lesson else 0)) + solving * (1 - lab.done_share)

    def __repr__(self) -> str:
        lines = []
        for lab in self.labs:
            lesson = self.lessons.get(lab.phase.number)
            read = f"lesson read as far as “{lesson.title}” ({lesson}); " if lesson else ""
            what, shown = self._shown(lab)
            more = f"; {what}: {', '.join(one.name for one in shown)}" if shown else ""
            lines.append(f"{lab.phase.number:02d} {lab.phase.title}: {read}{lab}{more}")
        rest = [self._sum(), *self.notes] if self.labs else ["There is no lab here yet."]
        return "\n".join([*lines, *rest])

    def _repr_html_(self) -> str:
        if not self.labs:
            return "<p>There is no lab here yet.</p>"
        names = "Phase", "Lesson", "Lab", "Hours left"
        head = "".join(f'<th scope="col" style="{LEFT}">{name}</th>' for name in names)
        rows = "".join(f"<tr>{''.join(self._row(lab))}</tr>" for lab in self.labs)
        said = "".join(f"<p>{_words(one)}</p>" for one in [self._sum(), *self.notes])
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{said}"

    def _row(self, lab: LabProgress) -> Iterator[str]:
        phase, lesson = lab.phase, self.lessons.get(lab.phase.number)
        read = "not begun"
        if (path := lesson_of(phase, self.root)) is not None:
            page = link_from_start(path, self.root)
            read = f'<a href="{escape(page)}">{read}</a>'
            if lesson:
                link = escape(f"{page}#cell-id={lesson.section}" if lesson.section else page)
                place = f'<a href="{link}">{escape(lesson.title or phase.title)}</a>'
                how_far = "all read; last section:" if lesson.whole else "read as far as"
                read = f"{how_far} {place}<br>{lesson}"
        title = f"{phase.number:02d} {escape(phase.title)}"
        if (path := lab_of(phase, self.root)) is not None:
            title = f'<a href="{escape(link_from_start(path, self.root))}">{title}</a>'
        hours = self.hours_left(lab)
        yield f'<th scope="row" style="{LEFT};font-weight:inherit">{title}</th>'
        for content in (read, self._lab(lab), f"{hours:.1f}" if hours else "–"):
            yield f'<td style="{LEFT}">{content}</td>'

    def _lab(self, lab: LabProgress) -> str:
        if lab.trouble or not lab.begun:
            return f"{_bar(lab)} {escape(str(lab))}"
        lines = [f"{_bar(lab)} {escape(counts(lab.judged, with_exercises=True))}"]
        for what, some in [*lab.groups(), self._shown(lab)]:
            links = "; ".join(map(self._link, some))
            lines += [f"{escape(what)}: {links}"] if some else []
        return "<br>".join(lines)

    def _link(self, one: Exercise) -> str:
        name = escape(one.title or one.name)
        return f'<a href="{escape(link_to(one, self.root))}">{name}</a>' if one.path else name

    def _shown(self, lab: LabProgress) -> tuple[str, list[Exercise]]:
        return "solution shown", [one for one in lab.exercises if one.name in self.shown]

    def _sum(self) -> str:
        """Return a sentence: what is done, and, if the course states hours, the hours left."""
        judged = [one for lab in self.labs for one in lab.judged]
        hours = sum(map(self.hours_left, self.labs))
        shown = sum(one.points for one in judged if one.name in self.shown and one.passing)
        more = f", {shown:g} of them after the solution was shown" if shown else ""
        timed = any(any(lab.phase.hours) for lab in self.labs)
        left = f"; about {hours:.0f} hours are left" if timed else ""
        return f"{counts(judged)}{more}{left}."


def _words(sentence: str) -> str:
    """Return a sentence as HTML, with text between backquotes as code."""
    parts = escape(sentence).split("`")
    return "".join(f"<code>{p}</code>" if k % 2 else p for k, p in enumerate(parts))


def progress(root: Path | str = ROOT) -> Progress:
    """Read every lab and lesson under `root`, in `work/` or `release/`, in the order of the path.

    An exercise counts if it was solved in the learner's copy, in the released lab, or in a renamed
    copy. While the course is built, no progress is read, because the built page is committed.
    """
    if building():
        return Progress([])
    root = Path(root)
    state = Progress([], root=root)
    lessons, shown = {}, {}
    for phase in PHASES:
        if (reading := read_lesson(phase, root)) is not None:
            lessons[phase.number] = reading
        shown.update(journal.read(phase.name, root).shown)
        if paths := labs_of(phase, root):
            labs = [read_lab(phase, path) for path in paths]
            original = root / "release" / phase.name / f"{phase.name}.ipynb"
            if labs[0].begun == 0 and (other := looks_like(original, root)) is not None:
                labs.append(read_lab(phase, other))
                # an extra copy without answers needs no message
                if labs[-1].begun or len(paths) == 1:
                    state.notes.append(what_to_do(original, other, root))
            state.labs.append(_best(labs))
    state.lessons, state.shown = lessons, shown
    if old := [place for place in _copies(root) if _is_old(*place)]:
        names = ", ".join(f"`{mine.relative_to(root).as_posix()}`" for _, mine in old)
        state.notes.append(
            f"The course has newer texts than {names}. To update these notebooks, run "
            "`python -m hood.learner.copies` in the course's folder, and open these notebooks "
            "again: your answers stay."
        )
    return state


def _copies(root: Path) -> Iterator[tuple[Path, Path]]:
    for original in sorted([*root.glob("notebooks/*.ipynb"), *root.glob("release/*/*.ipynb")]):
        place = copy_of(original.relative_to(root))
        if place is not None and (root / place).is_file():
            yield original, root / place


def _is_old(original: Path, mine: Path) -> bool:
    """Return whether a copy's metadata names another version of its original."""
    try:
        made_from = json.loads(mine.read_bytes())["metadata"][KEY][COPY]["of"]
    except (OSError, *UNREADABLE):
        return False  # another tool wrote the metadata: nothing is known
    return bool(made_from != hashlib.sha256(original.read_bytes()).hexdigest()[:12])


def _best(versions: list[LabProgress]) -> LabProgress:
    """Return a lab's first version, in which each exercise has its best state of all versions."""
    first, *others = versions
    if first.trouble:
        return first
    by_name = [{one.name: one for one in lab.exercises} for lab in versions]
    exercises = tuple(
        max(
            (named[one.name] for named in by_name if one.name in named),
            key=lambda each: (each.passing, each.begun),
        )
        for one in first.exercises
    )
    saved = max([first.saved, *(lab.saved for lab in others if lab.begun)])
    return replace(first, exercises=exercises, saved=saved)


def show_progress(root: Path | str = ROOT) -> None:
    """Display the progress under `root`. While the course is built, say how to display it."""
    from IPython.display import display

    if building():
        print("Run this cell (Shift+Enter) to see your own progress.")
    else:
        display(progress(root))


def show_next(root: Path | str = ROOT) -> None:
    """In the start page or its copy, display a link to where the learner should continue."""
    from IPython.display import display

    words, link = next_step(progress(root), Path(root))
    button = (
        "display:inline-block;padding:8px 16px;border-radius:6px;text-decoration:none;"
        f"font-weight:600;background:{colour('full')};color:{colour('on_full')}"
    )
    page = f'<a href="{escape(link)}" style="{button}">{escape(words)}</a>'
    display({"text/html": page, "text/plain": f"{words} ({link})"}, raw=True)


def next_step(labs: Progress, root: Path = ROOT) -> tuple[str, str]:
    """Return where a learner should continue, in words, and the link from the start page.

    There are two candidates. The first is the lab that was used last, among all labs that are begun
    but not done. The second is the lesson that was used last, among all lessons that are not read
    to their end. The candidate that was used later wins. If there are no candidates, the learner
    should continue with the lesson of the first phase whose lab is not begun.
    """
    known = {lab.phase: journal.read(lab.phase.name, root) for lab in labs.labs}
    open_labs = [lab for lab in labs.labs if lab.begun and lab.left]
    worked = {lab.phase: max(lab.saved, known[lab.phase].at) for lab in open_labs}
    lab = max(open_labs, key=lambda one: worked[one.phase], default=None)
    phase = _read_last(labs)
    if phase is not None and (lab is None or labs.lessons[phase.number].at > worked[lab.phase]):
        reading, page = labs.lessons[phase.number], lesson_of(phase, root)
        assert page is not None  # the phase has a page, because its lesson was read
        words = f"Continue: lesson {phase.number:02d}, {reading.title or phase.title}"
        section = f"#cell-id={reading.section}" if reading.section else ""
        return words, link_from_start(page, root) + section
    if lab is not None:
        exercise = exercise_left(lab, known[lab.phase].last)
        words = f"Continue: lab {lab.phase.number:02d}, {exercise.title or exercise.name}"
        return words, link_to(exercise, root)
    finished = {one.phase.number for one in labs.labs if one.begun}
    for phase in PHASES:
        lesson = lesson_of(phase, root)
        if lesson is not None and phase.number not in finished:
            begin = "Next" if finished else "Begin"
            words = f"{begin}: lesson {phase.number:02d}, {phase.title}"
            return words, link_from_start(lesson, root)
    return "Every lab passes its checks. Next: read more in the sources", "../README.md"


def _read_last(labs: Progress) -> Phase | None:
    """Return the phase of the last used lesson that is not read to its end, or None."""
    begun = {n: reading for n, reading in labs.lessons.items() if not reading.whole}
    last = max(begun, key=lambda number: begun[number].at, default=None)
    return next((phase for phase in PHASES if phase.number == last), None)


def exercise_left(lab: LabProgress, last: str) -> Exercise:
    """Return the exercise of a lab where a learner should continue.

    The search starts at the exercise with the cell that ran last, and finds the first exercise that
    is not done. If no run is known, the search starts at the last begun exercise.

    Args:
        lab: a lab that is not done.
        last: the id of the cell that ran last; empty if unknown.
    """
    every = lab.exercises
    begun = [number for number, one in enumerate(every) if one.begun]
    ran = [number for number, one in enumerate(every) if last and last in one.cells]
    start = (ran or begun[-1:] or [0])[0]
    left = [(number < start, number) for number, one in enumerate(every) if one in lab.left]
    return every[min(left)[1]]


def link_to(exercise: Exercise, root: Path = ROOT) -> str:
    """Return the link from the start page to an exercise, which must have a file."""
    assert exercise.path is not None
    section = f"#cell-id={exercise.section}" if exercise.section else ""
    return link_from_start(exercise.path, root) + section


def _bar(lab: LabProgress) -> str:
    """Draw a small square for each exercise: full for a pass, half full for a begun exercise.

    The rest of a square is transparent, to suit a dark theme. The text beside the squares says the
    same.
    """
    squares, ground = [], colour("full")
    for exercise in lab.judged:
        full = 100 if exercise.passing else 50 if exercise.begun else 0
        squares.append(
            f'<span title="{escape(exercise.name)}" style="display:inline-block;width:12px;'
            "height:12px;margin-right:3px;border-radius:3px;"
            f"background:linear-gradient(to top,{ground} {full}%,transparent {full}%);"
            f'border:1px solid {ground}"></span>'
        )
    return f'<span aria-hidden="true" style="white-space:nowrap">{"".join(squares)}</span>'
