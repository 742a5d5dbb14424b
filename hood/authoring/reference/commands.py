"""The page of commands, from argparse and the Makefile."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hood import __main__ as program
from hood import course
from hood.authoring.reference.layout import code, fenced, table
from hood.authoring.reference.sentences import (
    markdown,
    summary,
)

TARGET = re.compile(r'@echo "make (\w+) +(.*)"')
VARIABLE = re.compile(r"((?:^#.*\n)+)(\w+) \?=", re.MULTILINE)


def commands(root: Path) -> Iterator[str]:
    yield "# Commands"
    _, which = summary(course.course_folder).split("\n\n")
    yield f"A command works on the folder of a course. {which}"
    yield "Every command has the option `--help`, and ends with one of these exit statuses:"
    statuses = program.STATUSES.items()
    yield table(["status", "meaning"], ([str(one), markdown(said)] for one, said in statuses))
    for name, (_, said) in program.COMMANDS.items():
        (parser,) = [every[name] for every in actions_of(program.make_parser(name))]
        yield from command(parser, f"## {name}", said)
        for every in actions_of(parser):
            helps = {one.dest: one.help for one in subparsers(parser)._choices_actions}
            for action, inner in every.items():
                yield from command(inner, f"### {name} {action}", helps[action] or "")
    yield "## make"
    makefile = (root / "Makefile").read_text(encoding="utf-8")
    targets = TARGET.findall(makefile)
    yield table(
        ["target", "what it does"], ([code(f"make {one}"), markdown(said)] for one, said in targets)
    )
    yield "These variables change what the targets do, as in `make demo LAB=all`:"
    said_of = {
        name: markdown(" ".join(said.split("#"))) for said, name in VARIABLE.findall(makefile)
    }
    yield table(["variable", "meaning"], ([code(name), said] for name, said in said_of.items()))


def subparsers(parser: argparse.ArgumentParser) -> Any:
    return next(
        (one for one in parser._actions if isinstance(one, argparse._SubParsersAction)), None
    )


def actions_of(parser: argparse.ArgumentParser) -> list[dict[str, argparse.ArgumentParser]]:
    found = subparsers(parser)
    return [dict(found.choices)] if found else []


def command(parser: argparse.ArgumentParser, heading: str, said: str) -> Iterator[str]:
    own = [one for one in parser._actions if one.dest not in ("help", "action")]
    needed = [spelled(one) for one in own if one.required and one.option_strings]
    places = [spelled(one) for one in own if not one.option_strings]
    places += ["ACTION ..."] if actions_of(parser) else []
    options = ["[OPTION ...]"] if any(not one.required for one in own if one.option_strings) else []
    yield heading
    yield markdown(said)
    yield fenced("", " ".join([parser.prog, *needed, *options, *places]))
    if own:
        helps = (markdown((one.help or "") % vars(one)) for one in own)
        shown = (", ".join(map(code, forms(one))) for one in own)
        yield table(["argument", "meaning"], zip(shown, helps, strict=True))
    for group in parser._mutually_exclusive_groups:
        yield f"At most one of {', '.join(code(forms(one)[0]) for one in group._group_actions)}."
    if parser.epilog:
        yield parser.epilog


def value(action: argparse.Action) -> str:
    """Return how the values of an argument are written, such as ``N`` or ``[lab ...]``."""
    plain = action.dest.upper() if action.option_strings else action.dest
    one = str(action.metavar or ("|".join(action.choices) if action.choices else plain))
    forms = {0: "", "*": f"[{one} ...]", "+": f"{one} [{one} ...]", "?": f"[{one}]"}
    return forms.get(action.nargs if action.nargs is not None else 1, one)


def forms(action: argparse.Action) -> list[str]:
    return [f"{one} {value(action)}".strip() for one in action.option_strings or [""]]


def spelled(action: argparse.Action) -> str:
    return forms(action)[-1]
