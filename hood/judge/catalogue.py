"""Load the checks of the phases by path, and collect every ``Check`` that they define.

``phases`` can't be a package, because the names of its folders start with a digit.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
import traceback
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType

from hood import UserError
from hood.judge.checks.exercise import Check
from hood.lab_words import GRADED
from hood.phase_paths import ROOT, PhasePaths, check_files, phases

MAIN = "__init__.py"


@cache
def load_checks(folder: Path) -> dict[str, Check]:
    """Return the checks in a phase's folder by name, in the order of the phase's lab.

    Every file of ``checks`` is loaded, whether another file imports it or not. Files without a
    check are helpers. Raises ValueError if two checks have the same name.
    """
    found = dict[str, Check]()
    files = check_files(folder)
    for file, module in zip(files, _modules(folder, files), strict=True):
        for check in vars(module).values():
            if isinstance(check, Check) and found.setdefault(check.name, check) is not check:
                raise ValueError(f"{file}: two checks are named {check.name!r}")
    lab = folder / "lab.py"
    asked = GRADED.findall(lab.read_text(encoding="utf-8")) if lab.exists() else []
    return {name: found[name] for name in dict.fromkeys([*asked, *found]) if name in found}


def _modules(folder: Path, files: Sequence[Path]) -> Iterator[ModuleType]:
    """Load the files of a phase's module ``checks``, and yield their modules."""
    if not files:
        return
    of_package = files[0].parent != folder
    main = folder / "checks" / MAIN if of_package else files[0]
    # inspect.getsource needs the real file name, and for classes also the module in sys.modules.
    name = f"checks_{folder.name}"
    if getattr(sys.modules.get(name), "__file__", str(main)) != str(main):
        # the loaded module belongs to another course that has a phase of the same name
        name += f"_{hashlib.sha256(str(folder).encode()).hexdigest()[:8]}"
    if files[0] == main:
        spec = importlib.util.spec_from_file_location(name, main)
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        yield module
    else:
        sys.modules[name] = module = ModuleType(name)
        module.__file__, module.__path__ = str(main), [str(main.parent)]
    for file in files:
        if file != main:
            yield importlib.import_module(f"{name}.{file.stem}")


@cache
def find_check(name: str, root: Path = ROOT) -> tuple[PhasePaths, Check]:
    """Return the check that is called ``name``, and its phase.

    A phase is loaded only if one of its files contains the name, because some imports take seconds.
    Raises LookupError if the check is in no phase or in several phases. Raises UserError if a file
    that contains the name can't be loaded.
    """
    found = []
    for phase in phases(root):
        texts = [path.read_text(encoding="utf-8") for path in phase.checks]
        if not any(f'"{name}"' in text or f"'{name}'" in text for text in texts):
            continue
        try:
            if check := load_checks(phase.folder).get(name):
                found.append((phase, check))
        except (MemoryError, OSError):  # the machine may be the cause
            raise
        except Exception as error:  # a file of checks may raise any error
            file = phase.relative(place_of(error, phase.checks)[0])
            raise UserError(
                f"the check {name!r} can't be used, because {file} can't be loaded: "
                f"{type(error).__name__}: {error}"
            ) from error
    if not found:
        raise LookupError(f"no check is named {name!r}; `python -m hood selftest` lists all checks")
    if len(found) > 1:
        where = " and ".join(phase.name for phase, _ in found)
        raise LookupError(f"two checks are named {name!r}, in {where}: rename one of them")
    return found[0]


def place_of(error: Exception, files: Sequence[Path]) -> tuple[Path, int]:
    """Return the file of ``files`` that raised an error while it was loaded, and the line."""
    frames = [(Path(f.filename), f.lineno or 1) for f in traceback.extract_tb(error.__traceback__)]
    if isinstance(error, SyntaxError):
        frames.append((Path(str(error.filename)), error.lineno or 1))
    return next((frame for frame in reversed(frames) if frame[0] in files), (files[0], 1))
