"""What every C++ kernel of Inductor includes, compiled once for all sandboxes of this machine.

Parsing these headers is most of what a kernel costs. Sandboxes are shown the outcome, which cannot
be written there and depends on nothing but torch and the compiler: neither on a lab nor on an
answer.

``python -m grader.inside.headers FOLDER`` makes it, in a process that runs no learner's code.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

SHOWN = "/tmp/headers"  # where a sandbox has them
INDEX = "index.json"  # header and command line -> name of the file to include


def make(folder: Path) -> None:
    """Compile a function that is nobody's answer, and keep the headers that it needed."""
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
    """In a process that forks kernels: let them include what lies in `folder`, shown at SHOWN.

    A kernel that needs it compiled in another way includes the text.
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
