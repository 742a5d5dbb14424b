"""Provide compiled headers (:mod:`hood.grader.inside.headers`) to labs that call ``torch.compile``.

Nothing else is prepared: a cache of what the reference solution compiles would contain its source,
and every learner could read it.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hood import UserError
from hood.course import ENGINE
from hood.grader.inside import headers
from hood.grader.sandbox.stage import environment_folders
from hood.grader.sandbox.warm_process import environment
from utils.instruments.toolchain import cxx

SECONDS = 1800


def prepared_headers() -> Path:
    """Return the folder with the compiled headers, for sandboxes; make it if it does not exist.

    Processes that call this at the same time wait for the one that makes it. Raises UserError if
    the headers cannot be compiled, or a sandbox does not see the compiler.
    """
    compiler = cxx()
    seen = list(dict.fromkeys(["/usr", "/bin", *environment_folders()]))
    if not any(Path(compiler).is_relative_to(folder) for folder in seen):
        raise UserError(
            f"sandboxes see the compilers below {', '.join(seen)}, and this one is {compiler}: "
            "install one of the system's, and let CXX name it or unset CXX"
        )
    where = folder() / _key()
    if where.is_dir():
        return where
    where.parent.mkdir(parents=True, exist_ok=True)
    with where.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # Linux releases it if this process dies
        if not where.is_dir():
            _make(where)
    return where


def folder() -> Path:
    """Return this user's cache folder for compiled headers."""
    caches = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(caches).expanduser() / "open-the-hood" / "compiled"


def _make(where: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="making-", dir=where.parent) as scratch:
        made = Path(scratch) / "headers"
        made.mkdir()
        try:
            done = subprocess.run(
                [sys.executable, "-P", "-m", "hood.grader.inside.headers", str(made)],
                # the environment of kernels, whose code must be compiled with the same options
                env={**environment(Path(scratch)), "PYTHONPATH": str(ENGINE)},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise UserError(
                f"torch's headers were not compiled after {SECONDS} seconds: grade when this "
                "machine has less to do"
            ) from None
        if done.returncode or not (made / headers.INDEX).is_file():
            said = done.stderr.strip().splitlines()[-1:] or ["it said nothing"]
            raise UserError(
                f"torch's headers can't be compiled by {cxx()}, so no lab that says compile: true "
                f"can be graded here: mend the compiler, or remove it. It said: {said[0]}"
            )
        for path in (made, *made.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)  # kernels have other user ids
        made.rename(where)  # when all are complete


def _key() -> str:
    """Return a hash of torch, Python, the compiler, the processor, and the code that makes them."""
    import torch

    compiler = os.path.realpath(cxx())
    about: list[Any] = [
        torch.__version__,
        sys.version,
        sys.prefix,
        torch.backends.cpu.get_cpu_capability(),
        hashlib.sha256(Path(headers.__file__).read_bytes()).hexdigest(),
    ]
    if os.path.exists(compiler):
        about += [cxx(), compiler, os.stat(compiler).st_size, os.stat(compiler).st_mtime]
    return hashlib.sha256(json.dumps(about).encode()).hexdigest()[:32]
