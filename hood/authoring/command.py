"""`python -m hood build`: build notebooks, check them, or copy their edits into the texts."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from hood import UserError
from hood.authoring.notebooks.text import Problem, Refused, refuse_if_any
from hood.course import ENGINE, FILE, course
from hood.phase_paths import choose, phases

SETTINGS = "nbgrader_config.py"  # the engine's settings fit every course


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "phases",
        nargs="*",
        metavar="PHASE",
        help='the phases, such as 01_tensors, 1 or "start" (default: all)',
    )
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument(
        "--check",
        action="store_true",
        help="write nothing; list the built notebooks that differ from their texts",
    )
    mode.add_argument(
        "--from-notebooks",
        action="store_true",
        help="copy the changes of built notebooks back into the texts",
    )
    parser.add_argument(
        "--force",
        action="store_true",
        help="execute every lesson; overwrite changes in built notebooks, and answers in release/",
    )


def run(args: argparse.Namespace, root: Path) -> int:
    """Build or check the phases; print the problems, and return 1 if there are any."""
    from hood.authoring import review, steps

    if not (chosen := choose(root, args.phases)):
        raise UserError(f"there is no text in {root / 'phases'}: run this in a course's folder")
    problems: list[Problem] = []
    try:
        refuse_if_any(listed_problems(root))
        if args.check:
            problems = review.problems(chosen, whole=not args.phases)
        else:
            if args.from_notebooks:
                steps.bring_home(chosen, say=print)
            _give_settings(root)
            steps.build(chosen, say=print, force=args.force)
    except Refused as refused:
        problems = refused.problems
    for problem in problems:
        print(problem, file=sys.stderr)
    if problems:
        plural = "" if len(problems) == 1 else "s"
        print(f"{len(problems)} problem{plural}", file=sys.stderr)
    return 1 if problems else 0


def listed_problems(root: Path) -> Iterator[Problem]:
    """Yield a problem for each phase that is not in the list of phases in ``course.toml``.

    If the list is empty, there is no problem. A listed phase may have no folder, because a course
    may announce a phase before the phase is written.
    """
    listed = {phase.name for phase in course(root).phases}
    for phase in phases(root) if listed else []:
        if phase.name not in listed:
            yield Problem(
                FILE, 0, f"does not list phases/{phase.name}/: add [[phases]] with this name"
            )


def _give_settings(root: Path) -> None:
    """Copy the engine's settings of nbgrader into a course that has no settings of its own."""
    if not (root / SETTINGS).exists():
        shutil.copy(ENGINE / SETTINGS, root)
        print(f"{SETTINGS}: copied from the engine; commit it with the course")
