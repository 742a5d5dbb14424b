"""``python -m hood.learner.explain EXERCISE``: one text about an exercise, to paste into a chat.

The text has the question, the learner's code and the last verdict from the saved notebook, but no
solution. The text has hints only if an option asks for them. The same text is folded below each
verdict without full points (:mod:`hood.learner.what_now`).
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path

from hood import UserError
from hood.course import course
from hood.learner.contents import labs_of
from hood.learner.lab_file import (
    UNREADABLE,
    Cell,
    cells_of,
    exercises,
    groups,
    text_of,
    verdicts,
)
from hood.phase_paths import ROOT

HINT = re.compile(r"<details>.*?</details>\s*", re.DOTALL)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "exercise", help="the name in the exercise's `check(...)`, such as view_strides"
    )
    parser.add_argument(
        "--hints",
        type=int,
        default=0,
        metavar="N",
        help="how many hints to show, beginning with the first (default: none)",
    )


def run(args: argparse.Namespace, root: Path = ROOT) -> int:
    """Print the text. Raises UserError when no lab here has the exercise."""
    cells = find(args.exercise, root)
    group = next(one for one in groups(cells) if one.name == args.exercise)
    exercise = next(one for one in exercises(cells) if one.name == args.exercise)
    last = next(reversed(list(verdicts(group.checks[-1]))), None) if group.checks else None
    said = "".join((last or {}).get("data", {}).get("text/plain", ""))  # a text, or its lines
    print(explained(without_hints(group.question, args.hints), map(text_of, group.stubs), said))
    if exercise.stale:
        print("\nI have changed my answer since this check.")
    return 0


def find(name: str, root: Path = ROOT) -> list[Cell]:
    """Return the cells of the lab with an exercise, from the learner's copy or else the release.

    Raises UserError when no readable lab has the exercise.
    """
    names: list[str] = []
    for phase in course(root).phases:
        for path in labs_of(phase, root)[:1]:
            try:
                cells = cells_of(path)
                found = [group.name for group in groups(cells)]
            except (OSError, *UNREADABLE):
                continue
            if name in found:
                return cells
            names += found
    near = get_close_matches(name, names, n=3)
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    raise UserError(f"no lab here has an exercise called {name!r}{hint}")


def explained(question: str, code: Iterable[str], verdict: str) -> str:
    """Return an exercise's question, a learner's code and its verdict as one text in Markdown."""
    parts = [question.strip()]
    parts += [f"My answer:\n\n{fenced(one, 'python')}" for one in code]
    if verdict:
        parts.append(f"What its check said:\n\n{fenced(verdict, 'text')}")
    else:
        parts.append(
            "The check has not run on this answer, or the notebook was not saved after the check."
        )
    return "\n\n".join(parts)


def without_hints(question: str, shown: int = 0) -> str:
    """Return a question with its first `shown` hints. A last line counts the hints left out."""
    hints = HINT.findall(question)
    left = len(hints[shown:])
    count = iter(range(len(hints)))
    text = HINT.sub(lambda hint: hint[0] if next(count) < shown else "", question).strip()
    if not left:
        return text
    return f"{text}\n\n({left} {'hint' if left == 1 else 'hints'} not shown here.)"


def fenced(text: str, language: str) -> str:
    """Return a text in a fence that is longer than any run of backquotes in the text."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{language}\n{text.strip()}\n{fence}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m hood.learner.explain", description=__doc__)
    add_arguments(parser)
    try:
        sys.exit(run(parser.parse_args()))
    except UserError as error:
        sys.exit(str(error))
