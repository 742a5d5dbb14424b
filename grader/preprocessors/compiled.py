"""A prepared Inductor cache for a lab whose exercises call ``torch.compile``.

A first compilation takes ten seconds, and a cache that learners share would let one of them leave
code for the next. So the reference solution is run once, in a room of its own, and what Inductor
wrote there is kept; each submission starts with a private copy.
"""

from __future__ import annotations

import contextlib
import copy
import fcntl
import hashlib
import io
import json
import os
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from nbformat.notebooknode import NotebookNode
from nbformat.v4 import new_code_cell

from grader import UserError
from grader.layout import ROOT, phases
from grader.preprocessors.execute import Execute

SECONDS = 600  # for a cell of the reference: everything in it is compiled for the first time
# Sends the cache home, over the socket that is there for answers.
SEND = """\
import os, socket, tarfile
with socket.socket(fileno=os.dup(int(os.environ["OPEN_THE_HOOD_LINK"]))) as _link:
    with _link.makefile("wb") as _file, tarfile.open(fileobj=_file, mode="w|") as _tar:
        _tar.add(os.environ["TORCHINDUCTOR_CACHE_DIR"], arcname=".")
    _link.shutdown(socket.SHUT_WR)
"""


def cache_of(source_nb: NotebookNode) -> Callable[[], Path] | None:
    """What gives a lab's cache to those who run it; None where it does not say ``compile: true``.

    Args:
        source_nb: the instructor's version.
    """
    if not source_nb.metadata.get("open_the_hood", {}).get("compile", False):
        return None
    return partial(prepared_cache, source_nb)


def prepared_cache(source_nb: NotebookNode) -> Path:
    """The folder with what a lab's solution compiles.

    It is made when it is not there yet. Others who want it at the same time wait.

    Raises:
        CannotSandbox: when the reference can't be run safely on this machine.
        UserError: when it fails, or compiles nothing.
    """
    where = folder() / _key(source_nb)
    if where.is_dir():
        return where
    where.parent.mkdir(parents=True, exist_ok=True)
    with _alone(where.with_suffix(".lock")):
        if not where.is_dir():
            _make(source_nb, where)
    return where


def folder() -> Path:
    """This user's folder of prepared caches."""
    caches = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(caches).expanduser() / "open-the-hood" / "compiled"


class _Reference(Execute):
    """Runs the reference, and takes over what it compiled. The last cell must be ``SEND``."""

    received = b""

    def preprocess_cell(
        self, cell: NotebookNode, resources: Any, index: int
    ) -> tuple[NotebookNode, Any]:
        """Run one cell; during the last one, read what it sends."""
        if cell.source != SEND:
            return super().preprocess_cell(cell, resources, index)
        self.km.link.settimeout(SECONDS)
        with ThreadPoolExecutor(1) as thread, self.km.link.makefile("rb") as stream:
            reading = thread.submit(stream.read)
            done = super().preprocess_cell(cell, resources, index)
            if any(output.output_type == "error" for output in cell.outputs):
                self.km.link.shutdown(2)
            self.received = reading.result()
        return done


def _make(source_nb: NotebookNode, where: Path) -> None:
    """Run the reference and put what it compiled at ``where``, all of it or nothing."""
    nb = copy.deepcopy(source_nb)
    nb.metadata.open_the_hood.cell_seconds = SECONDS
    nb.cells.append(new_code_cell(SEND))
    step = _Reference()
    step.preprocess(nb, {"metadata": {"path": None}})
    errors = [o for cell in nb.cells for o in cell.get("outputs", []) if o.output_type == "error"]
    if errors:
        raise UserError(
            "the lab's header says compile: true, but its own solution does not run: "
            f"{errors[0].ename}: {errors[0].evalue}"
        )
    made = Path(tempfile.mkdtemp(prefix="making-", dir=where.parent))
    try:
        with tarfile.open(fileobj=io.BytesIO(step.received)) as tar:
            tar.extractall(made, filter="data")
        if not any(made.rglob("*.so")):
            raise UserError(
                "the lab's header says compile: true, but its solution compiled nothing: take "
                "that line out, or install a C++ compiler (sudo apt install g++)"
            )
        made.rename(where)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _key(source_nb: NotebookNode) -> str:
    """Names what the cache depends on: the lab, its checks and utils, torch, Python, processor."""
    import torch

    digest = hashlib.sha256()
    cells = [(cell.cell_type, cell.source) for cell in source_nb.cells]
    machine = torch.backends.cpu.get_cpu_capability()
    about = [cells, torch.__version__, sys.version, sys.prefix, machine]
    digest.update(json.dumps(about).encode())
    for name, data in sorted(_code().items()):
        digest.update(f"{name}\0".encode() + data)
    return digest.hexdigest()[:32]


def _code() -> Mapping[str, bytes]:
    """The project's code that a lab's solution may call, or that calls it."""
    found = [*(ROOT / "utils").glob("*.py"), *(path for phase in phases() for path in phase.checks)]
    return {str(path.relative_to(ROOT)): path.read_bytes() for path in found}


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Hold a lock, which the machine's kernel takes back when this process dies."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
