"""What is wrong, and where: problems are collected, sorted and reported all at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from grader import UserError


@dataclass(frozen=True, order=True)
class Problem:
    """One thing to put right: `path` relative to the project's root; `line` from 1, 0 for none."""

    path: str
    line: int
    message: str

    def __str__(self) -> str:
        where = f"{self.path}:{self.line}" if self.line else self.path
        return f"{where}: {self.message}"


class Refused(UserError):
    """The build stops: carries every problem that was found."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = sorted(set(problems))
        super().__init__("\n".join(map(str, self.problems)))


def refuse_if_any(problems: Iterable[Problem]) -> None:
    """Raise `Refused` with all of the problems when there is at least one."""
    if found := list(problems):
        raise Refused(found)
