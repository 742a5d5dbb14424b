"""What the analysis finds in the cells of a test."""

import textwrap

from grader.judging.flow import Analysis, Reading
from grader.judging.learner_source import Written
from utils.checks.exercise import ByHand


def analysed(*cells: str, hostile=lambda path: "", **rule) -> Reading:
    written = Written(["import torch", *map(textwrap.dedent, cells)])
    return Analysis(written, "f", ByHand("write it out", **rule), hostile).read()


def used(*cells: str, **options) -> set[str]:
    """The paths that ``f`` uses of libraries; an argument's attributes have no module."""
    paths = {use.path for use in analysed(*cells, **options).uses} - {"torch"}
    return {path for path in paths if not path.startswith("builtins.")}


def hidden(*cells: str, **options) -> list[tuple[str, str]]:
    """What of ``f`` cannot be analysed, with the reasons."""
    return [(one.code, one.why) for one in analysed(*cells, **options).hidden]
