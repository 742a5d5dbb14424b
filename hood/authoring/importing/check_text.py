"""Write the texts of a draft for one exercise: the check, and the file of answers."""

from __future__ import annotations

import builtins
import re
from collections.abc import Iterator

from hood.authoring.importing.drafted import HIDDEN, Drafted, as_text
from hood.authoring.importing.names import Imports

LAB_SOLUTION = "from hood.judge.checks.lab_solution import lab_solution\n"
SECOND = "# TODO: a second right solution, so that the check also tests the lab's solution\n"
# Names that a drafted file of checks uses itself.
OWN_NAMES = {"Case", "Check", "Tolerance", "case", "draw", "lab_solution", "replace"}


def variable(name: str, imports: Imports) -> str:
    """Return a name for the variable of an exercise's check. The module gets the same name."""
    taken = name in OWN_NAMES or name in imports.statements or hasattr(builtins, name)
    return f"{name}_check" if taken else name


def check_text(made: Drafted, variable: str, imports: Imports, source: str) -> str:
    """Return the file of an exercise's check."""
    name = made.name
    statements = {
        imports.statements[word]
        for _, one in made.asked
        for word in re.findall(r"\b[A-Za-z_]\w*", f"{one.arguments} {one.value}")
        if word in imports.statements and word not in made.functions
    }
    libraries = "".join(f"{line}\n" for line in sorted(statements))
    tolerances = [one.tolerance for _, one in made.asked if one.tolerance]
    tolerance = ""
    if tolerances:
        rtol, atol = (max(one[k] for one in tolerances) for k in (0, 1))
        tolerance = f'    tolerance=Tolerance({rtol!r}, {atol!r}, "as in the tests of {source}"),\n'
    own = "from dataclasses import replace\n\n" if _has_hidden(made) and not made.value else ""
    compare = "from hood.judge.checks.compare import Tolerance\n" if tolerance else ""
    parts = ", ".join(f'"{part}": {as_text(points)}' for part, points in made.parts.items())
    solution = f'lab_solution(__name__, "{name}")'
    if made.value:
        solution = made.value
    elif not made.single:
        pairs = (
            f'    "{one}": lab_solution(__name__, "{name}", "{one}"),' for one in made.functions
        )
        solution = "{\n" + "\n".join(pairs) + "\n}" if made.functions else "{}"
    of_case = any(one.leaves for _, one in made.asked) or bool(made.value)
    of_call = not made.value and not all(one.leaves for _, one in made.asked)
    names = ["Case"] * of_case + ["Check"] + ["case"] * (of_call or not made.asked)
    lines = "\n".join(_case_lines(made)) or "    yield from ()"
    return f'''\
"""What the exercise `{name}` asks: a draft, made from {source}."""

{own}{libraries}{chr(10) if libraries else ""}\
{compare}from hood.judge.checks.exercise import {", ".join(names)}
{"" if made.value else LAB_SOLUTION}\

{variable} = Check(
    "{name}",
    parts={{{parts}}},
    reads="",  # TODO: the lesson's section that explains it
{tolerance})

{"" if made.value else SECOND}\
{variable}.reference({solution})


@{variable}.cases
def _(draw):
{lines}
'''


def _has_hidden(made: Drafted) -> bool:
    return any(part == HIDDEN for part, _ in made.asked)


def _case_lines(made: Drafted) -> Iterator[str]:
    """Yield the lines of a check's cases: for each test, its original code and its case."""
    if made.asked and not made.value:
        yield "    # TODO: let `draw` choose these values"
    for part, one in made.asked:
        yield from (f"    # {line}".rstrip() for line in one.source.split("\n"))
        place = part if part in made.parts else next(iter(made.parts))
        if made.value:
            yield f'    yield Case("{place}", lambda subject: subject.value(), example=False)'
            continue
        of = "" if made.single else f', of="{one.function}"'
        raises = f', raises="{one.raises}"' if one.raises else ""
        given = f", {one.arguments}" if one.arguments else ""
        call = f'case("{place}"{given}{of}{raises})'
        if one.leaves:
            arguments = ", ".join(filter(None, [one.arguments, of.removeprefix(", ")]))
            call = f'Case("{place}", lambda subject: subject.left_by({arguments}){of})'
        # learners must not see the values of a hidden test in a failing example
        yield f"    yield {f'replace({call}, example=False)' if part == HIDDEN else call}"
    for part, test in made.left:
        yield f"    # TODO: no case ({part}) was made of this, because {test.why}:"
        yield from (f"    #     {line}".rstrip() for line in test.source.split("\n"))
    if made.left and not made.asked:
        yield "    yield from ()"


def answers_text(name: str) -> str:
    """Return an exercise's file of answers, which has no answers yet."""
    return f"""\
# Wrong answers of `{name}` that learners really give, and other right answers. The form:
#
# [wrong."the term for the mistake"]
# says = "what the code does. It should do something else."
# earns = 0
# edits = [["a text of the solution", "the text in its place"]]
"""
