"""Read ``course.yml``, and say with file and line what is wrong in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, get_args

import yaml
from pydantic import ValidationError

from hood import UserError
from hood.classroom.rules.deadline import Deadline
from hood.classroom.rules.schema import ClassRules, Part, TotalPolicy
from hood.classroom.rules.total import weights_of, worth_of
from hood.grader.outline import read_outline, source_of
from hood.phase_paths import lab_named

FILE = "course.yml"
ALL_FURTHER = "further"  # in `drop` and `bonus`: every exercise that a lab's text calls further
YamlPath = tuple[str | int, ...]
# Places with a key for each lab.
BY_LAB: set[YamlPath] = {
    *(("labs",), ("total", "weights")),
    *(("export", one, "items") for one in ("moodle", "canvas")),
}


def read_course_file(root: Path) -> ClassRules | None:
    """Return the rules of the class in a course folder; None if it has none.

    Raises:
        UserError: when the file can't be read, or says something that it may not say, or names a
            lab or an exercise that does not exist. All that is wrong is told at once.
    """
    path = root / FILE
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path} can't be read: {error}") from error
    lines: dict[YamlPath, int] = {}
    try:
        value = _plain(root, yaml.compose(text, yaml.SafeLoader), (), lines)
        file = ClassRules.model_validate({} if value is None else value)
        file = _with_further_named(root, file)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise UserError(f"{FILE}:{line}: {error.problem}") from error
    except yaml.YAMLError as error:
        raise UserError(f"{FILE}: {error}") from error
    except _Refused as error:
        raise UserError(str(error)) from error
    except ValidationError as error:
        wrong = [(one["loc"], _worded(one)) for one in error.errors()]
    else:
        wrong = list(_unknown(root, file))
        if not wrong:
            return file
    told = sorted({(_line(place, lines), _path(place), said) for place, said in wrong})
    raise UserError("\n".join(f"{FILE}:{line}: {where}{said}" for line, where, said in told))


class _Refused(Exception):
    """A file whose form is not that of a course file."""


def _plain(root: Path, node: yaml.Node | None, place: YamlPath, lines: dict[YamlPath, int]) -> Any:
    """Return a node's value, in which every scalar is the text that stands there.

    YAML would take a learner's id ``0123`` for the number 83, and a country ``no`` for False. In
    place of the words for labs stand the names of their folders.
    """
    if node is None:
        return None
    lines.setdefault(place, node.start_mark.line + 1)
    if isinstance(node, yaml.SequenceNode):
        each = enumerate(node.value)
        return [_plain(root, one, (*place, number), lines) for number, one in each]
    if not isinstance(node, yaml.MappingNode):
        if place[:-1] in BY_LAB and node.value == "":
            return {}  # a lab without rules of its own
        of_lab = place[:1] == ("extensions",) and place[2:] == ("lab",)
        return lab_named(root, node.value) if of_lab else node.value
    plain: dict[str, Any] = {}
    for key, value in node.value:
        line = key.start_mark.line + 1
        if not isinstance(key, yaml.ScalarNode):
            raise _Refused(f"{FILE}:{line}: expected a name before the colon")
        name = lab_named(root, key.value) if place in BY_LAB else key.value
        if name in plain:
            known = f"{key.value!r} is {name}, which stands here already"
            again = f"{key.value!r} stands here a second time"
            raise _Refused(f"{FILE}:{line}: {again if name == key.value else known}")
        lines[(*place, name)] = line
        plain[name] = _plain(root, value, (*place, name), lines)
    return plain


def course_id(root: Path) -> str:
    """Return the class's id for nbgrader's settings; empty where its file gives none.

    So it is where something is wrong in the file, which nbgrader would tell with a traceback and
    then go on without settings: the steps of the exchange say what it is, and stop.
    """
    try:
        file = read_course_file(root)
    except UserError:
        return ""
    return file.course.id if file else ""


def other_id(root: Path, file: ClassRules, used: str) -> str:
    """Return what to do where the file's id is not the one that nbgrader uses; else nothing."""
    if file.course.id in ("", used):
        return ""
    lines: dict[YamlPath, int] = {}
    text = (root / FILE).read_text(encoding="utf-8")
    _plain(root, yaml.compose(text, yaml.SafeLoader), (), lines)
    return (
        f"{FILE}:{lines['course', 'id']}: course.id is {file.course.id!r}, and nbgrader's settings "
        f"(c.CourseDirectory.course_id, or --course) have {used!r}: give both the same, or one"
    )


def _line(place: YamlPath, lines: dict[YamlPath, int]) -> int:
    """Return the line of a place, or of the nearest one around it that stands in the file."""
    while place and place not in lines:
        place = place[:-1]
    return lines.get(place, 1)


def _path(place: YamlPath) -> str:
    words = [one for one in place if isinstance(one, str)]  # the line says which of a list
    return f"{'.'.join(words)}: " if words else ""


def _part(place: YamlPath) -> type[Part]:
    """Return the part of the file in which a place is."""

    def parts(kind: Any) -> Iterator[type[Part]]:
        if isinstance(kind, type) and issubclass(kind, Part):
            yield kind
        for arg in get_args(kind):
            yield from parts(arg)

    part: type[Part] = ClassRules
    for word in place[:-1]:
        if field := part.model_fields.get(str(word)):
            part = next(parts(field.annotation), part)
    return part


