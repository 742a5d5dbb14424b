"""Compile once, for all sandboxes of this machine, the headers that Inductor's C++ code includes.

One small kernel takes g++ 2700 ms of CPU as it is, and 1000 with the precompiled header. It depends
on no lab and no answer, and ``python -m grader.inside.headers FOLDER`` makes it, in a process
without learners' code.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

SHOWN = "/tmp/headers"  # the folder inside a sandbox
# header and command line -> name of the file to include
INDEX = "index.json"


def make(folder: Path) -> None:
    """Compile a trivial function and keep in ``folder`` the headers that it needed."""
    import torch
    from torch._inductor import codecache, config

    headers: dict[str, str] = {}
    compiled = codecache._precompile_header

    def keep(header: str, command: str, **options: Any) -> str:
        made = compiled(header, command, **options)
        headers[f"{header} {command}".replace(str(folder), SHOWN)] = Path(made).name
        return made

    codecache._precompile_header = keep  # type: ignore[assignment]  # torch has a cached one
    codecache._HEADER_DIR = str(folder)
    codecache._HEADER_LOCK_DIR = str(folder / "locks")
    config.cpp_cache_precompile_headers = True
    torch.compile(lambda x: x + 1)(torch.zeros(8))
    (folder / INDEX).write_text(json.dumps(headers))


def use(folder: Path) -> None:
    """Let the kernels that this process forks include the headers that :func:`make` compiled.

    Code that needs a header compiled with other options includes the header's text instead.
    """
    from torch._inductor import codecache, config, cpp_builder, cpu_vec_isa

    index = json.loads((folder / INDEX).read_text())

    def find(header: str, command: str, **options: Any) -> str | None:
        name = index.get(f"{header} {command}")
        return name and f"{SHOWN}/{name}"

    codecache._precompile_header = find  # type: ignore[assignment]  # None: not precompiled
    config.cpp_cache_precompile_headers = True
    cpp_builder.CppTorchOptions(vec_isa=cpu_vec_isa.pick_vec_isa())  # asks g++ for its version


if __name__ == "__main__":
    make(Path(sys.argv[1]))
