"""Skip proofs of labs that were made before, if no file that they depend on has changed.

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

# What a lab's proof depends on: its own folders, and files that all labs share.
OWN = ("phases", "source", "release")
SHARED = ("grader", "utils", "nbgrader_config.py", "pyproject.toml", "tests/grader", "tests/phases")


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


def _key(lab: str, what: str) -> str:
    return f"proven/{lab}/{what}"


def digests(lab: str, root: Path = ROOT) -> dict[str, str]:
    """Return two SHA-256 hashes: over the lab's own files, and over those that all labs share."""
    return {"own": _digest(root, [f"{name}/{lab}" for name in OWN]), "shared": _shared(root)}


@cache
def _shared(root: Path) -> str:
    return _digest(root, SHARED)


def _digest(root: Path, places: Iterable[str]) -> str:
    found = hashlib.sha256()
    for path in sorted(file for place in places for file in _files(root / place)):
        found.update(path.relative_to(root).as_posix().encode() + b"\0")
        found.update(hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()


def _files(place: Path) -> list[Path]:
    every = [place] if place.is_file() else place.rglob("*")
    return [path for path in every if path.is_file() and "__pycache__" not in path.parts]
