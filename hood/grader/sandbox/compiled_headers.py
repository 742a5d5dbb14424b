"""Provide what a course compiles once, such as headers, to its labs that compile.

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
from hood.course import ENGINE, course, course_folder
from hood.grader.course_sandbox import of_course
from hood.grader.inside import course_sandbox
from hood.grader.sandbox.stage import environment_folders
from hood.grader.sandbox.warm_process import environment

SECONDS = 1800


def prepared_headers() -> Path | None:
    """Return the folder with the compiled headers, for sandboxes; make it if it does not exist.

    None where the course compiles nothing in advance.

    Processes that call this at the same time wait for the one that makes it. Raises UserError if
    the headers cannot be compiled, or a sandbox does not see the compiler.
    """
    if of_course().make_headers is None:
        return None
    compiler = of_course().compiler()
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
                # the environment of kernels, whose code must be compiled with the same options
                env={**environment(Path(scratch)), "PYTHONPATH": places},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise UserError(
                f"what labs compile was not prepared after {SECONDS} seconds: grade when this "
                "machine has less to do"
            ) from None
        if done.returncode or not any(made.iterdir()):
            said = done.stderr.strip().splitlines()[-1:] or ["it said nothing"]
            raise UserError(
                f"{of_course().compiles} can't be compiled with {of_course().compiler()}, so no "
                "lab that says compile: true can be graded here: mend the compiler, or remove it. "
                f"It said: {said[0]}"
            )
        for path in (made, *made.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)  # kernels have other user ids
        made.rename(where)  # when all are complete


def _key() -> str:
    """Return a hash of Python, the compiler, and what the course says of the headers."""
    called = of_course().compiler()
    compiler = os.path.realpath(called)
    about: list[Any] = [sys.version, sys.prefix, *of_course().version()]
    if os.path.exists(compiler):
        about += [called, compiler, os.stat(compiler).st_size, os.stat(compiler).st_mtime]
    return hashlib.sha256(json.dumps(about).encode()).hexdigest()[:32]
