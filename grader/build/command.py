"""`python -m grader build`: texts to notebooks, `--check` them, or bring edits home."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from grader.build.problems import Problem, Refused
from grader.phase_paths import choose, find_root


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's own arguments."""
    parser.add_argument(
        "phases", nargs="*", metavar="PHASE", help='such as 01_tensors, 1 or "start"; default: all'
    )
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument(
        "--check", action="store_true", help="write nothing; say where built notebooks differ"
    )
    mode.add_argument(
        "--from-notebooks", action="store_true", help="bring edits of built notebooks into the text"
    )
    parser.add_argument(
        "--force",
        action="store_true",
        help="execute every lesson; drop edits of built notebooks, and answers in release/",
    )


def run(args: argparse.Namespace) -> int:
    """0: all is as it should be; 1: the problems are on standard error."""
    from grader.build import review, steps

    root = find_root(Path.cwd())
    phases = choose(root, args.phases)
    try:
        if args.check:
            return report(review.check(phases, whole=not args.phases))
        if args.from_notebooks:
            steps.bring_home(phases, say=print)
        steps.build(phases, say=print, force=args.force)
    except Refused as refused:
        return report(refused.problems)
    return 0


def report(problems: list[Problem]) -> int:
    """Print the problems, and their number; returns the exit status."""
    for problem in problems:
        print(problem, file=sys.stderr)
    if problems:
        plural = "" if len(problems) == 1 else "s"
        print(f"{len(problems)} problem{plural}", file=sys.stderr)
    return 1 if problems else 0
