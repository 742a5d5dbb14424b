"""Load the checks of the phases by path.

``phases`` is no package, because the names of its folders start with a digit.
"""

from __future__ import annotations

import importlib.util
import sys
import traceback
from functools import cache
from pathlib import Path

from grader import UserError
from grader.phase_paths import ROOT, PhasePaths, check_files, phases
from utils.checks.exercise import Check


@cache
def load_checks(folder: Path) -> dict[str, Check]:
    """Return the checks in a phase's folder by name, in the order of its module ``checks``, if any.

    Raises ValueError if two checks have the same name.
    """
    if not (files := check_files(folder)):
        return {}
    # inspect.getsource needs the real file name for the candidates and, for classes, the module in
    # sys.modules
    spec = importlib.util.spec_from_file_location(f"checks_{folder.name}", files[0])
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    found: dict[str, Check] = {}
    for name in getattr(module, "__all__", vars(module)):
        check = getattr(module, name)
        if isinstance(check, Check) and found.setdefault(check.name, check) is not check:
            raise ValueError(f"{files[0]}: two checks are named {check.name!r}")
    return found


@cache
def find_check(name: str, root: Path = ROOT) -> tuple[PhasePaths, Check]:
    """Return the phase that has a check of this name, and the check.

    Checks that can't be loaded stop only who may need them: whose check no other phase has. Raises
    LookupError if no phase has it, or more than one; UserError if none has it, and the checks of
    some phase can't be loaded.
    """
    found = []
    broken: list[tuple[PhasePaths, Exception]] = []
    named = [phase for phase in phases(root) if _names(phase, name)]
    for phase in named or phases(root):
        try:
            if check := load_checks(phase.folder).get(name):
                found.append((phase, check))
        except Exception as error:  # a file of checks may raise any error
            broken.append((phase, error))
    if len(found) == 1:
        return found[0]
    if found:
        where = " and ".join(phase.name for phase, _ in found)
        raise LookupError(f"two checks are named {name!r}, in {where}: rename one")
    for _, why in broken:
        if isinstance(why, (MemoryError, OSError)):  # may be the machine's fault
            raise why
    if broken:
        said = "; ".join(_why_not_loaded(phase, error) for phase, error in broken)
        raise UserError(f"the check {name!r} cannot be used: {said}") from broken[0][1]
    raise LookupError(f"no check is named {name!r}; `python -m grader selftest` lists them all")


def _names(phase: PhasePaths, name: str) -> bool:
    """Whether the checks' files have the name in quotes; loading some takes seconds of imports."""
    texts = (path.read_text(encoding="utf-8") for path in check_files(phase.folder))
    return any(f'"{name}"' in text or f"'{name}'" in text for text in texts)


def _why_not_loaded(phase: PhasePaths, error: Exception) -> str:
    files = phase.checks
    frames = [Path(frame.filename) for frame in traceback.extract_tb(error.__traceback__)]
    if isinstance(error, SyntaxError):
        frames.append(Path(str(error.filename)))
    file = next((path for path in reversed(frames) if path in files), files[0])
    return f"{phase.relative(file)} can't be loaded: {type(error).__name__}: {error}"
