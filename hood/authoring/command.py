"""`python -m hood build`: build notebooks, `--check` them, or copy their edits into the texts."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from hood import UserError
from hood.authoring.notebooks.text import Problem, Refused
from hood.phase_paths import choose


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "phases", nargs="*", metavar="PHASE", help='such as 01_tensors, 1 or "start"; default: all'
    )
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument(
        "--check", action="store_true", help="write nothing; report where built notebooks differ"
    )
    mode.add_argument(
        "--from-notebooks", action="store_true", help="copy edits of built notebooks into the texts"
    )
    parser.add_argument(
        "--force",
        action="store_true",
        help="execute every lesson; overwrite edits of built notebooks, and answers in release/",
    )


def run(args: argparse.Namespace, root: Path) -> int:
    """Build or check the phases; print the problems, and return 1 if there are any."""
    from hood.authoring import review, steps

    if not (phases := choose(root, args.phases)):
        raise UserError(f"there is no text in {root / 'phases'}: run this in a course's folder")
    problems: list[Problem] = []
    try:
        if args.check:
            problems = review.problems(phases, whole=not args.phases)
        else:
            if args.from_notebooks:
                steps.bring_home(phases, say=print)
            steps.build(phases, say=print, force=args.force)
    except Refused as refused:
        problems = refused.problems
    for problem in problems:
        print(problem, file=sys.stderr)
    if problems:
        plural = "" if len(problems) == 1 else "s"
        print(f"{len(problems)} problem{plural}", file=sys.stderr)
    return 1 if problems else 0
