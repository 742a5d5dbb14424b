"""An assignment as it was read: cells, exercises, questions in words, and open decisions."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Asserts:
    """Tests of an exercise: plain Python, with asserts."""

    source: str
    hidden: bool = False
    points: float = 0
    before: str = ""  # code of the same cell that runs before these tests
    # The output of the last statement, if the notebook stores one. The test expects this output.
    output: str | None = None


@dataclass(eq=False)
class Exercise:
    """Something that learners program and that tests grade."""

    name: str  # as the notebook names it
    question: str  # the text above it
    solution: str  # the cell with the answer, with `### BEGIN SOLUTION` above the solution
    prompt: str = ""  # what learners see in place of the solution, if the notebook says so
    tests: list[Asserts] = field(default_factory=list)
    guessed: bool = False  # whether the points of visible and hidden tests are guessed

    @property
    def points(self) -> float:
        """The points of all tests together."""
        return sum(test.points for test in self.tests)


@dataclass(frozen=True)
class InWords:
    """A question that a person marks."""

    name: str
    question: str
    answer: str  # the teacher's answer, as Markdown
    points: float
    rubric: str = ""  # as Markdown, if the notebook has one


@dataclass(frozen=True)
class Other:
    """A cell that belongs to no exercise, or a cell with the text of an exercise."""

    kind: str  # "code" or "markdown"
    source: str


@dataclass(frozen=True)
class Graded:
    """The place of an exercise's graded cell among the other cells."""

    exercise: Exercise


@dataclass
class Assignment:
    """Everything that a reader found, in the notebook's order."""

    title: str
    cells: list[Other | Exercise | Graded | InWords] = field(default_factory=list)
    open: list[str] = field(default_factory=list)  # what a person must decide
    files: list[str] = field(default_factory=list)  # files that the notebook says it needs

    @property
    def exercises(self) -> list[Exercise]:
        return [cell for cell in self.cells if isinstance(cell, Exercise)]
