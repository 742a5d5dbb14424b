"""`python -m grader site`: build the site, and say where it is."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from grader import UserError
from grader.phase_paths import find_root


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--views",
        nargs="*",
        metavar="PHASE",
        help="the lessons whose views move, such as 02; default: all",
    )
    parser.add_argument(
        "--into", type=Path, help="the folder to work in; default: build/site", metavar="FOLDER"
    )


def run(args: argparse.Namespace) -> int:
    try:
        from grader.site.build import build
    except ModuleNotFoundError as error:
        raise UserError(
            f"{error}: the site needs the extra `site`: pip install -e '.[site]'"
        ) from None

    root = find_root()
    folder = (args.into or root / "build" / "site").resolve()
    site = build(root, folder, print, moving=args.views, workers=os.cpu_count() or 1)
    shown = site.relative_to(root) if site.is_relative_to(root) else site
    print(f"{shown}/index.html: open it, or serve the folder")
    return 0
