"""Read ``course.yml``, and report each error with file and line."""

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
ALL_FURTHER = "further"  # in `drop` and `bonus`, this means all further exercises of the lab
YamlPath = tuple[str | int, ...]
# Places whose keys are labs.
BY_LAB: set[YamlPath] = {
    *(("labs",), ("total", "weights")),
    *(("export", one, "items") for one in ("moodle", "canvas")),
}


def read_course_file(root: Path) -> ClassRules | None:
    """Return the rules of the class in a course folder; None if there is no ``course.yml``.

    Raises:
        UserError: when the file can't be read, has a wrong key or value, or names a lab or an
            exercise that does not exist. The message lists all problems.
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
    """Raised when the file does not map names to values."""


def _plain(root: Path, node: yaml.Node | None, place: YamlPath, lines: dict[YamlPath, int]) -> Any:
    """Return the value of a YAML node, in which every scalar is its text in the file.

    YAML would read a learner's id ``0123`` as the number 83, and a country ``no`` as False. Short
    names of labs become the names of their folders.
    """
    if node is None:
        return None
    lines.setdefault(place, node.start_mark.line + 1)
    if isinstance(node, yaml.SequenceNode):
        each = enumerate(node.value)
        return [_plain(root, one, (*place, number), lines) for number, one in each]
    if not isinstance(node, yaml.MappingNode):
        if place[:-1] in BY_LAB and node.value == "":
            return {}  # a lab without its own rules
        of_lab = place[:1] == ("extensions",) and place[2:] == ("lab",)
        return lab_named(root, node.value) if of_lab else node.value
    plain: dict[str, Any] = {}
    for key, value in node.value:
        line = key.start_mark.line + 1
        if not isinstance(key, yaml.ScalarNode):
            raise _Refused(f"{FILE}:{line}: expected a name before the colon")
        name = lab_named(root, key.value) if place in BY_LAB else key.value
        if name in plain:
            known = f"{key.value!r} is {name}, which is already listed here"
            again = f"{key.value!r} is listed here twice"
            raise _Refused(f"{FILE}:{line}: {again if name == key.value else known}")
        lines[(*place, name)] = line
        plain[name] = _plain(root, value, (*place, name), lines)
    return plain


def course_id(root: Path) -> str:
    """Return the class's id for nbgrader's settings; empty if ``course.yml`` gives no id.

    The result is also empty if the file has an error: if this function raised the error, nbgrader
    would print a traceback and go on without settings. The commands of the exchange report the
    error, and stop.
    """
    try:
        file = read_course_file(root)
    except UserError:
        return ""
    return file.course.id if file else ""


def other_id(root: Path, file: ClassRules, used: str) -> str:
    """Return what to do if the file's id is not nbgrader's id; empty if the ids are equal."""
    if file.course.id in ("", used):
        return ""
    lines: dict[YamlPath, int] = {}
    text = (root / FILE).read_text(encoding="utf-8")
    _plain(root, yaml.compose(text, yaml.SafeLoader), (), lines)
    return (
        f"{FILE}:{lines['course', 'id']}: course.id is {file.course.id!r}, but nbgrader's "
        f"settings (c.CourseDirectory.course_id, or --course) have {used!r}: use the same id in "
        "both, or remove one of them"
    )


def _line(place: YamlPath, lines: dict[YamlPath, int]) -> int:
    """Return the line of a key or value; if the file lacks it, the line of the part around it."""
    while place and place not in lines:
        place = place[:-1]
    return lines.get(place, 1)


def _path(place: YamlPath) -> str:
    words = [one for one in place if isinstance(one, str)]  # the line shows which item of a list
    return f"{'.'.join(words)}: " if words else ""


def _part(place: YamlPath) -> type[Part]:
    """Return the Python class for the part of the file around a key."""

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
    """Turn pydantic's error into a message for the author of the file."""
    kind, value = error["type"], error["input"]
    said = error["msg"].removeprefix("Value error, ")
    if kind == "extra_forbidden":
        return f"no such key; expected one of {', '.join(_part(error['loc']).model_fields)}"
    if kind == "missing":
        return "is missing"
    if kind in ("model_type", "dict_type", "tuple_type"):
        form = "a list" if kind == "tuple_type" else "keys with values"
        return f"expected {form}, got {value!r}"
    return said if kind == "value_error" else f"{said[0].lower()}{said[1:]}, got {value!r}"


