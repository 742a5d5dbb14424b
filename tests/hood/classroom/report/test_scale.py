"""A large class takes the same time per learner as a small one, and no more memory."""

import argparse
import io
import tracemalloc

import pytest
from rich.console import Console

from hood.classroom.gradebook import graded
from hood.classroom.report import command
from tests.hood.classroom.report.made_up import LAB, crowd, make_course

pytestmark = pytest.mark.slow(8)


def peak(course):
    """Return the peak memory of a report in bytes."""
    arguments = argparse.Namespace(lab=LAB, out=None, hide_names=False)
    tracemalloc.start()
    try:
        command.run(arguments, root=course, console=Console(file=io.StringIO()))
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_each_notebook_is_read_once(tmp_path, monkeypatch):
    course = make_course(tmp_path / "course", crowd(60))
    opened, read = [], graded.read_graded
    monkeypatch.setattr(graded, "read_graded", lambda path: opened.append(path) or read(path))
    peak(course)
    assert len(opened) == len(set(opened)) == 60


def test_memory_does_not_grow_with_the_class(tmp_path, monkeypatch):
    monkeypatch.setattr(graded, "AT_ONCE", 50)
    few, many = (make_course(tmp_path / str(n), crowd(n, padding=20_000)) for n in (60, 360))
    peak(few)  # the first call imports modules and fills caches
    more = peak(many) - peak(few)
    assert more < 300 * 2_000  # a notebook has 60 kB of text
