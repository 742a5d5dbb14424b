"""Load the checks of the phases by path.

``phases`` is no package, because the names of its folders start with a digit.
"""

from __future__ import annotations

import importlib.util
import sys
import traceback
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from hood import UserError
from hood.judge.checks.exercise import Check
from hood.phase_paths import ROOT, PhasePaths, check_files, phases


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

    Only those phases are loaded whose files name it, since some import for seconds. Raises
    LookupError if none has it, or more than one; UserError if checks that name it can't be loaded.
    """
    found = []
    for phase in phases(root):
        texts = [path.read_text(encoding="utf-8") for path in phase.checks]
        if not any(f'"{name}"' in text or f"'{name}'" in text for text in texts):
            continue
        try:
            if check := load_checks(phase.folder).get(name):
                found.append((phase, check))
        except (MemoryError, OSError):  # may be the machine's fault
            raise
        except Exception as error:  # a file of checks may raise any error
            file = phase.relative(place_of(error, phase.checks)[0])
            raise UserError(
                f"the check {name!r} cannot be used: {file} can't be loaded: "
                f"{type(error).__name__}: {error}"
            ) from error
    if not found:
        raise LookupError(f"no check is named {name!r}; `python -m hood selftest` lists them all")
    if len(found) > 1:
        where = " and ".join(phase.name for phase, _ in found)
        raise LookupError(f"two checks are named {name!r}, in {where}: rename one")
    return found[0]


def place_of(error: Exception, files: Sequence[Path]) -> tuple[Path, int]:
    """Return in which of some files, and in which line, an error arose when they were loaded."""
    frames = [(Path(f.filename), f.lineno or 1) for f in traceback.extract_tb(error.__traceback__)]
    if isinstance(error, SyntaxError):
        frames.append((Path(str(error.filename)), error.lineno or 1))
    return next((frame for frame in reversed(frames) if frame[0] in files), (files[0], 1))
