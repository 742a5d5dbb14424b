"""The pages of reference agree with the code, and are complete."""

import argparse
import dataclasses
import importlib
import re
import subprocess

import pytest
import yaml

from hood import course
from hood.__main__ import COMMANDS, make_parser
from hood.authoring import lint
from hood.authoring.notebooks import text
from hood.authoring.reference import sentences, top_level
from hood.authoring.reference.keys import headings
from hood.authoring.reference.pages import FOLDER, PAGES, written
from hood.classroom.doctor import CLASS
from hood.classroom.results.exports import PLACES
from hood.classroom.rules.reading import read_course_file
from hood.classroom.rules.schema import ClassRules
from hood.grader.sandbox import limits
from hood.judge.checks import answers_form, compare, exercise
from hood.phase_paths import ROOT

PARTS = headings(ClassRules)


@pytest.fixture(scope="module")
def pages():
    return written(ROOT)


def in_code(page):
    """The words that a page has between back quotes."""
    return set(re.findall(r"`([^`\n]+)`", page))


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_as_the_code_has_it(name, pages):
    there = (ROOT / FOLDER / name).read_text(encoding="utf-8")
    assert there == pages[name], "run `python -m hood.authoring.reference`"


def test_there_is_no_other_page():
    assert {path.name for path in (ROOT / FOLDER).iterdir()} == set(PAGES)


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_is_there_with_its_arguments_and_their_defaults(name, pages):
    def parsers(parser, prog):
        yield prog, parser
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                for word, inner in action.choices.items():
                    yield from parsers(inner, f"{prog} {word}")

    (every,) = [one for one in make_parser(name)._actions if one.dest == "command"]
    for prog, parser in parsers(every.choices[name], name):
        (part,) = re.findall(rf"^##+ {prog}\n(.*?)(?=^##)", pages["commands.md"], re.M | re.S)
        for action in parser._actions:
            if action.dest in ("help", "action"):
                continue
            assert action.help, (prog, action.dest)
            for option in action.option_strings or [action.metavar or action.dest]:
                assert option in part
            if action.option_strings and action.nargs != 0 and action.default:
                assert "default" in action.help or action.default == [], (prog, action.dest)


def test_each_target_of_make_that_is_explained_is_there(pages):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (known,) = re.findall(r"^\.PHONY: (.*)", makefile, re.M)
    inner = {"form", "quick", "types", "built", "help"}
    told = {word.removeprefix("make ") for word in in_code(pages["commands.md"])}
    assert set(known.split()) - inner <= told
    assert set(re.findall(r"^(\w+) \?=", makefile, re.M)) <= told


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.__name__)
def test_each_key_of_a_class_is_there_and_in_an_example(part, pages):
    heading = re.escape(PARTS[part])
    (page,) = re.findall(rf"^## {heading}\n(.*?)(?=^## |\Z)", pages["course-yml.md"], re.M | re.S)
    assert set(part.model_fields) <= in_code(page)
    examples = pages["course-yml.md"] if PARTS[part].startswith(("The top", "export")) else page
    for key in part.model_fields:
        assert re.search(rf"\b{key}:", "\n".join(fenced(examples))), key


def fenced(page):
    return re.findall(r"```yaml\n(.*?)```", page, re.S)


def test_each_example_of_rules_can_be_read(tmp_path, pages):
    for lab in ("01_tensors", "05_custom_op"):
        (tmp_path / "source" / lab).mkdir(parents=True)
        name = tmp_path / "source" / lab / f"{lab}.ipynb"
        name.write_bytes((ROOT / "source" / lab / f"{lab}.ipynb").read_bytes())
        (tmp_path / "phases" / lab).mkdir(parents=True)
        (tmp_path / "phases" / lab / "lab.py").touch()
    dates = {"labs": {"01_tensors": {"due": "2026-09-25"}, "05": {"due": "2026-11-20"}}}
    examples = fenced(pages["course-yml.md"])
    assert len(examples) > 8
    for example in examples:
        whole = dates | yaml.load(example, yaml.BaseLoader)
        (tmp_path / "course.yml").write_text(yaml.safe_dump(whole))
        assert read_course_file(tmp_path) is not None


def test_each_key_of_a_course_and_of_a_lab_is_there(pages):
    keys = {one.name for one in dataclasses.fields(course.Course)} - {"root"}
    keys |= {one.name for one in dataclasses.fields(course.Phase)}
    assert keys <= in_code(pages["course-toml.md"])
    keys = {*lint.LAB_SETTINGS, *lint.preload_setting(), *text.HEADER_KEYS, *limits.UNITS}
    keys |= {answers_form.TOLD, *answers_form.CODE}
    for table in (answers_form.NAMED, answers_form.LISTED):
        keys |= {key for entry in table.values() for key in entry}
    for kind in (exercise.Check, exercise.Case, exercise.ByHand, exercise.Paste, compare.Tolerance):
        keys |= {one.name for one in dataclasses.fields(kind) if one.name[0] != "_"}
    assert keys <= in_code(pages["lab.md"])


def test_each_file_at_the_top_is_there():
    done = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    tracked = {path.partition("/")[0] for path in done.stdout.splitlines()}
    ignored = (ROOT / ".gitignore").read_text(encoding="utf-8")
    own = set(re.findall(r"^/([\w.]+)/?$", ignored, re.M))
    told = {name.rstrip("/") for group in top_level.GROUPS.values() for name in group}
    assert tracked | own <= told
    personal = {name.rstrip("/") for name in top_level.PERSONAL | top_level.SECRET}
    assert {*CLASS, *PLACES.values()} <= personal


def test_comments_and_docstrings_describe_names(tmp_path, monkeypatch):
    (tmp_path / "described.py").write_text(
        '''"""Words::

    code

More of ``words``.
"""

ONE = 1  # bytes of :class:`~hood.x.Thing`
# seconds
# of two lines
TWO = 2
BARE = 3
KEYS = {
    "a": 1,  # first
    # a table
    "b": {
        "c": 2,
        "d": 3,  # last
    },
}
'''
    )
    monkeypatch.syspath_prepend(tmp_path)
    described = importlib.import_module("described")

    assert sentences.of_names(described) == {
        "ONE": "Bytes of `Thing`.",
        "TWO": "Seconds of two lines.",
    }
    assert sentences.of_names(described, "KEYS") == {"a": "First.", "b": "A table.", "b.d": "Last."}
    assert sentences.example(described) == "code"
    said = "Thing.\n\nAttributes:\n    a: one\n        and two\n    b: three.\n"
    assert sentences.attributes(said) == {"a": "One and two.", "b": "Three."}