def exercises_of(root: Path, lab: str) -> dict[str, float] | None:
    """Return the points of a lab's graded cells, keyed by name; None if the lab has no source."""
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
    """Yield an error, with its place, for each contradiction and each name that does not exist."""
    for lab, rules in found.labs.items():
        known = exercises_of(root, lab)
        if known is None:
            yield ("labs", lab), f"no lab {lab} in source/"
            continue
        if rules.release and rules.due and rules.due <= rules.release:
            yield ("labs", lab, "due"), "expected a due date after the release"
        named = [("drop", n) for n in rules.drop] + [("bonus", n) for n in rules.bonus]
        for key, name in [*named, *(("points", n) for n in rules.points)]:
            if name not in known and name == ALL_FURTHER and key != "points":
                yield ("labs", lab, key), f"{lab} has no further exercises"
            elif name not in known:
                those = ", ".join(known)
                yield ("labs", lab, key), f"{lab} has no exercise {name!r}; it has: {those}"
        for name, times in Counter([*rules.drop, *rules.bonus]).items():
            if times > 1:
                yield ("labs", lab, "drop"), f"list {name!r} only once: in `drop`, or in `bonus`"
        for name in set(rules.drop) & set(rules.points):
            yield ("labs", lab, "points"), f"{name!r} is in `drop`: it can't have points"
    for number, one in enumerate(found.extensions):
        if one.lab not in found.labs:
            yield ("extensions", number, "lab"), f"no lab {one.lab!r} under `labs`"
        elif (due := found.labs[one.lab].due) is None:
            yield ("extensions", number), f"{one.lab} has no due date to extend"
        elif one.due <= due:
            yield ("extensions", number, "due"), f"expected a date after the lab's due date, {due}"
    if found.total and all(exercises_of(root, lab) is not None for lab in found.labs):
        yield from _wrong_total(root, found, found.total)
    for platform in ("moodle", "canvas"):
        for lab in getattr(found.export, platform).items:
            if lab not in found.labs:
                yield ("export", platform, "items", lab), f"no lab {lab!r} under `labs`"
        if getattr(found.export, platform).total and found.total is None:
            yield (
                ("export", platform, "total"),
                "a column for the total needs `total:` in this file",
            )


def worths(root: Path, file: ClassRules) -> dict[str, float]:
    """Return the points of each lab of a class."""
    return {lab: worth_of(rules, exercises_of(root, lab) or {}) for lab, rules in file.labs.items()}


def _wrong_total(
    root: Path, found: ClassRules, policy: TotalPolicy
) -> Iterator[tuple[YamlPath, str]]:
    """Yield the errors in ``total:``, each with its place."""
    where, worth = ("total", "weights"), worths(root, found)
    for lab, weight in policy.weights.items():
        if lab not in found.labs:
            yield (*where, lab), f"no lab {lab!r} under `labs`"
        elif weight and not worth[lab]:
            yield (*where, lab), f"{lab} counts 0 points, so its weight must be 0"
    if policy.weights and (without := [lab for lab in found.labs if lab not in policy.weights]):
        yield where, f"{', '.join(without)} has no weight: add one (0 if the lab does not count)"
        return
    many = sum(weight > 0 for weight in weights_of(found, worth).values())
    if not many:
        yield ("total",), "no lab has a weight above 0"
    elif policy.drop_lowest >= many:
        said = f"{policy.drop_lowest} of {many} labs would be dropped: at least one must stay"
        yield ("total", "drop_lowest"), said


def deadlines(root: Path, lab: str) -> Callable[[str], Deadline | None] | None:
    """Return a function that returns a student's deadline in a lab.

    Return None if the course has no rules for the lab. Then the date in the gradebook counts.

    Raises:
        UserError: in the same cases as :func:`read_course_file`.
    """
    file = read_course_file(root)
    if file is None or lab not in file.labs:
        return None

    return partial(file.deadline, lab)
