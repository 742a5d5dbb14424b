"""Compile once, for all sandboxes of this machine, the headers that Inductor's C++ code includes.

Parsing these headers takes most of the time of a compilation. Sandboxes see the precompiled headers
read-only. The headers depend on torch and on the compiler, and neither on a lab nor on an answer.

``python -m grader.inside.headers FOLDER`` makes them, in a process that runs no learner's code.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

SHOWN = "/tmp/headers"  # the folder inside a sandbox
INDEX = "index.json"  # header and command line -> name of the file to include


def make(folder: Path) -> None:
    """Compile a trivial function and keep the precompiled headers that it needed in ``folder``."""
    import torch
    from torch._inductor import codecache, config

    index = {}
    compiled = codecache._precompile_header

    def keep(header: str, command: str, **options: Any) -> str:
        made = compiled(header, command, **options)
        index[f"{header} {command}"] = Path(made).name
        return made

    codecache._precompile_header = keep  # type: ignore[assignment]  # torch has a cached one
    codecache._HEADER_DIR = str(folder)
    codecache._HEADER_LOCK_DIR = str(folder / "locks")
    config.cpp_cache_precompile_headers = True
    torch.compile(lambda x: x + 1)(torch.zeros(8))
    (folder / INDEX).write_text(json.dumps(index))


def use(folder: Path) -> None:
    """Let the kernels that this process forks include the precompiled headers.

    Code that needs a header compiled with other options includes the header's text instead.

    Args:
        folder: what :func:`make` filled; a sandbox has it at ``SHOWN``.
    """
    from torch._inductor import codecache, config

    index = json.loads((folder / INDEX).read_text())

    def find(header: str, command: str, **options: Any) -> str | None:
        name = index.get(f"{header} {command}")
        return name and f"{SHOWN}/{name}"

    codecache._precompile_header = find  # type: ignore[assignment]  # None: not precompiled
    config.cpp_cache_precompile_headers = True


if __name__ == "__main__":
    make(Path(sys.argv[1]))
