"""The text of a draft's lab."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence

from hood import UserError
from hood.authoring.importing.assignment import Assignment, Exercise, Graded, InWords, Other
from hood.authoring.importing.drafted import Drafted, as_text, whole
from hood.authoring.importing.names import defined, used
from hood.authoring.importing.solution_cell import parsed
from hood.authoring.notebooks.text import CELL_HEADER, KERNEL, Text, TextCell, assemble, parse
from hood.lab_words import BEGIN_HIDDEN, BEGIN_SCHEME, END_HIDDEN, END_SCHEME
from hood.phase_paths import PhasePaths

HEADER = """\
# ---
# jupyter:
#   kernelspec: {{display_name: Python 3, language: python, name: python3}}
#   open_the_hood: {{title: {title}, points: {points}}}
# ---

"""
MAGIC = re.compile(r"^(\s*)([%!].*)$", re.MULTILINE)
CHECK = "from hood.learner.check import check"


def lab_text(
    found: Assignment,
    phase: PhasePaths,
    drafted: Mapping[int, Drafted],
    words: Mapping[int, str],
    todo: list[str],
) -> str:
    """Return the text of the lab. Add to `todo` what a person must decide.

    `drafted` has the exercises, and `words` has the names of the questions in words. In both
    dicts, a key is the `id(...)` of a cell. Raises UserError if a lab's text can't store a cell.
    """
    cells = _Cells(found, phase, drafted, words, todo)
    points = sum(one.points for one in drafted.values())
    points += sum(points_of(one) for one in found.cells if isinstance(one, InWords))
    title = json.dumps(f"Lab {phase.number}: {found.title}", ensure_ascii=False)
    return _as_text(phase, HEADER.format(title=title, points=as_text(points)), [*cells.all()])


def points_of(cell: InWords) -> float:
    """Return the points of a question in words; 1 if the notebook has none."""
    return cell.points or 1


class _Cells:
    """The cells of a lab, and the names that they share."""

    def __init__(
        self,
        found: Assignment,
        phase: PhasePaths,
        drafted: Mapping[int, Drafted],
        words: Mapping[int, str],
        todo: list[str],
    ) -> None:
        self.found, self.phase, self.drafted, self.words = found, phase, drafted, words
        self.todo = todo
        # Names that depend on answers, and for each name the place that defines it.
        self.own: dict[str, str] = {}
        self.shared: set[str] = {"check"}  # names of given cells
        # For each exercise: the names that its answer, examples and visible tests need from other
        # cells, and the names that these cells of the exercise define.
        self.needs: dict[str, set[str]] = {}
        self.has: dict[str, set[str]] = {}
        self.below: str | None = None  # the exercise whose graded cell comes next
        self.given = 1  # the number of given cells

    def all(self) -> Iterator[TextCell]:
        first = self.found.cells[0]
        if not (isinstance(first, Other) and first.source.lstrip().startswith("# ")):
            yield TextCell("markdown", f"# Lab {self.phase.number}: {self.found.title}")
        ready = False
        for cell in self.found.cells:
            words = isinstance(cell, InWords) or (isinstance(cell, Other) and cell.kind != "code")
            if not ready and not words:
                yield TextCell("code", CHECK, {"given": "setup"})
                ready = True
            if isinstance(cell, Exercise):
                yield from self._exercise(cell)
            elif isinstance(cell, Graded):
                yield self._graded(self.drafted[id(cell.exercise)])
            elif isinstance(cell, InWords):
                yield self._question(cell)
            elif cell.kind == "code":
                yield self._code(cell)
            else:
                yield TextCell("markdown", cell.source)
        self._say_what_is_missing()

    def _code(self, cell: Other) -> TextCell:
        """Return the text's cell for a cell that belongs to no answer.

        A cell that defines names, and that needs no answers, becomes a given cell.
        """
        source = _plain_code(cell.source)
        names, read = defined(source), used(source)
        if names and not read & self.own.keys():
            self.given += 1
            self.shared |= names
            return TextCell("code", source, {"given": f"given_{self.given}"})
        self.own |= dict.fromkeys(names, "a cell that uses answers")
        if self.below:
            self.needs[self.below] |= read - self.has[self.below]
            self.has[self.below] |= names
        return TextCell("code", source)

    def _exercise(self, cell: Exercise) -> Iterator[TextCell]:
        made, mine = self.drafted[id(cell)], defined(cell.solution)
        self.needs[made.name], self.has[made.name] = used(cell.solution) - mine, {*mine}
        self.below = made.name
        self.own |= dict.fromkeys(mine - self.shared, f"the exercise {made.name!r}")
        prompt = "".join(f"# {line}\n" for line in cell.prompt.split("\n") if cell.prompt)
        yield TextCell("code", prompt + _plain_code(cell.solution), {"solution": made.name})
        if not any(isinstance(o, Graded) and o.exercise is cell for o in self.found.cells):
            yield self._graded(made)

    def _graded(self, made: Drafted) -> TextCell:
        self.below = None
        for test in made.exercise.tests:
            if not test.hidden:
                self.needs[made.name] |= used(test.source) - self.has[made.name]
        return _graded(made)

    def _question(self, cell: InWords) -> TextCell:
        name = self.words[id(cell)]
        self.todo.append(
            f"{name}: the rubric ends with a TODO. Write there what a right answer says."
        )
        if not cell.points:
            self.todo.append(f"{name}: it has no points. The draft gives it 1 point.")
        return TextCell("markdown", _task(cell), {"task": name, "points": whole(points_of(cell))})

    def _say_what_is_missing(self) -> None:
        for exercise, names in self.needs.items():
            for name in sorted(names - self.shared):
                where = f" of {self.own[name]}" if name in self.own else ", which no cell defines"
                self.todo.append(
                    f"{exercise}: it uses {name!r}{where}. The build refuses this: define or "
                    "import the name in the exercise or in a given cell."
                )


def _graded(made: Drafted) -> TextCell:
    visible = [_plain_code(test.source) for test in made.exercise.tests if not test.hidden]
    things = ", ".join(made.functions if made.single else (f"{f}={f}" for f in made.functions))
    lines = [
        f'check("{made.name}")',
        "\n\n".join(visible),
        BEGIN_HIDDEN,
        f'verify("{made.name}", {things or None})',
        END_HIDDEN,
    ]
    header = {"test": made.name, "points": whole(made.points)}
    return TextCell("code", "\n".join(lines), header)


def _task(cell: InWords) -> str:
    points = as_text(points_of(cell))
    item = f"- TODO: what a right answer says ({points} point{'' if points == '1' else 's'})"
    rubric = "\n\n".join(filter(None, [cell.rubric, item]))
    scheme = f"{BEGIN_SCHEME}\n\n{rubric}\n\n{END_SCHEME}"
    how = "Write your answer into a new cell below this one."
    return f"{cell.question.strip()}\n\n{how}\n\n{scheme}"


def _plain_code(source: str) -> str:
    """Return code in which magics and shell commands are comments."""
    return source if parsed(source) else MAGIC.sub(r"\1# TODO, not plain Python: \2", source)


def _as_text(phase: PhasePaths, prefix: str, cells: Sequence[TextCell]) -> str:
    """Return the lab's text. Raises UserError if the text can't store a cell."""
    path = phase.relative(phase.lab)
    cells = [
        TextCell(cell.kind, _without_headers(cell.source).rstrip("\n"), cell.header)
        for cell in cells
    ]
    lab = assemble(Text(path, prefix, KERNEL, {}, ()), cells)
    again = parse(path, lab).cells
    for number, (cell, other) in enumerate(zip(cells, again, strict=False), start=1):
        if cell.fingerprint != other.fingerprint:
            raise UserError(
                f"cell {number} of the draft can't be stored in a lab's text; change it in the "
                f"notebook: {cell.source[:60]!r}"
            )
    return lab


def _without_headers(source: str) -> str:
    """Return a source in which no line looks like the header of a cell."""
    lines = source.split("\n")
    return "\n".join(
        f"# {line[2:].lstrip('% ')}" if CELL_HEADER.match(line) else line for line in lines
    )
