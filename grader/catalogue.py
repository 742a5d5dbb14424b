"""Find the phases and load their checks by path.

``phases`` is no package: a folder's name starts with a digit, and nothing imports it.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from utils.checks import Check

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Phase:
    """One room of ``phases/``: ``name`` is the folder's, such as ``01_tensors``."""

    name: str
    dir: Path

    @property
    def number(self) -> str:
        """The two digits that the name starts with."""
        return self.name.partition("_")[0]

    @property
    def lesson(self) -> Path:
        """Text of the lesson."""
        return self.dir / "lesson.py"

    @property
    def lab(self) -> Path:
        """Text of the lab."""
        return self.dir / "lab.py"


def phases(root: Path = ROOT) -> list[Phase]:
    """The phases under ``root/phases``, in order."""
    folders = sorted((root / "phases").glob("[0-9][0-9]_*/"))
    return [Phase(folder.name, folder) for folder in folders if folder.is_dir()]


@cache
def load_checks(phase_dir: Path) -> dict[str, Check]:
    """The checks of a phase by name; empty when it has no ``checks.py``.

    Raises:
        ValueError: when two checks carry one name.
    """
    path = phase_dir / "checks.py"
    if not path.exists():
        return {}
    # the real file name makes inspect.getsource work on the candidates
    spec = importlib.util.spec_from_file_location(f"checks_{phase_dir.name}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: dict[str, Check] = {}
    for check in vars(module).values():
        if isinstance(check, Check) and found.setdefault(check.name, check) is not check:
            raise ValueError(f"{path}: two checks are named {check.name!r}")
    return found


def find_check(name: str, root: Path = ROOT) -> tuple[Phase, Check]:
    """The check of that name and the phase it belongs to.

    Raises:
        LookupError: when no phase has it.
    """
    for phase in phases(root):
        check = load_checks(phase.dir).get(name)
        if check is not None:
            return phase, check
    raise LookupError(f"no check is named {name!r}; `python -m grader checks` lists them all")
