"""An exercise of a draft: its name, its parts, and which of its tests are cases."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from hood.authoring.importing.assignment import Exercise
from hood.authoring.importing.names import Imports, defined, functions
from hood.authoring.importing.tests_read import Asked, Left, read_tests
from hood.authoring.lint import NAME

# The names of the parts, which learners read.
SHOWN, HIDDEN = "as shown", "other inputs"
ONE_VALUE = "a check can ask for one value only"


@dataclass
class Drafted:
    """An exercise with the name and the cases that the draft gives it."""

    exercise: Exercise
    name: str
    functions: list[str]  # that its cases call
    asked: list[tuple[str, Asked]]  # the part and the test
    left: list[tuple[str, Left]]
    value: str  # the expected value as code, if the answer is a value and no function
    parts: dict[str, float] = field(default_factory=dict)

    @property
    def single(self) -> bool:
        """Whether the exercise is one function that has the exercise's name."""
        return self.functions == [self.name]

    @property
    def points(self) -> float:
        return sum(self.parts.values())


def exercise_of(
    exercise: Exercise, imports: Imports, taken: dict[str, None], todo: list[str]
) -> Drafted:
    """Name an exercise, and read its tests. Add to `todo` what a person must decide."""
    names = functions(exercise.solution)
    values = set() if names else defined(exercise.solution)
    read = [
        (HIDDEN if test.hidden else SHOWN, one)
        for test in exercise.tests
        for one in read_tests(test, names, imports, values)
    ]
    asked = [*dict.fromkeys((part, one) for part, one in read if isinstance(one, Asked))]
    left = [(part, one) for part, one in read if isinstance(one, Left)]
    about = {one.function for _, one in asked}
    called = [name for name in (*names, *sorted(values)) if name in about] or names[:1]
    name = called[0] if len(called) == 1 else plain_name(exercise.name)
    if values and (len(called) > 1 or name in taken):
        why = ONE_VALUE if len(called) > 1 else f"another exercise has the name {name!r}"
        left += [(part, Left(one.source, why)) for part, one in asked]
        asked, called = [], []
    free = free_name(name, taken)
    if free != name:
        message = f"another exercise has the name {name!r}, so this exercise has the name {free!r}."
        todo.append(f"{free}: {message}")
    value = asked[0][1].value if asked else ""
    made = Drafted(exercise, free, called, asked, left, value)
    made.parts = _parts(made, todo)
    for part, one in left:
        first, *more = one.source.strip().split("\n")
        shown = f"`{first}{' ...' if more else ''}`"
        todo.append(f"{free}: no case ({part}) for {shown}, because {one.why}.")
    if value:
        message = "the answer is a value, and no draw can change it. Ask for a function if you can."
        todo.append(f"{free}: {message}")
    elif asked:
        tests = "the case has" if len(asked) == 1 else f"all {len(asked)} cases have"
        todo.append(f"{free}: {tests} fixed values. Let `draw` choose the values.")
    if any(one.tolerance for _, one in asked):
        message = "all its cases have the same tolerance: the largest tolerance in the tests."
        todo.append(f"{free}: {message}")
    if not exercise.tests:
        todo.append(f"{free}: it has no tests.")
    if not called:
        message = (
            "none of its tests compares the result of a call. Let the solution define a function."
        )
        todo.append(f"{free}: {message}")
    return made


def _parts(made: Drafted, todo: list[str]) -> dict[str, float]:
    """Divide an exercise's points among the parts that have a case."""
    worth = {SHOWN: 0.0, HIDDEN: 0.0}
    for test in made.exercise.tests:
        worth[HIDDEN if test.hidden else SHOWN] += test.points
    total = sum(worth.values())
    if not total:
        todo.append(f"{made.name}: it has no points. The draft gives it 1.")
        total = 1
    with_cases = [part for part in worth if part in {one for one, _ in made.asked}]
    live = [part for part in with_cases if worth[part]] or with_cases[:1]
    if not live:
        todo.append(
            f"{made.name}: no test became a case, so the build refuses this exercise: write its "
            "cases."
        )
        return {SHOWN: total}
    if len(live) == 1:
        for part in (part for part, points in worth.items() if points and part not in live):
            message = f"the part {part!r} has no case yet, so {live[0]!r} has all points."
            todo.append(f"{made.name}: {message}")
        return {live[0]: total}
    hidden = round(worth[HIDDEN], 3)
    parts = {SHOWN: round(total - hidden, 3), HIDDEN: hidden}
    if made.exercise.guessed:
        said = " and ".join(f"{as_text(points)} for {part!r}" for part, points in parts.items())
        todo.append(f"{made.name}: the points of its parts are guessed: {said}.")
    return parts


def free_name(name: str, taken: dict[str, None]) -> str:
    """Return a name that no exercise has yet, and add it to the names that are taken."""
    free, count = name, 2
    while free in taken:
        free, count = f"{name[:46]}_{count}", count + 1
    taken[free] = None
    return free


def plain_name(name: str) -> str:
    """Turn a name from the notebook into a valid name of an exercise."""
    plain = re.sub(r"\W+", "_", name.encode("ascii", "ignore").decode()).strip("_")[:46]
    return plain if NAME.fullmatch(plain) else f"question_{plain}".rstrip("_")


def whole(points: float) -> float:
    """Return points as an int, if they are whole."""
    return int(points) if float(points).is_integer() else points


def as_text(points: float) -> str:
    """Return points as they are written in a text."""
    return repr(whole(round(points, 3)))
