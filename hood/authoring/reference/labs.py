"""The page of labs, checks and answers, from what the build and the judge read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from hood.authoring import answer_rules, lint
from hood.authoring.notebooks import text
from hood.authoring.reference.keys import defaults
from hood.authoring.reference.layout import code, fenced, table
from hood.authoring.reference.limits import of_sandbox
from hood.authoring.reference.sentences import (
    example,
    of_fields,
    of_names,
    summary,
    types_of,
)
from hood.grader.sandbox import limits
from hood.judge.checks import answers as answers_of_check
from hood.judge.checks import answers_form, compare, exercise


def lab(_root: Path) -> Iterator[str]:
    settings = lint.LAB_SETTINGS | lint.preload_setting()
    said = {
        **of_names(lint, "PAGE_SETTINGS"),
        **of_names(lint, "LAB_SETTINGS"),
        **of_names(lint, "preload_setting"),
        **of_names(limits, "OF_TIME"),
    }
    yield "# Labs, checks and answers"
    yield (
        "A lab is `phases/NN_name/lab.py`. In the same folder are the lab's checks (`checks.py` or "
        "`checks/`), and for each check a file of answers that test the check "
        "(`answers/NAME.toml`)."
    )
    yield "## The header of a lab"
    yield "The header is at the top of `lab.py`, below `jupyter:` and `open_the_hood:`:"
    yield fenced(
        "",
        "# ---\n# jupyter:\n#   open_the_hood:\n#     title: A lab\n#     points: 40\n"
        "#     cell_seconds: 60\n#     limits: {memory_mb: 4096}\n# ---",
    )
    rows = (
        [code(name), kind + ("; required" if name in lint.NEEDED else ""), said[name]]
        for name, (_, kind) in settings.items()
    )
    yield table(["key", "value", "meaning"], rows)
    yield "## The limits that a lab may set"
    yield from of_sandbox()
    yield "## The header of a cell"
    yield 'A cell begins with `# %%`, and may have keys: `# %% test="view_strides" points=3`.'
    yield "The cells of a lesson may have only the key `tags`."
    said = of_names(text, "ROLES") | of_names(text, "HEADER_KEYS")
    yield table(["key", "meaning"], ([code(name), said[name]] for name in text.HEADER_KEYS))
    yield "## The checks of a phase"
    yield "A check registers its reference and its cases with decorators:"
    yield fenced("python", example(exercise))
    of_checks = exercise.Check, exercise.Case, exercise.Place, exercise.Paste, exercise.ByHand
    for kind in (*of_checks, compare.Tolerance):
        yield from data_class(kind)
    yield "## An answers file"
    yield "A file of answers may have the tables below. An unknown key is an error."
    yield fenced("toml", example(answers_of_check))
    yield from answers()
    yield "The build refuses a file that breaks one of these rules:"
    rules = (*answer_rules.RULES, answer_rules.quote_faults, answer_rules.reads_faults)
    yield "\n".join(f"- {summary(rule)}" for rule in rules)


def data_class(kind: type) -> Iterator[str]:
    said, kinds = of_fields(kind), types_of(kind)
    yield f"## {kind.__name__}"
    yield summary(kind)
    rows = (
        [code(name), f"{code(kinds[name])}{default}", said[name]]
        for name, default in defaults(kind).items()
    )
    yield table(["field", "type", "meaning"], rows)


def answers() -> Iterator[str]:
    yield table(
        ["top of the file", "value", "meaning"],
        iter([[code(answers_form.TOLD), answers_form.TEXTS[1], of_names(answers_form)["TOLD"]]]),
    )
    both = of_names(answers_form, "CODE")
    for form, heading in (("NAMED", '[{}."NAME"]'), ("LISTED", "[[{}]]")):
        said = of_names(answers_form, form)
        for name, kinds in getattr(answers_form, form).items():
            yield f"### {name}\n\n{code(heading.format(name))}: {said[name]}"
            rows = (
                [code(key), expected, said.get(f"{name}.{key}") or both[key]]
                for key, (_, expected) in kinds.items()
            )
            yield table(["key", "value", "meaning"], rows)
