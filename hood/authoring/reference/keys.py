"""The pages of ``course.yml`` and ``course.toml``, from the classes that define their keys."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

from hood import course
from hood.authoring.reference.layout import code, fenced, table
from hood.authoring.reference.sentences import (
    example,
    of_fields,
    summary,
)
from hood.classroom.rules import schema
from hood.phase_paths import slug


def course_yml(root: Path) -> Iterator[str]:
    yield "# course.yml"
    yield (
        "The rules of a class, in the course's folder. A key may be left out if it is not "
        "required. An unknown key is an error. [Write the rules of your class]"
        "(../how-to/rules.md) shows how to begin."
    )
    for kind, heading in headings(schema.ClassRules).items():
        yield f"## {heading}"
        yield summary(kind)
        yield table(["key", "value", "meaning"], keys(kind, headings(schema.ClassRules)))
        if shown := example(kind):
            yield fenced("yaml", shown)


def headings(top: type[schema.Part]) -> dict[type, str]:
    """Return each part of the file, with its place in the file as the heading of its table."""
    found: dict[type, list[str]] = {}

    def walk(kind: type[schema.Part], place: str) -> None:
        found.setdefault(kind, []).append(place or "The top of the file")
        for key, hint in typing.get_type_hints(kind).items():
            each = typing.get_origin(hint) is dict
            for part in parts(hint):
                below = f"{key}.{key.removesuffix('s').upper()}" if each else key
                walk(part, f"{place}.{below}".lstrip("."))

    walk(top, "")
    return {kind: " and ".join(places) for kind, places in found.items()}


def parts(hint: Any) -> Iterator[type[schema.Part]]:
    if isinstance(hint, type) and issubclass(hint, schema.Part):
        yield hint
    for inside in typing.get_args(hint):
        yield from parts(inside)


def keys(kind: type, places: Mapping[type, str]) -> Iterator[list[str]]:
    """Yield a row for each key that a class describes: name, value, default and meaning."""
    said, hints = of_fields(kind), typing.get_type_hints(kind, include_extras=True)
    for name, default in defaults(kind).items():
        yield [code(name), f"{words(hints[name], places)}{default}", said[name]]


def defaults(kind: type) -> dict[str, str]:
    """Return words about the default of each field of a data class or of a model."""
    found = {}
    if dataclasses.is_dataclass(kind):
        for one in dataclasses.fields(kind):
            required = one.default is one.default_factory is dataclasses.MISSING
            found[one.name] = "; required" if required else shown(one.default)
    else:
        for name, own in kind.model_fields.items():  # type: ignore[attr-defined]
            found[name] = "; required" if own.is_required() else shown(own.default)
    return {name: words for name, words in found.items() if not name.startswith("_")}


def shown(default: Any) -> str:
    if isinstance(default, float):
        default = f"{default:g}"
    return f"; default {code(default)}" if isinstance(default, str | int) and default != "" else ""


def words(hint: Any, places: Mapping[type, str]) -> str:
    """Describe in words which values a key may have."""
    origin, inside = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        said = [one.description for one in inside[1:] if getattr(one, "description", "")]
        return said[-1] if said else words(inside[0], places)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(words(one, places) for one in inside if one is not type(None))
    if origin is tuple:
        return f"list of {words(inside[0], places)}s"
    if origin:  # a mapping
        return f"for each name: {words(inside[1], places)}"
    if hint in places:
        return f"[table](#{slug(places[hint])})"
    if issubclass(hint, StrEnum):
        said_of = {k: v[0].lower() + v[1:].rstrip(".") for k, v in of_fields(hint).items()}
        each = (code(m) + (f" ({said_of[m.name]})" if m.name in said_of else "") for m in hint)
        return ", ".join(each)
    return {str: "text", bool: "`true` or `false`", int: "whole number"}.get(hint, "number")


def course_toml(root: Path) -> Iterator[str]:
    yield "# course.toml"
    yield summary(course)
    places: dict[type, str] = {course.Phase: "phases"}
    head = ["key", "value", "meaning"]
    yield table(head, (row for row in keys(course.Course, places) if row[0] != "`root`"))
    yield "## phases"
    yield summary(course.Phase)
    yield table(head, keys(course.Phase, places))
    yield "## An example"
    yield "The `course.toml` of this course, up to and including the first phase:"
    content = (root / course.FILE).read_text(encoding="utf-8")
    yield fenced("toml", "[[phases]]".join(content.split("[[phases]]")[:2]))
