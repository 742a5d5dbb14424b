"""Compile headers and similar files once, for all labs that use a compiler.

Nothing else is prepared: a cache of the compiled reference solution would contain the solution's
source, and every learner could read it.
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
from hood.course import ENGINE, course, course_folder
from hood.grader.course_sandbox import of_course
from hood.grader.inside import course_sandbox
from hood.grader.sandbox.stage import environment_folders
from hood.grader.sandbox.warm_process import environment

SECONDS = 1800


def prepared_headers() -> Path | None:
    """Return the folder with the compiled headers, for sandboxes; make it if it does not exist.

    Return None if the course compiles nothing in advance. If several processes call this at the
    same time, one process makes the folder and the others wait. Raises UserError if the headers
    cannot be compiled, or sandboxes do not see the compiler.
    """
    if of_course().make_headers is None:
        return None
    compiler = of_course().compiler()
    seen = list(dict.fromkeys(["/usr", "/bin", *environment_folders()]))
    if not any(Path(compiler).is_relative_to(folder) for folder in seen):
        raise UserError(
            f"sandboxes can use only a compiler below {', '.join(seen)}, but the compiler is "
            f"{compiler}. Install this system's compiler. Then set CXX to its path, or unset CXX"
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
    return Path(caches).expanduser() / course(course_folder()).id / "compiled"


def _make(where: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="making-", dir=where.parent) as scratch:
        made = Path(scratch) / "headers"
        made.mkdir()
        root = course_folder()
        module, places = course(root).sandbox, os.pathsep.join(map(str, (ENGINE, root)))
        try:
            done = subprocess.run(
                [sys.executable, "-P", "-m", course_sandbox.__name__, module, str(made)],
                # kernels' environment, because their code must be compiled with the same options
                env={**environment(Path(scratch)), "PYTHONPATH": places},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise UserError(
                f"compiling the labs' shared files took more than {SECONDS} seconds: grade "
                "when this machine is less busy"
            ) from None
        if done.returncode or not any(made.iterdir()):
            said = done.stderr.strip().splitlines()[-1:] or ["it printed nothing"]
            raise UserError(
                f"{of_course().compiles} can't be compiled with {of_course().compiler()}, so "
                "no lab with `compile: true` can be graded here: repair the compiler, or "
                f"remove it. The compiler's message: {said[0]}"
            )
        for path in (made, *made.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)  # kernels have other user ids
        made.rename(where)  # only now, because the folder is complete


def _key() -> str:
    """Return a hash of what the headers depend on: Python, the compiler, the course's versions."""
    called = of_course().compiler()
    compiler = os.path.realpath(called)
    about: list[Any] = [sys.version, sys.prefix, *of_course().version()]
    if os.path.exists(compiler):
        about += [called, compiler, os.stat(compiler).st_size, os.stat(compiler).st_mtime]
    return hashlib.sha256(json.dumps(about).encode()).hexdigest()[:32]
