"""Problems: what is wrong in a text or notebook, and where. They are reported all at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from grader import UserError


@dataclass(frozen=True, order=True)
class Problem:
    """What is wrong in a file of the project, and in which line; 0 is the whole file."""

    path: str
    line: int
    message: str

    def __str__(self) -> str:
        where = f"{self.path}:{self.line}" if self.line else self.path
        return f"{where}: {self.message}"


class Refused(UserError):
    """The build refuses its input, for all of `problems`, which are sorted."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = sorted(set(problems))
        super().__init__("\n".join(map(str, self.problems)))


def refuse_if_any(problems: Iterable[Problem]) -> None:
    """Raise `Refused` with all of the problems, if there are any."""
    if found := list(problems):
        raise Refused(found)
