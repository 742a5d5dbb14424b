"""`python -m grader site`: build the site, and say where it is."""

from __future__ import annotations

import argparse
import os

from grader import UserError
from grader.phase_paths import find_root


def add_arguments(parser: argparse.ArgumentParser) -> None: ...


def run(args: argparse.Namespace) -> int:
    try:
        from grader.site.build import build
    except ModuleNotFoundError as error:
        raise UserError(
            f"{error}: the site needs the extra `site`: pip install -e '.[site]'"
        ) from None

    root = find_root()
    site = build(root, root / "build" / "site", print, workers=os.cpu_count() or 1)
    print(f"{site.relative_to(root)}/index.html: open it, or serve the folder")
    return 0
