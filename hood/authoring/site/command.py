"""`python -m hood site`: build the site, and say where it is."""

from __future__ import annotations

import argparse
import os

from hood import not_installed
from hood.phase_paths import find_root


def add_arguments(parser: argparse.ArgumentParser) -> None: ...


def run(args: argparse.Namespace) -> int:
    try:
        from hood.authoring.site.build import build
    except ModuleNotFoundError as error:
        raise not_installed("the site", error) from None

    root = find_root()
    site = build(root, root / "build" / "site", print, workers=os.cpu_count() or 1)
    print(f"{site.relative_to(root)}/index.html: open it, or serve the folder")
    return 0