def _worded(error: Any) -> str:
    """Return what pydantic says of a value, in words of this file."""
    kind, value = error["type"], error["input"]
    said = error["msg"].removeprefix("Value error, ")
    if kind == "extra_forbidden":
        return f"no such key; it may be one of {', '.join(_part(error['loc']).model_fields)}"
    if kind == "missing":
        return "is missing"
    if kind in ("model_type", "dict_type", "tuple_type"):
        form = "a list" if kind == "tuple_type" else "keys with values"
        return f"expected {form}, got {value!r}"
    return said if kind == "value_error" else f"{said[0].lower()}{said[1:]}, got {value!r}"


def exercises_of(root: Path, lab: str) -> dict[str, float] | None:
    """Return the points of a lab's graded cells by their names; None if it has no source."""
    return read_outline(root, lab).points if source_of(root, lab) else None


def _with_further_named(root: Path, file: ClassRules) -> ClassRules:
    labs = {}
    for lab, rules in file.labs.items():
        names = read_outline(root, lab).further
        lists = {"drop": rules.drop, "bonus": rules.bonus}
        for key, listed in lists.items():
            if names and ALL_FURTHER in listed:
                lists[key] = (*(name for name in listed if name != ALL_FURTHER), *names)
        labs[lab] = rules.model_copy(update=lists)
    return file.model_copy(update={"labs": labs})


def _unknown(root: Path, found: ClassRules) -> Iterator[tuple[YamlPath, str]]:
    """Yield what the file names and the course folder has not, with its place."""
    for lab, rules in found.labs.items():
        known = exercises_of(root, lab)
        if known is None:
            yield ("labs", lab), f"there is no lab {lab} in source/"
            continue
        if rules.release and rules.due and rules.due <= rules.release:
            yield ("labs", lab, "due"), "it is due before it is released"
        named = [("drop", n) for n in rules.drop] + [("bonus", n) for n in rules.bonus]
        for key, name in [*named, *(("points", n) for n in rules.points)]:
            if name not in known and name == ALL_FURTHER and key != "points":
                yield ("labs", lab, key), f"no exercise of {lab} is a further one"
            elif name not in known:
                those = ", ".join(known)
                yield ("labs", lab, key), f"{lab} has no exercise {name!r}; it has: {those}"
        for name, times in Counter([*rules.drop, *rules.bonus]).items():
            if times > 1:
                yield ("labs", lab, "drop"), f"{name!r} is dropped or a bonus, and once"
        for name in set(rules.drop) & set(rules.points):
            yield ("labs", lab, "points"), f"{name!r} is dropped, and so has no points"
    for number, one in enumerate(found.extensions):
        if one.lab not in found.labs:
            yield ("extensions", number, "lab"), f"no lab {one.lab!r} under `labs`"
        elif (due := found.labs[one.lab].due) is None:
            yield ("extensions", number), f"{one.lab} has no due date that could be extended"
        elif one.due <= due:
            yield ("extensions", number, "due"), f"it is no later than the lab's own, {due}"
    if found.total and all(exercises_of(root, lab) is not None for lab in found.labs):
        yield from _wrong_total(root, found, found.total)
    for platform in ("moodle", "canvas"):
        for lab in getattr(found.export, platform).items:
            if lab not in found.labs:
                yield ("export", platform, "items", lab), f"no lab {lab!r} under `labs`"


def worths(root: Path, file: ClassRules) -> dict[str, float]:
    """Return what each lab of a class counts, in points."""
    return {lab: worth_of(rules, exercises_of(root, lab) or {}) for lab, rules in file.labs.items()}


def _wrong_total(
    root: Path, found: ClassRules, policy: TotalPolicy
) -> Iterator[tuple[YamlPath, str]]:
    """Yield what is wrong in ``total:``, with its place."""
    where, worth = ("total", "weights"), worths(root, found)
    for lab, weight in policy.weights.items():
        if lab not in found.labs:
            yield (*where, lab), f"no lab {lab!r} under `labs`"
        elif weight and not worth[lab]:
            yield (*where, lab), f"{lab} counts 0 points, so it can have no weight but 0"
    if policy.weights and (without := [lab for lab in found.labs if lab not in policy.weights]):
        yield where, f"{', '.join(without)} has no weight: give it one, 0 if it is not to count"
        return
    many = sum(weight > 0 for weight in weights_of(found, worth).values())
    if not many:
        yield ("total",), "no lab weighs more than 0"
    elif policy.drop_lowest >= many:
        said = f"{policy.drop_lowest} of {many} labs would be dropped: at least one has to stay"
        yield ("total", "drop_lowest"), said


def deadlines(root: Path, lab: str) -> Callable[[str], Deadline | None] | None:
    """Return what gives a student's deadline in a lab.

    None where the course has no rules for the lab: then the gradebook's own date holds.

    Raises:
        UserError: as :func:`read_course_file`.
    """
    file = read_course_file(root)
    if file is None or lab not in file.labs:
        return None

    return partial(file.deadline, lab)
