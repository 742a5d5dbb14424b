"""Views of the learner's own objects: each takes tensors, shapes or numbers.

In Jupyter a view that can move has controls. Everywhere else, and while lessons are built, a view
is one image.
"""

from importlib import import_module
from pathlib import Path

from hood.learner import bounded_traceback as bounded_traceback
from hood.learner import cell_clock as cell_clock

__all__ = sorted(file.stem for file in Path(__file__).parent.glob("[!_]*.py"))
# A view is the function with the name of its module.
globals().update((name, getattr(import_module(f"{__name__}.{name}"), name)) for name in __all__)
