"""A course names its own packages, and the one with its drivers."""

import importlib
import sys

import pytest

from hood.judge.connection import course_code, originals
from hood.judge.connection.codec import NotByValue
from hood.judge.connection.rpc_client import InProcess
from hood.judge.examples.literal import Unprintable, literal
from hood.judge.verdicts.subject import Subject
from tests.hood.by_value import copy_by_value
from utils.minigpt import MiniGPTConfig

MODULE = """
from dataclasses import dataclass

from hood.judge.connection.drivers import driver


@dataclass(frozen=True)
class Size:
    rows: int


@driver("value")
def asked(thing, size):
    return {"value": thing(size)}
"""


@pytest.fixture
def another_course(tmp_path, monkeypatch):
    """The folder of a course with its own package, which is this process's course."""
    (tmp_path / "course.toml").write_text('packages = ["lecture"]\ndrivers = "lecture.asking"\n')
    package = tmp_path / "lecture" / "asking"
    package.mkdir(parents=True)
    (package / "sizes.py").write_text(MODULE)
    monkeypatch.setenv("HOOD_COURSE", str(tmp_path))
    for name, value in (("_had", []), ("_libraries", []), ("_with_torch", False)):
        monkeypatch.setattr(originals, name, value)
    monkeypatch.setattr(course_code, "_told", None)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in [name for name in sys.modules if name.split(".")[0] == "lecture"]:
        del sys.modules[name]


def test_another_course_has_its_own_data_classes_and_drivers(another_course):
    Size = importlib.import_module("lecture.asking.sizes").Size
    assert copy_by_value(Size(3)) == Size(3)
    assert literal(Size(3)) == "Size(rows=3)"
    found = Subject(InProcess(lambda size: size.rows + 1)).drive("sizes:asked", Size(3))
    assert found["value"] == 4
    for send, refused in ((copy_by_value, NotByValue), (literal, Unprintable)):
        with pytest.raises(refused, match="a value of type MiniGPTConfig"):
            send(MiniGPTConfig())
    assert str(another_course / "lecture") in originals._library_folders()


def test_the_course_given_to_a_process_is_used(monkeypatch):
    monkeypatch.setattr(course_code, "_told", None)
    course_code.tell([])
    assert (course_code.packages(), course_code.is_of_course("utils.minigpt")) == ((), False)
    with pytest.raises(NotByValue, match="a value of type MiniGPTConfig"):
        copy_by_value(MiniGPTConfig())
