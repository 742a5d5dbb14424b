"""The page of the service's HTTP interface, from its description in OpenAPI."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hood.authoring.reference.layout import code, table
from hood.authoring.reference.sentences import (
    attributes,
    markdown,
    of_fields,
    summary,
)
from hood.classroom.gradebook.service_jobs import State
from hood.classroom.service import app
from hood.classroom.service.dispatcher import Dispatcher
from hood.classroom.service.people import OfFile
from hood.grader.course import open_course
from hood.phase_paths import slug


def http(_root: Path) -> Iterator[str]:
    with TemporaryDirectory() as folder:
        people = OfFile(Path(folder), ())
        made = app.make_app(Dispatcher(open_course(Path(folder)), workers=0), people)
        api = made.openapi()
    (bearer,) = api["components"]["securitySchemes"].values()
    yield "# The service's HTTP interface"
    yield (
        "`python -m hood serve` answers these requests. With JupyterHub, each path begins with the "
        "service's prefix, such as `/services/open-the-hood`. Without a hub, `/openapi.json` "
        "describes the interface in the format of OpenAPI. Every request must have a header "
        f"`Authorization: Bearer TOKEN`. The token is {bearer['description']}."
    )
    yield (
        "If the service refuses a request, it answers with one of these statuses, and with JSON "
        "that has a sentence in `detail`:"
    )
    refusals = app.REFUSALS.items()
    yield table(
        ["status", "meaning"], ([str(n), markdown(one["description"])] for n, one in refusals)
    )
    for path, methods in api["paths"].items():
        for method, asked in methods.items():
            yield from request(f"{method.upper()} {path}", asked)
    for name, body in sorted(api["components"]["schemas"].items()):
        if name == State.__name__:
            said = of_fields(State)
            yield f"## {name}\n\n{summary(State)}"
            yield table(["value", "meaning"], ([code(one), said[one.name]] for one in State))
        elif not name.endswith("Error"):
            yield from json_object(name, body)


def request(heading: str, asked: Mapping[str, Any]) -> Iterator[str]:
    yield f"## {heading}"
    yield "\n\n".join(markdown(one) for one in asked["description"].split("\n\n"))
    found = [
        [code(one["name"]), f"in the {one['in']}", json_words(one["schema"])]
        for one in asked.get("parameters", ())
    ]
    if body := asked.get("requestBody"):
        (content,) = body["content"].values()
        found.append(["body", "", json_words(content["schema"])])
    (status,) = [one for one in asked["responses"] if one.startswith("2")]
    answer = asked["responses"][status].get("content", {}).get("application/json", {})
    found.append([f"answer, {status}", "", json_words(answer.get("schema", {}))])
    yield table(["part", "where", "value"], iter(found))


def json_object(name: str, body: Mapping[str, Any]) -> Iterator[str]:
    said = attributes(body["description"])
    yield f"## {name}"
    yield markdown(re.split(r"\n\n", body["description"])[0])
    needed = body.get("required", ())
    said = {key: words.replace("None", "`null`") for key, words in said.items()}
    rows = (
        [code(key), json_words(one) + ("" if key in needed else "; optional"), said[key]]
        for key, one in body["properties"].items()
    )
    yield table(["key", "value", "meaning"], rows)


def json_words(one: Mapping[str, Any]) -> str:
    """Describe in words which values a schema of JSON allows."""
    if "$ref" in one:
        name = one["$ref"].rpartition("/")[2]
        return f"[{name}](#{slug(name)})"
    if "anyOf" in one:
        return " or ".join(map(json_words, one["anyOf"]))
    if "items" in one:
        return f"list of {json_words(one['items'])}" + most(one, "maxItems", " of them")
    names = {"string": "text", "integer": "whole number", "object": "texts by name"}
    kind = {"date-time": "time"}.get(one.get("format", ""), one.get("type", "content of a file"))
    kind = names.get(kind, kind)
    return kind + most(one, "maxLength", " characters") + most(one, "maximum", "")


def most(one: Mapping[str, Any], key: str, unit: str) -> str:
    return f", at most {one[key]:,g}{unit}" if key in one else ""
