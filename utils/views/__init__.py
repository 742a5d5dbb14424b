"""Views of the learner's own objects: each takes tensors, shapes or numbers and shows the inside.

In Jupyter a view that can move has controls; everywhere else, and while lessons are built, it is
one image.
"""

from importlib import import_module
from pathlib import Path

from hood.learner import bounded_traceback as bounded_traceback
from hood.learner import cell_clock as cell_clock

__all__ = sorted(file.stem for file in Path(__file__).parent.glob("[!_]*.py"))
# A view is the one function of its module that has the module's name.
globals().update((name, getattr(import_module(f"{__name__}.{name}"), name)) for name in __all__)
