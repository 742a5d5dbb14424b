"""Skip what passed before, if no file that it depends on has changed.

Proofs of labs are skipped one by one. ``make check`` also leaves out the tests of whole packages.
CI and ``make proof`` skip nothing.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest

from grader.phase_paths import ROOT
from utils.instruments.toolchain import inductor_lacks

# What a lab's proof depends on: its own folders, and files that all labs share.
OWN = ("phases", "source", "release")
SHARED = (
    "grader",
    "utils",
    "nbgrader_config.py",
    "pyproject.toml",
    "lock",
    "tests/grader",
    "tests/phases",
)
# Folders of tests that ``make check`` leaves out, each with the files that must not have changed.
# Some of these tests also use the labs, and those of utils the grader; ``make test`` runs them all.
PACKAGES = {
    "tests/grader": ("grader", "utils", "nbgrader_config.py", "tests/grader", "tests/fixtures"),
    "tests/utils": ("utils", "tests/utils"),
}
# pytest's options with which a run does not have all tests.
CHOOSING = ("keyword", "markexpr", "lf", "stepwise", "deselect", "ignore", "collectonly")


class Proven:
    """Remember proofs with the hashes of all files that they depend on.

    ``make check`` only considers the lab's own files, because it is meant for authors of labs.

    Args:
        config: pytest's configuration. Its cache folder stores the proofs; with
            ``-p no:cacheprovider`` they are not stored.
    """

    def __init__(self, config: pytest.Config):
        self._cache = getattr(config, "cache", None)
        whole = config.option.width == "proof" or bool(os.environ.get("CI"))
        self._always = whole or self._cache is None
        self._places = {"check": ["own"]}.get(config.option.width, ["own", "shared"])

    def skip_if_unchanged(self, lab: str, what: str) -> None:
        """Skip the test if this proof was made with the current files.

        Args:
            lab: the lab's name.
            what: the name of the proof.
        """
        if self.unchanged(lab, what):
            pytest.skip("proven before, and nothing that it rests on has changed since")

    def unchanged(self, lab: str, what: str) -> bool:
        """Return whether this proof of a lab was made with the current files."""
        if self._always:
            return False
        known, now = self._cache.get(_key(lab, what), {}), digests(lab)
        return all(known.get(place) == now[place] for place in self._places)

    def remember(self, lab: str, what: str) -> None:
        """Store that this proof of a lab was made with the current files."""
        if self._cache is not None:
            self._cache.set(_key(lab, what), digests(lab))


class Packages:
    """Remember in which state of its files the tests of a package passed.

    Args:
        config: pytest's configuration, in the process that starts the workers.

    Attributes:
        left_out: folders of tests that this run leaves out, such as ``tests/utils``.
    """

    def __init__(self, config: pytest.Config):
        self._cache = getattr(config, "cache", None)
        self._now = {
            folder: _digest(config.rootpath, (*places, "pyproject.toml", "lock"))
            for folder, places in PACKAGES.items()
        }
        chosen = any(getattr(config.option, name, None) for name in CHOOSING)
        self._all = config.args_source is not pytest.Config.ArgsSource.ARGS and not chosen
        quick = config.option.width == "check" and self._all and not os.environ.get("CI")
        known = self._cache.get(_PASSED, {}) if self._cache is not None and quick else {}
        self.left_out = [
            folder for folder, digest in self._now.items() if known.get(folder) == digest
        ]

    def passed(self) -> None:
        """Store that all tests passed, unless this run was asked for some of them."""
        if self._cache is not None and self._all:
            self._cache.set(_PASSED, self._now)


_PASSED = "proven/packages"


def _key(lab: str, what: str) -> str:
    return f"proven/{lab}/{what}"


def digests(lab: str, root: Path = ROOT) -> dict[str, str]:
    """Return two SHA-256 hashes: over the lab's own files, and over those that all labs share."""
    return {"own": _digest(root, [f"{name}/{lab}" for name in OWN]), "shared": _shared(root)}


@cache
def _shared(root: Path) -> str:
    return _digest(root, SHARED)


def _digest(root: Path, places: Iterable[str]) -> str:
    # What can't be compiled proves nothing of a machine that can.
    found = hashlib.sha256(str(inductor_lacks()).encode())
    for path in sorted(file for place in places for file in _files(root / place)):
        found.update(path.relative_to(root).as_posix().encode() + b"\0")
        found.update(hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()


def _files(place: Path) -> list[Path]:
    every = [place] if place.is_file() else place.rglob("*")
    return [path for path in every if path.is_file() and "__pycache__" not in path.parts]
