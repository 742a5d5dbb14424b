"""`python -m hood site`: build the site, and say in which folder it is."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from hood import not_installed


def add_arguments(parser: argparse.ArgumentParser) -> None: ...


def run(args: argparse.Namespace, root: Path) -> int:
    try:
        from hood.authoring.site.build import build
    except ModuleNotFoundError as error:
        raise not_installed("the site", error) from None

    site = build(root, root / "build" / "site", print, workers=os.cpu_count() or 1)
    print(f"{site.relative_to(root)}/index.html: open it, or serve the folder")
    return 0
