"""What dotted paths stand for among the modules that are imported in this process."""

from __future__ import annotations

import inspect
import sys
from types import ModuleType
from typing import Any


def canonical(path: str) -> str:
    """Return a path with modules under their own names.

    ``torch.nn.modules.linear.F``, for one, becomes ``torch.nn.functional``.
    """
    found = lookup(path)
    return found.__name__ if isinstance(found, ModuleType) else path


def lookup(path: str) -> Any:
    """Return what a path stands for among the modules that are imported here; None if unknown.

    Nothing is imported and no code runs: only the dictionaries of modules and classes are read.
    """
    if path in sys.modules:
        return sys.modules[path]
    module, _, name = path.rpartition(".")
    holder = sys.modules.get(module) or (lookup(module) if "." in module else None)
    if isinstance(holder, ModuleType):
        return vars(holder).get(name)
    return inspect.getattr_static(holder, name, None) if isinstance(holder, type) else None
